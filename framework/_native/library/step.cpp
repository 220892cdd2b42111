// One operation of models on memory of the caller's: what the calls of calls.cpp come down to.
#include <algorithm>
#include <new>

#include "library/table.h"
#include "runtime/plan.h"

namespace fw {
namespace {

using namespace runtime;

Tensor tensor_of(const fw_view& v) {
    if (v.type < FW_FLOAT32 || v.type > FW_UINT8 || v.ndim < 0 || !v.data || (v.ndim && (!v.shape || !v.strides)))
        refuse(FW_INVALID, "no view");
    if (v.ndim > MOST_AXES) refuse(FW_UNSUPPORTED, "too many dimensions");
    Tensor t;
    t.type = Type(v.type), t.ndim = v.ndim, t.data = static_cast<char*>(v.data);
    int64_t count = 1;
    uintptr_t odd = reinterpret_cast<uintptr_t>(v.data);
    for (int d = 0; d < v.ndim; ++d) {
        if (v.shape[d] < 1 || __builtin_mul_overflow(count, v.shape[d], &count) || count > MOST_NUMBERS)
            refuse(FW_INVALID, "no elements, or too many");
        t.shape[d] = v.shape[d], t.strides[d] = v.strides[d];
        odd |= uintptr_t(v.strides[d]);
    }
    if (odd % size_t(bytes_of(t.type))) refuse(FW_UNSUPPORTED, "elements at odd addresses");
    return t;
}

void run_step(const FwStep& given) {
    Model m;
    Outside outside;
    m.steps.emplace_back();
    runtime::Step& step = m.steps.back();
    step.name = given.name, step.prepare = operation(step.name);
    auto value = [&m](Kind kind, Type type) {
        m.values.emplace_back();
        m.values.back().kind = kind, m.values.back().type = type;
        m.last_use.push_back(1);
        return int(m.values.size()) - 1;
    };
    for (int i = 0; i < given.input_count; ++i) {
        if (!given.inputs[i]) {
            step.inputs.push_back(-1);
            continue;
        }
        outside.inputs.push_back(tensor_of(*given.inputs[i]));
        step.inputs.push_back(value(Kind::input, outside.inputs.back().type));
    }
    for (int i = 0; i < given.output_count; ++i) {
        if (!given.outputs[i]) {
            step.outputs.push_back(-1);
            continue;
        }
        outside.outputs.push_back(tensor_of(*given.outputs[i]));
        step.outputs.push_back(value(Kind::result, outside.outputs.back().type));
        m.outputs.push_back({step.outputs.back(), ""});
    }
    for (int i = 0; i < given.number_count; ++i) {
        step.numbers.push_back(int(m.sizes.size()));
        Size size;
        size.more = given.numbers[i];
        m.sizes.push_back(size);
    }
    step.reals.assign(given.reals, given.reals + given.real_count);
    step.words.assign(given.words, given.words + given.word_count);
    Plan(m, {}, &outside).run();
}

}  // namespace

fw_status run_alone(const FwStep* step) {
    try {
        run_step(*step);
        return FW_OK;
    } catch (const Refused& r) {
        return r.status;
    } catch (const std::bad_alloc&) {
        return FW_NO_MEMORY;
    } catch (...) {
        return FW_INVALID;
    }
}

}  // namespace fw
