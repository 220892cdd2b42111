// Kernels behind the C interface: each call is one operation of models, on views.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "library/dispatch.h"

namespace {

constexpr int MOST_SPACE = 3, MOST_SLOTS = 64;

// The parts of an operation, as runtime/README.md names them.
struct Operation {
    std::vector<const fw_view*> inputs, outputs;
    std::vector<int64_t> numbers;
    std::vector<double> reals;
    std::vector<const char*> words;

    fw_status run(const char* name) const {
        const FwStep step{name, inputs.data(), outputs.data(), numbers.data(), reals.data(), words.data(),
                          int(inputs.size()), int(outputs.size()), int(numbers.size()), int(reals.size()), int(words.size())};
        return chosen() ? chosen()->step(&step) : FW_UNSUPPORTED;
    }
};

template <class F> fw_status guarded(F&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return FW_NO_MEMORY;
    } catch (...) {
        return FW_INVALID;
    }
}

bool sound(const fw_windows* w) { return w && w->dims >= 1 && w->dims <= MOST_SPACE; }
bool sound(const fw_view* v) { return v && v->ndim >= 0 && v->ndim <= FW_MOST_DIMS && (!v->ndim || (v->shape && v->strides)); }

void add(std::vector<int64_t>& to, const int64_t* from, int n) { to.insert(to.end(), from, from + n); }

// Settings of windows, and how many there are in each dimension.
void add(std::vector<int64_t>& to, const fw_windows& w, const fw_view& out) {
    to.push_back(w.dims);
    add(to, w.size, w.dims), add(to, w.stride, w.dims), add(to, w.padding, w.dims), add(to, w.dilation, w.dims);
    add(to, out.shape + out.ndim - w.dims, w.dims);
}

// (steps, rows, n) as (steps * rows, n), if the rows lie so.
struct FlatRows {
    fw_view view{};
    int64_t shape[2], strides[2];
    bool good = false;

    explicit FlatRows(const fw_view* v) {
        if (!sound(v) || v->ndim != 3) return;
        good = v->shape[0] == 1 || v->shape[1] == 1 || v->strides[0] == v->shape[1] * v->strides[1];
        good = good && !__builtin_mul_overflow(v->shape[0], v->shape[1], &shape[0]);
        shape[1] = v->shape[2], strides[0] = v->shape[1] == 1 ? v->strides[0] : v->strides[1], strides[1] = v->strides[2];
        view = {v->data, v->type, 2, shape, strides};
    }
    FlatRows(const FlatRows&) = delete;
};

}  // namespace

FW_PUBLIC fw_status fw_conv(const fw_view* x, const fw_view* w, const fw_view* bias, const fw_windows* windows, int64_t groups,
                            int relu, const fw_view* out) {
    return guarded([=] {
        if (!sound(windows) || !x || !w || !out) return FW_INVALID;
        std::vector<int64_t> numbers{windows->dims};
        for (const int64_t* n : {windows->stride, windows->padding, windows->dilation}) add(numbers, n, windows->dims);
        add(numbers, &groups, 1), numbers.push_back(relu != 0);
        return Operation{{x, w, bias, nullptr, nullptr, nullptr, nullptr}, {out}, numbers, {0.0}, {}}.run("conv");
    });
}

FW_PUBLIC fw_status fw_max_pool(const fw_view* x, const fw_windows* windows, const fw_view* out) {
    return guarded([=] {
        if (!sound(windows) || !x || !sound(out)) return FW_INVALID;
        if (out->ndim < windows->dims) return FW_MISMATCH;
        std::vector<int64_t> numbers;
        add(numbers, *windows, *out);
        return Operation{{x}, {out}, numbers, {}, {}}.run("max_pool");
    });
}

FW_PUBLIC fw_status fw_mean_pool(const fw_view* x, const fw_windows* windows, int count_padding, int64_t divisor,
                                 const fw_view* out) {
    return guarded([=] {
        if (!sound(windows) || !x || !sound(out) || divisor < 0) return FW_INVALID;
        if (out->ndim < windows->dims) return FW_MISMATCH;
        std::vector<int64_t> numbers;
        add(numbers, *windows, *out);
        numbers.push_back(count_padding != 0), numbers.push_back(divisor);
        return Operation{{x}, {out}, numbers, {}, {}}.run("mean_pool");
    });
}

FW_PUBLIC fw_status fw_layer_norm(const fw_view* x, int dims, const fw_view* w, const fw_view* bias, double eps,
                                  const fw_view* out) {
    return guarded([=] {
        if (!x || !out) return FW_INVALID;
        return Operation{{x, w, bias}, {out}, {dims}, {eps}, {}}.run("layer_norm");
    });
}

FW_PUBLIC fw_status fw_rms_norm(const fw_view* x, int dims, const fw_view* w, double eps, const fw_view* out) {
    return guarded([=] {
        if (!x || !out) return FW_INVALID;
        return Operation{{x, w, nullptr}, {out}, {dims}, {eps}, {}}.run("rms_norm");
    });
}

FW_PUBLIC fw_status fw_batch_norm(const fw_view* x, const fw_view* mean, const fw_view* var, const fw_view* w,
                                  const fw_view* bias, double eps, const fw_view* out) {
    return guarded([=] {
        if (!x || !mean || !var || !out) return FW_INVALID;
        return Operation{{x, mean, var, w, bias}, {out}, {}, {eps}, {}}.run("batch_norm");
    });
}

FW_PUBLIC fw_status fw_attention(const fw_view* q, const fw_view* k, const fw_view* v, const fw_view* mask, int causal,
                                 double scale, const fw_view* out) {
    return guarded([=] {
        if (!q || !k || !v || !out) return FW_INVALID;
        return Operation{{q, k, v, mask}, {out}, {causal != 0}, {scale}, {}}.run("attention");
    });
}

FW_PUBLIC fw_status fw_recurrent(int cell, const fw_view* x, const fw_view* h0, const fw_view* c0, const fw_view* w_ih,
                                 const fw_view* w_hh, const fw_view* b_ih, const fw_view* b_hh, int reverse,
                                 const fw_view* y, const fw_view* h, const fw_view* c) {
    return guarded([=] {
        static const char* const names[] = {"rnn_tanh", "rnn_relu", "lstm", "gru"};
        if (cell < FW_RNN_TANH || cell > FW_GRU || !sound(x) || !h0 || !w_ih || !w_hh || !sound(y)) return FW_INVALID;
        if (x->ndim != 3 || y->ndim != 3 || !std::equal(x->shape, x->shape + 2, y->shape)) return FW_MISMATCH;
        const FlatRows from(x), to(y);
        if (!from.good || !to.good) return FW_UNSUPPORTED;
        Operation step;
        step.numbers = {x->shape[0], x->shape[1], reverse != 0};
        step.inputs = {&from.view, h0}, step.outputs = {&to.view, h};
        if (cell == FW_LSTM) {
            if (!c0) return FW_INVALID;
            step.inputs.push_back(c0), step.outputs.push_back(c);
        }
        for (const fw_view* v : {w_ih, w_hh, b_ih, b_hh}) step.inputs.push_back(v);
        return step.run(names[cell]);
    });
}

FW_PUBLIC fw_status fw_fold(int how, const fw_view* x, uint32_t dims, const fw_view* out) {
    return guarded([=] {
        static const char* const names[] = {"sum", "mean", "amax", "amin"};
        if (how < FW_SUM || how > FW_SMALLEST || !sound(x) || !sound(out)) return FW_INVALID;
        return Operation{{x}, {out}, {int64_t(dims), out->ndim == x->ndim}, {}, {}}.run(names[how]);
    });
}

FW_PUBLIC fw_status fw_run_program(const fw_program* program, const fw_view* const* arguments, const double* numbers,
                                   const fw_view* out) {
    return guarded([=] {
        if (!program || !program->steps || program->step_count < 1 || program->arguments < 1 ||
            program->arguments > MOST_SLOTS || program->constant_count < 0 || program->constant_count > MOST_SLOTS ||
            (program->constant_count && !program->constants) || !arguments || !out)
            return FW_INVALID;
        Operation step;
        int64_t truths = 0;
        step.reals.push_back(program->constant_count);
        step.reals.insert(step.reals.end(), program->constants, program->constants + program->constant_count);
        for (int i = 0; i < program->arguments; ++i) {
            step.inputs.push_back(arguments[i]);
            if (arguments[i]) truths |= int64_t(arguments[i]->type == FW_BOOL) << i;
            else if (!numbers) return FW_INVALID;
            else step.reals.push_back(numbers[i]);
        }
        step.numbers = {truths, program->registers, 0, out->type == FW_BOOL};
        for (int i = 0; i < program->step_count; ++i) {
            const fw_instruction& s = program->steps[i];
            if (!s.name) return FW_INVALID;
            step.words.push_back(s.name);
            for (int slot : {s.to, s.a, s.b, s.c}) step.numbers.push_back(slot);
        }
        step.outputs = {out};
        return step.run("program");
    });
}

FW_PUBLIC fw_status fw_take_rows(const fw_view* table, const fw_view* index, const fw_view* out) {
    return guarded([=] {
        if (!table || !index || !out) return FW_INVALID;
        return Operation{{table, index}, {out}, {}, {}, {}}.run("embedding");
    });
}

FW_PUBLIC fw_status fw_gather(const fw_view* x, const fw_view* index, int dim, const fw_view* out) {
    return guarded([=] {
        if (!x || !index || !out) return FW_INVALID;
        return Operation{{x, index}, {out}, {dim}, {}, {}}.run("gather");
    });
}

FW_PUBLIC fw_status fw_sort(const fw_view* x, int dim, int descending, const fw_view* values, const fw_view* places) {
    return guarded([=] {
        if (!x || (!values && !places)) return FW_INVALID;
        return Operation{{x}, {values, places}, {dim, descending != 0}, {}, {}}.run("sort");
    });
}

FW_PUBLIC fw_status fw_topk(const fw_view* x, int dim, int largest, const fw_view* values, const fw_view* places) {
    return guarded([=] {
        const fw_view* either = values ? values : places;
        if (!x || !sound(either)) return FW_INVALID;
        if (dim < 0 || dim >= either->ndim) return FW_MISMATCH;
        return Operation{{x}, {values, places}, {either->shape[dim], dim, largest != 0}, {}, {}}.run("topk");
    });
}

FW_PUBLIC fw_status fw_cumulate(int how, const fw_view* x, int dim, int reverse, const fw_view* out, const fw_view* places) {
    return guarded([=] {
        if (!x || !out || how < FW_RUNNING_SUM || how > FW_RUNNING_LOG_SUM) return FW_INVALID;
        Operation step{{x}, {out}, {how, dim, reverse != 0}, {}, {}};
        if (how == FW_RUNNING_LARGEST || how == FW_RUNNING_SMALLEST) step.outputs.push_back(places);
        else if (places) return FW_INVALID;
        return step.run("cumulate");
    });
}

FW_PUBLIC fw_status fw_random_seed(fw_random* state, uint64_t seed, uint64_t stream) {
    if (!state) return FW_INVALID;
    *state = {};
    state->words[0] = seed, state->words[1] = stream, state->words[10] = 4;
    return FW_OK;
}

namespace {

fw_status draw(int how, fw_random* state, int64_t low, int64_t range, const fw_view* out) {
    return chosen() ? chosen()->draw(how, state, low, range, out) : FW_UNSUPPORTED;
}

}  // namespace

FW_PUBLIC fw_status fw_random_uniform(fw_random* state, const fw_view* out) { return draw(0, state, 0, 0, out); }
FW_PUBLIC fw_status fw_random_normal(fw_random* state, const fw_view* out) { return draw(1, state, 0, 0, out); }
FW_PUBLIC fw_status fw_random_integers(fw_random* state, int64_t low, int64_t range, const fw_view* out) {
    return draw(2, state, low, range, out);
}
