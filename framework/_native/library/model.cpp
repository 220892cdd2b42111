// Models and requests behind the C interface, of one instruction set; no exception leaves.
#include <algorithm>
#include <cstring>
#include <list>
#include <new>

#include "library/table.h"
#include "runtime/plan.h"

struct framework_model {
    std::unique_ptr<fw::runtime::Model> model;
};

struct framework_request {
    const fw::runtime::Model& model;
    std::list<fw::runtime::Plan> plans;  // the last one used first
};

namespace fw::models {
namespace {

using namespace fw::runtime;

constexpr size_t MOST_PLANS = 4;  // of a request, one for each set of sizes

fw_status fail(framework_message* why, fw_status status, const char* text) {
    if (why) {
        std::strncpy(why->text, text, sizeof why->text - 1);
        why->text[sizeof why->text - 1] = 0;
    }
    return status;
}

template <class F> fw_status guarded(framework_message* why, F&& body) {
    try {
        body();
        return fail(why, FW_OK, "");
    } catch (const Refused& r) {
        return fail(why, r.status, r.why.c_str());
    } catch (const std::bad_alloc&) {
        return fail(why, FW_NO_MEMORY, "out of memory");
    } catch (...) {
        return fail(why, FW_INVALID, "an error without a name");
    }
}

template <class Get> fw_status loaded(framework_model** model, framework_message* why, Get&& get) {
    return guarded(why, [&] {
        if (!model) refuse(FW_INVALID, "no place for the model");
        *model = nullptr;
        *model = new framework_model{get()};
    });
}

void check(const Model& m, size_t i, const fw_view& v) {
    const Value& wanted = m.values[size_t(m.inputs[i])];
    const size_t n = wanted.sizes.size();
    if (v.type != int(wanted.type) || v.ndim != int(n))
        refuse(FW_MISMATCH, wanted.name + ": another type or number of dimensions");
    if (!v.data || (n && (!v.shape || !v.strides))) refuse(FW_INVALID, wanted.name + ": no numbers");
}

// What the symbols are, by the inputs' sizes: those of one symbol are one.
std::vector<int64_t> symbols_of(const Model& m, const fw_view* inputs) {
    std::vector<int64_t> found(m.symbols.size(), 0);
    for (size_t i = 0; i < m.inputs.size(); ++i) {
        const Value& wanted = m.values[size_t(m.inputs[i])];
        check(m, i, inputs[i]);
        for (size_t d = 0; d < wanted.sizes.size(); ++d) {
            const Size& s = m.sizes[size_t(wanted.sizes[d])];
            const int64_t n = inputs[i].shape[d];
            if (n < 1 || n > MOST_NUMBERS) refuse(FW_INVALID, wanted.name + ": a size of " + std::to_string(n));
            if (s.fixed()) {
                if (s.more != n)
                    refuse(FW_MISMATCH, wanted.name + ": dimension " + std::to_string(d) + " is " + std::to_string(n) +
                                            ", the model has " + std::to_string(s.more));
                continue;
            }
            int64_t& known = found[size_t(__builtin_ctz(s.symbols))];
            if (known && known != n)
                refuse(FW_MISMATCH, wanted.name + ": dimension " + std::to_string(d) + " is " + std::to_string(n) +
                                        ", another one of the same name " + std::to_string(known));
            known = n;
        }
    }
    return found;
}

Plan& plan_of(framework_request& r, std::vector<int64_t> symbols) {
    for (auto p = r.plans.begin(); p != r.plans.end(); ++p)
        if (p->symbols() == symbols) {
            r.plans.splice(r.plans.begin(), r.plans, p);
            return r.plans.front();
        }
    r.plans.emplace_front(r.model, std::move(symbols));
    if (r.plans.size() > MOST_PLANS) r.plans.pop_back();
    return r.plans.front();
}

void take(const fw_view& from, Tensor& to) {
    Tensor given = to;
    given.data = static_cast<char*>(from.data);
    std::copy(from.strides, from.strides + from.ndim, given.strides);
    copy(given, to.data);
}

}  // namespace

fw_status load(const char* path, framework_model** model, framework_message* why) {
    return loaded(model, why, [=] {
        if (!path) refuse(FW_INVALID, "no path");
        return read_model(path);
    });
}

fw_status read(const void* bytes, size_t count, framework_model** model, framework_message* why) {
    return loaded(model, why, [=] {
        if (!bytes) refuse(FW_INVALID, "no bytes");
        return read_model(bytes, count);
    });
}

void drop(framework_model* model) { delete model; }
int64_t bytes(const framework_model* model) { return model ? model->model->data_bytes + model->model->packed.bytes() : 0; }
int inputs(const framework_model* model) { return model ? int(model->model->inputs.size()) : 0; }
int outputs(const framework_model* model) { return model ? int(model->model->outputs.size()) : 0; }

fw_status input(const framework_model* model, int i, framework_port* port) {
    if (!port || i < 0 || i >= inputs(model)) return FW_INVALID;
    const Model& m = *model->model;
    const Value& v = m.values[size_t(m.inputs[size_t(i)])];
    port->name = v.name.c_str(), port->type = int(v.type), port->ndim = int(v.sizes.size());
    for (size_t d = 0; d < v.sizes.size(); ++d) {
        const Size& s = m.sizes[size_t(v.sizes[d])];
        port->shape[d] = s.fixed() ? s.more : -1;
    }
    return FW_OK;
}

fw_status output(const framework_model* model, int i, framework_port* port) {
    if (!port || i < 0 || i >= outputs(model)) return FW_INVALID;
    const Output& o = model->model->outputs[size_t(i)];
    port->name = o.name.c_str(), port->type = int(model->model->values[size_t(o.value)].type), port->ndim = -1;
    return FW_OK;
}

fw_status new_request(const framework_model* model, framework_request** request) {
    return guarded(nullptr, [=] {
        if (!model || !request) refuse(FW_INVALID, "no model");
        *request = new framework_request{*model->model, {}};
    });
}

void drop_request(framework_request* request) { delete request; }

fw_status run(framework_request* request, const fw_view* given, int input_count, fw_view* wanted, int output_count,
              framework_message* why) {
    return guarded(why, [=] {
        if (!request || (input_count && !given) || (output_count && !wanted)) refuse(FW_INVALID, "no request or views");
        const Model& m = request->model;
        if (input_count != int(m.inputs.size()) || output_count != int(m.outputs.size()))
            refuse(FW_MISMATCH, "the model has " + std::to_string(m.inputs.size()) + " inputs and " +
                                    std::to_string(m.outputs.size()) + " outputs");
        Plan& plan = plan_of(*request, symbols_of(m, given));
        for (int i = 0; i < input_count; ++i) take(given[i], plan.input(size_t(i)));
        plan.run();
        for (int i = 0; i < output_count; ++i) {
            const Tensor& t = plan.output(size_t(i));
            wanted[i] = {t.data, int(t.type), t.ndim, t.shape, t.strides};
        }
    });
}

}  // namespace fw::models
