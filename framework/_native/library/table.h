// The functions of libframework as one instruction set has them.
#pragma once

#include "library/framework.h"

// One operation of models by name, with the operands and settings of runtime/README.md; NULL where one is left out.
struct FwStep {
    const char* name;
    const fw_view* const* inputs;
    const fw_view* const* outputs;
    const int64_t* numbers;
    const double* reals;
    const char* const* words;
    int input_count, output_count, number_count, real_count, word_count;
};

struct FwTable {
    const char* name;
    int (*threads)();
    fw_status (*set_threads)(int n);
    fw_status (*set_allocator)(const fw_allocator* a);
    fw_status (*matmul)(const fw_view* a, const fw_view* b, const fw_view* out);
    fw_status (*linear)(const fw_view* x, const fw_view* w, const fw_view* bias, int relu, const fw_view* out);
    fw_status (*softmax)(const fw_view* x, int dim, int log, const fw_view* out);
    fw_status (*draw)(int how, fw_random* state, int64_t low, int64_t range, const fw_view* out);  // uniform, normal, whole
    fw_status (*step)(const FwStep* step);
    fw_status (*optimizer_step)(const char* method, const fw_view* const* arrays, int array_count, const fw_view* rows,
                                const fw_setting* settings, int setting_count);
    fw_status (*norm)(const fw_view* const* arrays, int array_count, double* norm);
    fw_status (*model_load)(const char* path, framework_model** model, framework_message* why);
    fw_status (*model_read)(const void* bytes, size_t count, framework_model** model, framework_message* why);
    void (*model_free)(framework_model* model);
    int64_t (*model_bytes)(const framework_model* model);
    int (*model_inputs)(const framework_model* model);
    int (*model_outputs)(const framework_model* model);
    fw_status (*model_input)(const framework_model* model, int i, framework_port* port);
    fw_status (*model_output)(const framework_model* model, int i, framework_port* port);
    fw_status (*request_new)(const framework_model* model, framework_request** request);
    void (*request_free)(framework_request* request);
    fw_status (*model_run)(framework_request* request, const fw_view* inputs, int input_count, fw_view* outputs,
                           int output_count, framework_message* why);
};

namespace fw {  // step.cpp
fw_status run_alone(const FwStep* step);
}

namespace fw::models {  // model.cpp
fw_status load(const char* path, framework_model** model, framework_message* why);
fw_status read(const void* bytes, size_t count, framework_model** model, framework_message* why);
void drop(framework_model* model);
int64_t bytes(const framework_model* model);
int inputs(const framework_model* model);
int outputs(const framework_model* model);
fw_status input(const framework_model* model, int i, framework_port* port);
fw_status output(const framework_model* model, int i, framework_port* port);
fw_status new_request(const framework_model* model, framework_request** request);
void drop_request(framework_request* request);
fw_status run(framework_request* request, const fw_view* inputs, int input_count, fw_view* outputs, int output_count,
              framework_message* why);
}  // namespace fw::models
