/* A small classifier without Python: linear, ReLU, linear, softmax. Prints the probabilities as hexadecimal numbers.
 *
 *     cc example.c -I. -L.. -lframework -Wl,-rpath,.. -o example && ./example
 *
 * Weights are made by a rule that tests/test_library.py repeats in Python, where the same bits must come out. */
#include <stdio.h>
#include <stdlib.h>

#include "framework.h"

enum { SAMPLES = 9, INPUTS = 50, HIDDEN = 37, CLASSES = 10 };

static uint32_t state = 12345;

/* a number of [-1, 1) that every machine computes alike */
static float number(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)(state >> 8) / 8388608.0f - 1.0f;
}

static float* numbers(int n) {
    float* p = malloc((size_t)n * sizeof(float));
    if (!p) exit(1);
    for (int i = 0; i < n; ++i) p[i] = number();
    return p;
}

/* a view of rows x cols numbers; of one row of them where rows is 0 */
typedef struct {
    fw_view view;
    int64_t shape[2], strides[2];
} array;

static void set(array* a, float* data, int rows, int cols) {
    const int one = rows == 0;
    a->shape[0] = one ? cols : rows, a->shape[1] = cols;
    a->strides[0] = one ? (int64_t)sizeof(float) : cols * (int64_t)sizeof(float);
    a->strides[1] = sizeof(float);
    a->view.data = data, a->view.type = FW_FLOAT32, a->view.ndim = one ? 1 : 2;
    a->view.shape = a->shape, a->view.strides = a->strides;
}

static void must(fw_status status) {
    if (status == FW_OK) return;
    fprintf(stderr, "libframework: %s\n", fw_status_text(status));
    exit(1);
}

int main(void) {
    if (fw_version() < FW_VERSION) return 1;
    array x, w1, b1, h, w2, b2, y;
    set(&x, numbers(SAMPLES * INPUTS), SAMPLES, INPUTS);
    set(&w1, numbers(HIDDEN * INPUTS), HIDDEN, INPUTS);
    set(&b1, numbers(HIDDEN), 0, HIDDEN);
    set(&w2, numbers(CLASSES * HIDDEN), CLASSES, HIDDEN);
    set(&b2, numbers(CLASSES), 0, CLASSES);
    set(&h, numbers(SAMPLES * HIDDEN), SAMPLES, HIDDEN);
    set(&y, numbers(SAMPLES * CLASSES), SAMPLES, CLASSES);
    must(fw_linear(&x.view, &w1.view, &b1.view, 1, &h.view));
    must(fw_linear(&h.view, &w2.view, &b2.view, 0, &y.view));
    must(fw_softmax(&y.view, 1, 0, &y.view));
    printf("%s\n", fw_instruction_set());
    for (int i = 0; i < SAMPLES; ++i)
        for (int j = 0; j < CLASSES; ++j) printf("%a%c", ((float*)y.view.data)[i * CLASSES + j], j + 1 < CLASSES ? ' ' : '\n');
    return 0;
}
