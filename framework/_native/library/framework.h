/* libframework: the kernels of framework for programs without Python.
 *
 * Arrays are views of the caller's memory; nothing is kept after a call. Every function that can fail gives a status and
 * leaves results as they were if that is neither FW_OK nor FW_NO_MEMORY. Calls from several threads are allowed; one
 * of them at a time shares its work among the threads of the pool. Results are the bits that `framework` computes in
 * Python on the same processor, with as many threads.
 */
#ifndef FRAMEWORK_H
#define FRAMEWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FW_VERSION 4 /* of this interface: fw_version() of the library must be as large */
#define FW_MOST_DIMS 64

typedef enum {
    FW_OK = 0,
    FW_INVALID = 1,     /* no view where one is needed, a negative or an uncountable size, no such dimension or type */
    FW_MISMATCH = 2,    /* shapes or types that do not fit each other */
    FW_UNSUPPORTED = 3, /* an element type or a layout that the function does not take */
    FW_NO_MEMORY = 4
} fw_status;

typedef enum {
    FW_FLOAT32 = 0, FW_FLOAT64 = 1, FW_BFLOAT16 = 2, /* of kernels; models have the others, too */
    FW_INT64 = 3, FW_INT32 = 4, FW_BOOL = 5, FW_UINT8 = 6, FW_INT8 = 7
} fw_type;

typedef struct {
    void* data;
    int type;               /* a fw_type */
    int ndim;
    const int64_t* shape;
    const int64_t* strides; /* in bytes */
} fw_view;

/* Memory for kernels' own use, at multiples of 4096 bytes; called by all threads, until they end. */
typedef struct {
    void* (*take)(size_t bytes, void* context); /* NULL where there is none */
    void (*give_back)(void* p, size_t bytes, void* context);
    void* context;
} fw_allocator;

int fw_version(void);
const char* fw_instruction_set(void); /* the widest one built in that this processor has,
   or the one of those that FRAMEWORK_NATIVE in the environment names */
const char* fw_status_text(int status);
int fw_threads(void); /* that share the work of a call, the calling one included */
fw_status fw_set_threads(int n);
fw_status fw_set_allocator(const fw_allocator* a); /* before any kernel runs */

/* out = a b, of vectors, matrices or batches of them, which broadcast as NumPy's matmul does. Strides of a and b are
 * any multiples of the element size. `out` is row-major without gaps, here and below, and apart from the operands. */
fw_status fw_matmul(const fw_view* a, const fw_view* b, const fw_view* out);

/* out = x w^T + bias, then max(0, .) if relu: x (..., k), w (n, k), bias (n) or NULL, out (..., n). */
fw_status fw_linear(const fw_view* x, const fw_view* w, const fw_view* bias, int relu, const fw_view* out);

/* Softmax along `dim`, or its logarithm; x is float32 or float64, row-major without gaps. out may be x itself. */
fw_status fw_softmax(const fw_view* x, int dim, int log, const fw_view* out);

/* Below here views are float32 or float64 if nothing else is said, of up to 12 dimensions, with at least one element, at
 * any strides that are multiples of the element size. `out` must not share memory with operands. */

/* Windows that move over the last `dims` (1 to 3) dimensions of images (N, C, ...). `size` is that of pooling. */
typedef struct {
    int dims;
    int64_t size[3], stride[3], padding[3], dilation[3];
} fw_windows;

/* x (N, C, ...), w (out, C / groups, ...), bias (out) or NULL, out (N, out, ...); then max(0, .) if relu. */
fw_status fw_conv(const fw_view* x, const fw_view* w, const fw_view* bias, const fw_windows* windows, int64_t groups,
                  int relu, const fw_view* out);

/* The largest, or the mean, of each window. How many windows there are is what `out` says. Sums are divided by `divisor`,
 * or if that is 0 by the number of elements in the image, or with count_padding in the image and its padding. */
fw_status fw_max_pool(const fw_view* x, const fw_windows* windows, const fw_view* out);
fw_status fw_mean_pool(const fw_view* x, const fw_windows* windows, int count_padding, int64_t divisor, const fw_view* out);

/* Over the last `dims` dimensions; w and bias, of their sizes, may be NULL. batch_norm: over all but dimension 1, with the
 * given mean and variance. */
fw_status fw_layer_norm(const fw_view* x, int dims, const fw_view* w, const fw_view* bias, double eps, const fw_view* out);
fw_status fw_rms_norm(const fw_view* x, int dims, const fw_view* w, double eps, const fw_view* out);
fw_status fw_batch_norm(const fw_view* x, const fw_view* mean, const fw_view* var, const fw_view* w, const fw_view* bias,
                        double eps, const fw_view* out);

/* softmax(scale q k^T + mask) v: q (..., m, e), k (..., n, e), v (..., n, d), out (..., m, d); what stands before
 * broadcasts. mask: NULL, or (..., m, n), numbers that are added, or FW_BOOL, false where nobody looks; not with causal. */
fw_status fw_attention(const fw_view* q, const fw_view* k, const fw_view* v, const fw_view* mask, int causal, double scale,
                       const fw_view* out);

/* A layer of cells in one direction: x (steps, rows, in), h0 (rows, n), c0 (rows, n) of an LSTM, else NULL; w_ih (gates n,
 * in), w_hh (gates n, n), biases (gates n) both or NULL both; gates as PyTorch orders them. y (steps, rows, n); the last
 * states h and c (rows, n) may be NULL. */
typedef enum { FW_RNN_TANH = 0, FW_RNN_RELU = 1, FW_LSTM = 2, FW_GRU = 3 } fw_cell;
fw_status fw_recurrent(int cell, const fw_view* x, const fw_view* h0, const fw_view* c0, const fw_view* w_ih,
                       const fw_view* w_hh, const fw_view* b_ih, const fw_view* b_hh, int reverse, const fw_view* y,
                       const fw_view* h, const fw_view* c);

/* Over the dimensions whose bits are set in `dims`; out has them as sizes of 1, or not at all. */
typedef enum { FW_SUM = 0, FW_MEAN = 1, FW_LARGEST = 2, FW_SMALLEST = 3 } fw_folding;
fw_status fw_fold(int how, const fw_view* x, uint32_t dims, const fw_view* out);

/* An elementwise program, in one pass over memory. Slots are numbered: arguments, constants, registers, and last the result.
 * Each instruction (their names are in program/instructions.h) computes slot `to` from up to three others; of those that it
 * does not need any number will do. Arguments are views, which broadcast, or where they are NULL `numbers` at their place.
 * float32, float64, int64 or int32 throughout; FW_BOOL where truth values go in or out. */
typedef struct { const char* name; int to, a, b, c; } fw_instruction;
typedef struct {
    int arguments, registers;
    const double* constants;
    int constant_count;
    const fw_instruction* steps;
    int step_count;
} fw_program;
fw_status fw_run_program(const fw_program* program, const fw_view* const* arguments, const double* numbers,
                         const fw_view* out);

/* out[i...] = table[index[i...]]; any type, index FW_INT64 or FW_INT32, negative ones from the end. A position that
 * there is not is FW_INVALID. */
fw_status fw_take_rows(const fw_view* table, const fw_view* index, const fw_view* out);

/* out[i][j]... = x[i][index[i][j]...]... along `dim`; any type, index FW_INT64, negative ones from the end. */
fw_status fw_gather(const fw_view* x, const fw_view* index, int dim, const fw_view* out);

/* In order along `dim`, equal ones in the order that they had, nan the largest; topk: as many as results have there, the best
 * first. float32, float64, int64 or int32; places FW_INT64; values or places may be NULL. */
fw_status fw_sort(const fw_view* x, int dim, int descending, const fw_view* values, const fw_view* places);
fw_status fw_topk(const fw_view* x, int dim, int largest, const fw_view* values, const fw_view* places);

/* Running along `dim`: sums (with `reverse` from the end), products, extremes with their places (FW_INT64, or NULL),
 * logarithms of sums of exponentials. float32 or float64; sums and extremes of int64, too. */
typedef enum {
    FW_RUNNING_SUM = 0, FW_RUNNING_PRODUCT = 1, FW_RUNNING_LARGEST = 2, FW_RUNNING_SMALLEST = 3, FW_RUNNING_LOG_SUM = 4
} fw_running;
fw_status fw_cumulate(int how, const fw_view* x, int dim, int reverse, const fw_view* out, const fw_view* places);

/* Random numbers: float32 or float64 in [0, 1) and normal ones are those that a generator of `framework` with this seed (and stream 0) draws. int64
 * in [low, low + range) for a range below 2^32 are those of NumPy's generator in that state; `randint` of `framework` draws others, each element its
 * own under a key. `out` is row-major without gaps. The state moves on, unless the call fails. */
typedef struct { uint64_t words[13]; } fw_random;
fw_status fw_random_seed(fw_random* state, uint64_t seed, uint64_t stream);
fw_status fw_random_uniform(fw_random* state, const fw_view* out);
fw_status fw_random_normal(fw_random* state, const fw_view* out);
fw_status fw_random_integers(fw_random* state, int64_t low, int64_t range, const fw_view* out);

/* A step of an optimizer, in place: "sgd", "adagrad", "rmsprop", "adam", "adadelta" or "adamax". Of each parameter itself, its
 * gradient and its states, one parameter after the other: views of float32 or float64 that lie alike and without gaps, and
 * share no memory. `settings` are the numbers that the method asks for, each by its name and no other (optim/methods.cpp says
 * what it does with them; truth values are 0 or 1). Where one parameter is not taken none is changed.
 *
 * With `rows`, FW_INT64 in ascending order, "sgd", "adagrad" and "sparse_adam" change those rows of one parameter, and its
 * gradient has these alone. Methods without a gradient: "scale" multiplies by "factor", "clip" keeps between "low" and "high".
 * fw_norm: the root of the sum of the squares of all numbers of all views. */
typedef struct { const char* name; double value; } fw_setting;
fw_status fw_optimizer_step(const char* method, const fw_view* const* arrays, int array_count, const fw_view* rows,
                            const fw_setting* settings, int setting_count);
fw_status fw_norm(const fw_view* const* arrays, int array_count, double* norm);

/* -- models: what framework.runtime.export writes ------------------------------------------------------------------
 *
 * A model does not change after it was loaded: any number of requests, in as many threads, may use it at once. A request
 * is one caller's memory: it plans that once for the sizes of its inputs, and runs one call at a time.
 */
typedef struct framework_model framework_model;
typedef struct framework_request framework_request;

typedef struct { char text[480]; } framework_message; /* why a call failed; "" where it did not */

typedef struct {
    const char* name;     /* as long as the model lives */
    int type, ndim;       /* ndim is -1 for outputs, whose shape follows from those of the inputs */
    int64_t shape[12];    /* -1 for a size that each run may choose */
} framework_port;

/* `why` may be NULL, here and below. A damaged file gives a status, and no model. */
fw_status framework_model_load(const char* path, framework_model** model, framework_message* why);
fw_status framework_model_read(const void* bytes, size_t count, framework_model** model, framework_message* why);
void framework_model_free(framework_model* model); /* after its requests; NULL is no model and fine */
/* Bytes that the model holds: its constants, and weights in the order in which kernels read them, which the first run at
 * sizes that want them so makes, once for all requests. Results lie in the requests. */
int64_t framework_model_bytes(const framework_model* model);
int framework_model_inputs(const framework_model* model);
int framework_model_outputs(const framework_model* model);
fw_status framework_model_input(const framework_model* model, int i, framework_port* port);
fw_status framework_model_output(const framework_model* model, int i, framework_port* port);

fw_status framework_request_new(const framework_model* model, framework_request** request);
void framework_request_free(framework_request* request);

/* Runs the model: `inputs` are copied first and may have any strides. `outputs` become views of the request's memory, which
 * are right until it runs again or is freed, and are only to be read. All of both, in the model's order. */
fw_status framework_model_run(framework_request* request, const fw_view* inputs, int input_count, fw_view* outputs,
                              int output_count, framework_message* why);

#ifdef __cplusplus
}
#endif
#endif
