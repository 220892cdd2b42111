/* Each kernel of framework.h once, on numbers that are made by a rule; prints the results as hexadecimal numbers.
 *
 *     cc kernels.c -I. -L.. -lframework -Wl,-rpath,.. -o kernels && ./kernels
 *
 * tests/test_library.py makes the same calls in Python, where the same bits must come out. */
#include <stdio.h>
#include <stdlib.h>

#include "framework.h"

enum { MOST = 4 };

typedef struct {
    fw_view view;
    int64_t shape[MOST], strides[MOST];
    int64_t size;
} array;

static uint32_t state = 12345;

/* a number of [-1, 1) that every machine computes alike */
static float number(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)(state >> 8) / 8388608.0f - 1.0f;
}

static int bytes_of(int type) { return type == FW_FLOAT64 || type == FW_INT64 ? 8 : type == FW_BOOL ? 1 : 4; }

/* a new array, row by row; sizes end with 0 */
static array* empty(int type, int a, int b, int c, int d) {
    const int sizes[MOST] = {a, b, c, d};
    array* made = calloc(1, sizeof *made);
    int64_t step = bytes_of(type);
    int i;
    if (!made) exit(1);
    made->size = 1;
    while (made->view.ndim < MOST && sizes[made->view.ndim]) {
        made->shape[made->view.ndim] = sizes[made->view.ndim];
        made->size *= sizes[made->view.ndim++];
    }
    for (i = made->view.ndim - 1; i >= 0; --i) made->strides[i] = step, step *= made->shape[i];
    made->view.data = calloc((size_t)made->size, (size_t)bytes_of(type));
    if (!made->view.data) exit(1);
    made->view.type = type, made->view.shape = made->shape, made->view.strides = made->strides;
    return made;
}

static array* numbers(int a, int b, int c, int d) {
    array* made = empty(FW_FLOAT32, a, b, c, d);
    int64_t i;
    for (i = 0; i < made->size; ++i) ((float*)made->view.data)[i] = number();
    return made;
}

static fw_view* v(array* a) { return a ? &a->view : NULL; }

static void must(const char* name, fw_status status) {
    if (status == FW_OK) return;
    fprintf(stderr, "%s: %s\n", name, fw_status_text(status));
    exit(1);
}

static void tell(const char* name, fw_status status, const array* a) {
    int64_t i;
    must(name, status);
    printf("%s", name);
    for (i = 0; i < a->size; ++i) {
        const char* p = (const char*)a->view.data + i * bytes_of(a->view.type);
        switch (a->view.type) {
            case FW_FLOAT32: printf(" %a", *(const float*)p); break;
            case FW_FLOAT64: printf(" %a", *(const double*)p); break;
            case FW_INT64: printf(" %lld", (long long)*(const int64_t*)p); break;
            default: printf(" %d", *p);
        }
    }
    printf("\n");
}

static void images(void) {
    const fw_windows conv = {2, {0}, {1, 2}, {1, 0}, {1, 1}}, pool = {2, {2, 3}, {2, 2}, {0, 1}, {1, 1}};
    array *x = numbers(2, 6, 9, 11), *w = numbers(8, 3, 3, 3), *bias = numbers(8, 0, 0, 0), *out = empty(FW_FLOAT32, 2, 8, 9, 5);
    tell("conv", fw_conv(v(x), v(w), v(bias), &conv, 2, 1, v(out)), out);
    out = empty(FW_FLOAT32, 2, 6, 4, 6);
    tell("max_pool", fw_max_pool(v(x), &pool, v(out)), out);
    tell("mean_pool", fw_mean_pool(v(x), &pool, 0, 0, v(out)), out);
}

static void norms(void) {
    array *x = numbers(3, 5, 7, 0), *w = numbers(7, 0, 0, 0), *bias = numbers(7, 0, 0, 0), *out = empty(FW_FLOAT32, 3, 5, 7, 0);
    array *mean = numbers(5, 0, 0, 0), *var = numbers(5, 0, 0, 0);
    int i;
    for (i = 0; i < 5; ++i) ((float*)var->view.data)[i] += 1.5f;
    tell("layer_norm", fw_layer_norm(v(x), 1, v(w), v(bias), 1e-5, v(out)), out);
    tell("rms_norm", fw_rms_norm(v(x), 1, v(w), 1e-5, v(out)), out);
    tell("batch_norm", fw_batch_norm(v(x), v(mean), v(var), NULL, NULL, 1e-5, v(out)), out);
    tell("softmax", fw_softmax(v(x), 1, 0, v(out)), out);
}

static void sequences(void) {
    array *q = numbers(2, 3, 6, 8), *k = numbers(2, 3, 9, 8), *out = empty(FW_FLOAT32, 2, 3, 6, 8);
    array *x = numbers(4, 2, 5, 0), *h0 = numbers(2, 6, 0, 0), *c0 = numbers(2, 6, 0, 0), *y = empty(FW_FLOAT32, 4, 2, 6, 0);
    array *w_ih = numbers(24, 5, 0, 0), *w_hh = numbers(24, 6, 0, 0), *b_ih = numbers(24, 0, 0, 0), *b_hh = numbers(24, 0, 0, 0);
    array* c = empty(FW_FLOAT32, 2, 6, 0, 0);
    tell("attention", fw_attention(v(q), v(k), v(k), NULL, 0, 0.25, v(out)), out);
    tell("lstm", fw_recurrent(FW_LSTM, v(x), v(h0), v(c0), v(w_ih), v(w_hh), v(b_ih), v(b_hh), 0, v(y), NULL, v(c)), y);
    tell("cell", FW_OK, c);
}

/* sigmoid(x) * y + 0.5, y broadcast; x > 0.25 */
static void programs(void) {
    const double half = 0.5, limits[] = {0, 0.25};
    const fw_instruction steps[] = {{"sigmoid", 3, 0, 0, 0}, {"mul", 3, 3, 1, 0}, {"add", 4, 3, 2, 0}};
    const fw_instruction above[] = {{"gt", 2, 0, 1, 0}};
    const fw_program mixed = {2, 1, &half, 1, steps, 3}, compared = {2, 0, NULL, 0, above, 1};
    array *x = numbers(4, 6, 0, 0), *y = numbers(6, 0, 0, 0), *out = empty(FW_FLOAT32, 4, 6, 0, 0), *truth = empty(FW_BOOL, 4, 6, 0, 0);
    const fw_view* arguments[] = {v(x), v(y)};
    tell("program", fw_run_program(&mixed, arguments, NULL, v(out)), out);
    arguments[1] = NULL;
    tell("above", fw_run_program(&compared, arguments, limits, v(truth)), truth);
}

static void orders(void) {
    array *x = numbers(4, 9, 0, 0), *out = empty(FW_FLOAT32, 4, 9, 0, 0), *best = empty(FW_FLOAT32, 4, 3, 0, 0);
    array *places = empty(FW_INT64, 4, 9, 0, 0), *top = empty(FW_INT64, 4, 3, 0, 0), *rows = empty(FW_FLOAT32, 2, 9, 0, 0);
    array *sums = empty(FW_FLOAT32, 9, 0, 0, 0), *index = empty(FW_INT64, 2, 0, 0, 0);
    tell("sort", fw_sort(v(x), 1, 0, v(out), v(places)), out);
    tell("places", FW_OK, places);
    tell("gather", fw_gather(v(x), v(places), 1, v(out)), out);
    tell("topk", fw_topk(v(x), 1, 1, v(best), v(top)), best);
    tell("cumsum", fw_cumulate(FW_RUNNING_SUM, v(x), 0, 0, v(out), NULL), out);
    tell("cummax", fw_cumulate(FW_RUNNING_LARGEST, v(x), 1, 0, v(out), v(places)), out);
    tell("sum", fw_fold(FW_SUM, v(x), 1u << 0, v(sums)), sums);
    ((int64_t*)index->view.data)[0] = 3, ((int64_t*)index->view.data)[1] = -3;
    tell("rows", fw_take_rows(v(x), v(index), v(rows)), rows);
}

static void random_numbers(void) {
    fw_random state;
    array *x = empty(FW_FLOAT32, 20, 0, 0, 0), *y = empty(FW_FLOAT64, 20, 0, 0, 0), *z = empty(FW_INT64, 20, 0, 0, 0);
    must("seed", fw_random_seed(&state, 5, 0));
    tell("uniform", fw_random_uniform(&state, v(x)), x);
    tell("normal", fw_random_normal(&state, v(y)), y);
    tell("integers", fw_random_integers(&state, -3, 1000, v(z)), z);
}

/* p - lr m, where the momentum m is the gradient at the first step */
static void steps(void) {
    const fw_setting sgd[] = {{"lr", 0.1}, {"momentum", 0.9}, {"share", 1}, {"has_momentum", 1}, {"first", 1},
                              {"dampened", 0}, {"nesterov", 0}, {"maximize", 0}, {"weight_decay", 0.01}};
    array *p = numbers(5, 3, 0, 0), *g = numbers(5, 3, 0, 0), *m = empty(FW_FLOAT32, 5, 3, 0, 0);
    const fw_view* arrays[] = {v(p), v(g), v(m)};
    array* norm = empty(FW_FLOAT64, 1, 0, 0, 0);
    tell("sgd", fw_optimizer_step("sgd", arrays, 3, NULL, sgd, sizeof sgd / sizeof *sgd), p);
    tell("momentum", FW_OK, m);
    tell("norm", fw_norm(arrays + 1, 1, (double*)norm->view.data), norm);
}

int main(void) {
    if (fw_version() < FW_VERSION) return 1;
    images();
    norms();
    sequences();
    programs();
    orders();
    random_numbers();
    steps();
    return 0;
}
