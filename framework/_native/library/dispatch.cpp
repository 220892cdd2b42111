// What libframework shows: each call goes to the widest instruction set built in that the processor has, or to the one that
// FRAMEWORK_NATIVE names, as in Python.
#include "library/dispatch.h"

#include <cstdlib>
#include <cstring>

// What the objects of a set do before its first use; nothing where there is one set, whose objects do it when they are loaded.
using Start = void (*)();
#define X(set)                                                                                     \
    extern "C" {                                                                                   \
    extern const FwTable fw_table_##set;                                                           \
    extern const Start __attribute__((weak, visibility("hidden"))) __start_fw_init_##set[];        \
    extern const Start __attribute__((weak, visibility("hidden"))) __stop_fw_init_##set[];         \
    }
FW_TABLES
#undef X

namespace {

struct Set {
    const FwTable* table;
    const Start *begin, *end;
};

// From the narrowest to the widest, as the build lists them.
const Set all[] = {
#define X(set) {&fw_table_##set, __start_fw_init_##set, __stop_fw_init_##set},
    FW_TABLES
#undef X
};

bool runs(const char* set) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool two = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (set[0] == 'b') return true;
    if (set[3] == '2') return two;
    return two && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return set[0] == 'b';
#endif
}

}  // namespace

const FwTable* chosen() {
    static const FwTable* const best = [] {
        const Set* found = nullptr;
        const char* wanted = std::getenv("FRAMEWORK_NATIVE");
        for (const Set& s : all) {
            if (!runs(s.table->name)) continue;
            found = &s;
            if (wanted && !std::strcmp(wanted, s.table->name)) break;
        }
        if (!found) return static_cast<const FwTable*>(nullptr);
        for (const Start* start = found->begin; start != found->end; ++start) (*start)();
        return found->table;
    }();
    return best;
}

FW_PUBLIC int fw_version(void) { return FW_VERSION; }
FW_PUBLIC const char* fw_instruction_set(void) { return chosen() ? chosen()->name : "none"; }
FW_PUBLIC const char* fw_status_text(int status) {
    static const char* const texts[] = {"ok", "a view, a size, a dimension or a type that there is not",
                                        "shapes or types that do not fit each other",
                                        "an element type or a layout that this function does not take", "out of memory"};
    return status >= FW_OK && status <= FW_NO_MEMORY ? texts[status] : "no such status";
}
FW_PUBLIC int fw_threads(void) { return chosen() ? chosen()->threads() : 0; }

#define FW_CALL(call) return chosen() ? chosen()->call : FW_UNSUPPORTED
FW_PUBLIC fw_status fw_set_threads(int n) { FW_CALL(set_threads(n)); }
FW_PUBLIC fw_status fw_set_allocator(const fw_allocator* a) { FW_CALL(set_allocator(a)); }
FW_PUBLIC fw_status fw_matmul(const fw_view* a, const fw_view* b, const fw_view* out) { FW_CALL(matmul(a, b, out)); }
FW_PUBLIC fw_status fw_linear(const fw_view* x, const fw_view* w, const fw_view* bias, int relu, const fw_view* out) {
    FW_CALL(linear(x, w, bias, relu, out));
}
FW_PUBLIC fw_status fw_softmax(const fw_view* x, int dim, int log, const fw_view* out) {
    FW_CALL(softmax(x, dim, log, out));
}
FW_PUBLIC fw_status fw_optimizer_step(const char* method, const fw_view* const* arrays, int array_count, const fw_view* rows,
                                      const fw_setting* settings, int setting_count) {
    FW_CALL(optimizer_step(method, arrays, array_count, rows, settings, setting_count));
}
FW_PUBLIC fw_status fw_norm(const fw_view* const* arrays, int array_count, double* norm) {
    FW_CALL(norm(arrays, array_count, norm));
}

FW_PUBLIC fw_status framework_model_load(const char* path, framework_model** model, framework_message* why) {
    FW_CALL(model_load(path, model, why));
}
FW_PUBLIC fw_status framework_model_read(const void* bytes, size_t count, framework_model** model,
                                         framework_message* why) {
    FW_CALL(model_read(bytes, count, model, why));
}
FW_PUBLIC void framework_model_free(framework_model* model) {
    if (chosen()) chosen()->model_free(model);
}
FW_PUBLIC int64_t framework_model_bytes(const framework_model* model) { return chosen() ? chosen()->model_bytes(model) : 0; }
FW_PUBLIC int framework_model_inputs(const framework_model* model) { return chosen() ? chosen()->model_inputs(model) : 0; }
FW_PUBLIC int framework_model_outputs(const framework_model* model) {
    return chosen() ? chosen()->model_outputs(model) : 0;
}
FW_PUBLIC fw_status framework_model_input(const framework_model* model, int i, framework_port* port) {
    FW_CALL(model_input(model, i, port));
}
FW_PUBLIC fw_status framework_model_output(const framework_model* model, int i, framework_port* port) {
    FW_CALL(model_output(model, i, port));
}
FW_PUBLIC fw_status framework_request_new(const framework_model* model, framework_request** request) {
    FW_CALL(request_new(model, request));
}
FW_PUBLIC void framework_request_free(framework_request* request) {
    if (chosen()) chosen()->request_free(request);
}
FW_PUBLIC fw_status framework_model_run(framework_request* request, const fw_view* inputs, int input_count,
                                        fw_view* outputs, int output_count, framework_message* why) {
    FW_CALL(model_run(request, inputs, input_count, outputs, output_count, why));
}
