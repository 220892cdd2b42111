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

#define FW_VERSION 2 /* of this interface: fw_version() of the library must be as large */
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
    FW_INT64 = 3, FW_INT32 = 4, FW_BOOL = 5, FW_UINT8 = 6
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
const char* fw_instruction_set(void); /* the widest one built in that this processor has */
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
