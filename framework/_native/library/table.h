// The functions of libframework as one instruction set has them.
#pragma once

#include "framework.h"

struct FwTable {
    const char* name;
    int (*threads)();
    fw_status (*set_threads)(int n);
    fw_status (*set_allocator)(const fw_allocator* a);
    fw_status (*matmul)(const fw_view* a, const fw_view* b, const fw_view* out);
    fw_status (*linear)(const fw_view* x, const fw_view* w, const fw_view* bias, int relu, const fw_view* out);
    fw_status (*softmax)(const fw_view* x, int dim, int log, const fw_view* out);
};
