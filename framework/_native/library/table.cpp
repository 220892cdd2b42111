// The C interface of one instruction set: arguments are checked here, and no exception leaves.
#include "library/table.h"

#include <algorithm>
#include <new>

#include "base/pool.h"
#include "gemm/products.h"
#include "base/scratch.h"
#include "norm/softmax.h"
#include "optim/optimizers.h"
#include "random/draws.h"

namespace fw {
namespace {

constexpr int MOST_THREADS = 1024;

// False for what is no view of countable numbers.
bool read(const fw_view* given, View& v, fw_type last = FW_BFLOAT16) {
    if (!given || given->ndim < 0 || given->ndim > FW_MOST_DIMS || given->type < FW_FLOAT32 || given->type > last ||
        (given->ndim && (!given->shape || !given->strides)))
        return false;
    int64_t count = 1;
    bool empty = false;
    for (int d = 0; d < given->ndim; ++d) {
        if (given->shape[d] < 0) return false;
        if (given->shape[d] == 0) empty = true;
        else if (__builtin_mul_overflow(count, given->shape[d], &count)) return false;
    }
    if (count >= int64_t(1) << 56 || (!empty && !given->data)) return false;
    v = {given->data, static_cast<Type>(given->type), given->ndim, given->shape, given->strides};
    return true;
}

bool is_shape(const View& v, const int64_t* shape, int ndim) {
    return v.ndim() == ndim && std::equal(shape, shape + ndim, v.sizes);
}

template <class F> fw_status guarded(F&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return FW_NO_MEMORY;
    } catch (...) {
        return FW_INVALID;
    }
}

fw_status run(const Product& product, const View& out) {
    if (out.type() != product.type || !is_shape(out, product.shape, product.ndim)) return FW_MISMATCH;
    if (!out.contiguous()) return FW_UNSUPPORTED;
    product.run(out.start);
    return FW_OK;
}

fw_status matmul(const fw_view* a, const fw_view* b, const fw_view* out) {
    return guarded([=] {
        View x, y, to;
        if (!read(a, x) || !read(b, y) || !read(out, to)) return FW_INVALID;
        if (!x.whole_strides() || !y.whole_strides()) return FW_UNSUPPORTED;
        Product product;
        return product.matmul(x, y) ? run(product, to) : FW_MISMATCH;
    });
}

fw_status linear(const fw_view* x, const fw_view* w, const fw_view* bias, int relu, const fw_view* out) {
    return guarded([=] {
        View from, weights, shift, to;
        if (!read(x, from) || !read(w, weights) || (bias && !read(bias, shift)) || !read(out, to)) return FW_INVALID;
        if (!from.whole_strides() || !weights.whole_strides() || (relu && from.type() == Type::bfloat16))
            return FW_UNSUPPORTED;
        Product product;
        return product.linear(from, weights, bias ? &shift : nullptr, relu != 0) ? run(product, to) : FW_MISMATCH;
    });
}

fw_status softmax_of(const fw_view* x, int dim, int log, const fw_view* out) {
    return guarded([=] {
        View from, to;
        if (!read(x, from) || !read(out, to) || dim < 0 || dim >= from.ndim()) return FW_INVALID;
        if (to.type() != from.type() || !is_shape(to, from.sizes, from.ndim())) return FW_MISMATCH;
        if (from.type() == Type::bfloat16 || !from.contiguous() || !to.contiguous()) return FW_UNSUPPORTED;
        if (!from.size()) return FW_OK;
        const Around around(from, dim, dim);
        if (from.type() == Type::float32) softmax(log != 0, from.data<float>(), to.data<float>(), around);
        else softmax(log != 0, from.data<double>(), to.data<double>(), around);
        return FW_OK;
    });
}

fw_status draw(int how, fw_random* state, int64_t low, int64_t range, const fw_view* out) {
    return guarded([=] {
        View to;
        if (!state || !random::is_state(state->words) || !read(out, to, FW_INT64) || range < 0) return FW_INVALID;
        if (!to.contiguous()) return FW_UNSUPPORTED;
        fw_random next = *state;
        const int64_t n = to.size();
        if (how == 2) {
            if (to.type() != Type::int64) return FW_MISMATCH;
            if (!random::takes_range(low, uint64_t(range), double(n))) return FW_UNSUPPORTED;
            random::draw_integers(next.words, to.data<int64_t>(), n, low, uint64_t(range));
        } else if (to.type() == Type::float32) {
            (how ? random::draw_normal<float> : random::draw_uniform<float>)(next.words, to.data<float>(), n);
        } else if (to.type() == Type::float64) {
            (how ? random::draw_normal<double> : random::draw_uniform<double>)(next.words, to.data<double>(), n);
        } else {
            return FW_MISMATCH;
        }
        *state = next;
        return FW_OK;
    });
}

// Arrays `first` to `first + count` of parameters; FW_OK if they are views of one type, of the same sizes from `d` on.
fw_status read_parameter(const fw_view* const* arrays, int count, int d, View* to) {
    for (int k = 0; k < count; ++k) {
        if (!read(arrays[k], to[k], FW_FLOAT64)) return FW_INVALID;
        if (to[k].type() != to[0].type() || to[k].ndim() != to[0].ndim() || to[0].ndim() < d ||
            !std::equal(to[k].sizes + d, to[k].sizes + to[k].dims, to[0].sizes + d))
            return FW_MISMATCH;
    }
    return FW_OK;
}

// In `list`, in order; those that kernels do not take are FW_UNSUPPORTED.
fw_status read_parameters(const fw_view* const* arrays, int array_count, int count, optim::ParameterList& list) {
    View views[optim::MOST_ARRAYS];
    for (int i = 0; i < array_count; i += count) {
        const fw_status status = read_parameter(arrays + i, count, 0, views);
        if (status != FW_OK) return status;
        list.add(views, count);
    }
    list.part(count);
    return list.skipped.empty() ? FW_OK : FW_UNSUPPORTED;
}

fw_status optimizer_step(const char* name, const fw_view* const* arrays, int array_count, const fw_view* rows,
                         const fw_setting* settings, int setting_count) {
    return guarded([=] {
        if (!name || !arrays || array_count < 1 || setting_count < 0 || (setting_count && !settings)) return FW_INVALID;
        std::vector<optim::Setting> numbers;
        for (int i = 0; i < setting_count; ++i) {
            if (!settings[i].name) return FW_INVALID;
            numbers.push_back({settings[i].name, settings[i].value});
        }
        const auto method = optim::method_named(name, numbers);
        if (!method) return FW_INVALID;
        if (array_count % method->count) return FW_MISMATCH;
        if (!rows) {
            optim::ParameterList list;
            const fw_status status = read_parameters(arrays, array_count, method->count, list);
            if (status == FW_OK) optim::run(*method, list);
            return status;
        }
        View views[optim::MOST_ARRAYS], at;
        optim::ParameterRows work;
        if (array_count != method->count || method->count < 2) return FW_MISMATCH;
        const fw_status status = read_parameter(arrays, array_count, 1, views);
        if (status != FW_OK || !read(rows, at, FW_INT8)) return status == FW_OK ? FW_INVALID : status;
        if (at.type() != Type::int64 || at.ndim() != 1) return FW_MISMATCH;
        if (!at.contiguous() || !work.take(views, array_count, at.data<int64_t>(), at.size())) return FW_UNSUPPORTED;
        optim::run(*method, work);
        return FW_OK;
    });
}

fw_status norm_of_all(const fw_view* const* arrays, int array_count, double* norm) {
    return guarded([=] {
        if (!norm || array_count < 0 || (array_count && !arrays)) return FW_INVALID;
        optim::ParameterList list;
        const fw_status status = read_parameters(arrays, array_count, 1, list);
        if (status == FW_OK) *norm = optim::norm_of(list);
        return status;
    });
}

fw_status set_thread_count(int n) {
    return guarded([=] {
        if (n < 1) return FW_INVALID;
        set_threads(std::min(n, MOST_THREADS));
        return FW_OK;
    });
}

fw_status set_allocator(const fw_allocator* a) {
    if (!a || !a->take || !a->give_back) return FW_INVALID;
    allocator() = {a->take, a->give_back, a->context};
    return FW_OK;
}

}  // namespace
}  // namespace fw

#define FW_TABLE_OF(set) fw_table_##set
#define FW_TABLE(set) FW_TABLE_OF(set)
#define FW_TEXT_OF(set) #set
#define FW_TEXT(set) FW_TEXT_OF(set)

extern "C" {
extern const FwTable FW_TABLE(FW_SET);
const FwTable FW_TABLE(FW_SET) = {FW_TEXT(FW_SET), fw::threads, fw::set_thread_count, fw::set_allocator,
                                  fw::matmul, fw::linear, fw::softmax_of, fw::draw, fw::run_alone, fw::optimizer_step, fw::norm_of_all,
                                  fw::models::load, fw::models::read, fw::models::drop, fw::models::bytes, fw::models::inputs,
                                  fw::models::outputs, fw::models::input, fw::models::output, fw::models::new_request,
                                  fw::models::drop_request, fw::models::run};
}
