// A module of its own, for any processor: products of matrices by NVIDIA's cuBLASLt, which is loaded when it is there (no
// header or library of CUDA's is needed to build this).
//
// `Plan` is a product of given sizes, steps and types, for which cuBLASLt was asked once how it would do it; a call of it
// hands over addresses. What follows the product (its epilogue: a bias, relu, gelu and their slopes) is part of the plan.
// Numbers and structures are those of cublasLt.h, which have not changed since CUDA 11.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>
#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace {

enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, DESC_AUX_POINTER = 11, DESC_AUX_STEP = 12 };
enum { LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_OFFSET = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5 };
// bits of an epilogue: what takes a vector (a bias, or the gradient of one), and what takes a matrix besides
constexpr uint32_t EPILOGUE_VECTOR = 4 | 16 | 256 | 512, EPILOGUE_AUX = 128;
enum { FLOAT32 = 0, FLOAT64 = 1 };

struct Algorithm {
    uint64_t data[8];
};
struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

struct Library {
    int (*desc_create)(void**, int, int) = nullptr;
    int (*desc_set)(void*, int, const void*, size_t) = nullptr;
    int (*desc_destroy)(void*) = nullptr;
    int (*layout_create)(void**, int, uint64_t, uint64_t, int64_t) = nullptr;
    int (*layout_set)(void*, int, const void*, size_t) = nullptr;
    int (*layout_destroy)(void*) = nullptr;
    int (*preference_create)(void**) = nullptr;
    int (*preference_set)(void*, int, const void*, size_t) = nullptr;
    int (*preference_destroy)(void*) = nullptr;
    int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*) = nullptr;
    int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*,
                  void*, const Algorithm*, void*, size_t, void*) = nullptr;
} lt;

// One matrix, or a batch of them a step apart; columns lie together.
struct Matrix {
    unsigned long long rows, columns;
    long long step, batch_step;

    int made(void** layout, int type, int32_t batch) const {
        if (int status = lt.layout_create(layout, type, rows, columns, step)) return status;
        if (batch == 1) return 0;
        const int64_t offset = batch_step;
        if (int status = lt.layout_set(*layout, LAYOUT_BATCH_COUNT, &batch, sizeof batch)) return status;
        return lt.layout_set(*layout, LAYOUT_BATCH_OFFSET, &offset, sizeof offset);
    }
};

// What stands behind a plan; cuBLASLt's objects go with it.
struct Planned {
    void *desc = nullptr, *layouts[3] = {};
    Algorithm algorithm{};
    size_t workspace = 0;
    uint32_t epilogue = 0;
    bool wide = false;
    std::mutex lock;  // of the addresses that the descriptor holds

    Planned() = default;
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;
    ~Planned() {
        for (void* layout : layouts)
            if (layout) lt.layout_destroy(layout);
        if (desc) lt.desc_destroy(desc);
    }

    // 0, or the status of what cuBLASLt does not take.
    int plan(void* handle, int type, int computed, const int32_t (&turned)[2], const Matrix (&matrices)[3], int32_t batch,
             uint32_t end, int64_t aux_step, const uint32_t (&alignments)[5], uint64_t room) {
        wide = type == FLOAT64, epilogue = end;
        if (int status = lt.desc_create(&desc, computed, wide ? FLOAT64 : FLOAT32)) return status;
        for (int i = 0; i < 2; ++i)
            if (int status = lt.desc_set(desc, i ? DESC_TRANSB : DESC_TRANSA, &turned[i], sizeof turned[i])) return status;
        if (int status = lt.desc_set(desc, DESC_EPILOGUE, &end, sizeof end)) return status;
        if (end & EPILOGUE_AUX)
            if (int status = lt.desc_set(desc, DESC_AUX_STEP, &aux_step, sizeof aux_step)) return status;
        // only how these addresses are aligned counts while it is planned
        if (int status = lead(reinterpret_cast<void*>(uintptr_t(alignments[3])),
                              reinterpret_cast<void*>(uintptr_t(alignments[4]))))
            return status;
        for (int i = 0; i < 3; ++i)
            if (int status = matrices[i].made(&layouts[i], type, batch)) return status;
        void* preference = nullptr;
        if (int status = lt.preference_create(&preference)) return status;
        int status = lt.preference_set(preference, PREFERENCE_WORKSPACE, &room, sizeof room);
        for (int i = 0; i < 4 && !status; ++i)  // of both factors, and of the result twice: it is read and written
            status = lt.preference_set(preference, PREFERENCE_ALIGNMENT_A + i, &alignments[i < 3 ? i : 2], sizeof(uint32_t));
        Heuristic found{};
        int count = 0;
        if (!status)
            status = lt.heuristic(handle, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference, 1, &found, &count);
        lt.preference_destroy(preference);
        constexpr int NOT_SUPPORTED = 15;
        if (status || !count || found.state) return status ? status : count ? found.state : NOT_SUPPORTED;
        algorithm = found.algorithm;
        workspace = found.workspace;
        return 0;
    }

    // Tell where the vector and the matrix of the epilogue lie.
    int lead(const void* vector, const void* aux) {
        if (epilogue & EPILOGUE_VECTOR)
            if (int status = lt.desc_set(desc, DESC_BIAS_POINTER, &vector, sizeof vector)) return status;
        return epilogue & EPILOGUE_AUX ? lt.desc_set(desc, DESC_AUX_POINTER, &aux, sizeof aux) : 0;
    }

    int run(void* handle, const void* a, const void* b, void* out, const void* vector, const void* aux, void* space,
            void* stream) {
        const float one = 1, zero = 0;
        const double one_wide = 1, zero_wide = 0;
        const void *alpha = wide ? static_cast<const void*>(&one_wide) : &one;
        const void *beta = wide ? static_cast<const void*>(&zero_wide) : &zero;
        std::lock_guard<std::mutex> guard(lock);
        if (int status = lead(vector, aux)) return status;
        return lt.matmul(handle, desc, alpha, a, layouts[0], b, layouts[1], beta, out, layouts[2], out, layouts[2], &algorithm,
                         space, workspace, stream);
    }
};

struct Plan {
    PyObject_HEAD
    Planned* planned;
    Py_ssize_t workspace;
};

PyTypeObject* plan_type = nullptr;

void plan_free(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<Plan*>(self)->planned;
    type->tp_free(self);
    Py_DECREF(type);
}

bool addresses(PyObject* const* given, void** to, int count) {
    for (int i = 0; i < count; ++i) {
        to[i] = PyLong_AsVoidPtr(given[i]);
        if (!to[i] && PyErr_Occurred()) return false;
    }
    return true;
}

PyObject* plan_run(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    void* at[8];  // the handle, both factors, the result, the epilogue's vector and matrix, room to work in, the stream
    if (count != 8) {
        PyErr_Format(PyExc_TypeError, "a plan takes 8 addresses, got %zd", count);
        return nullptr;
    }
    if (!addresses(given, at, 8)) return nullptr;
    Planned& planned = *reinterpret_cast<Plan*>(self)->planned;
    const uint32_t end = planned.epilogue;
    if (!at[0] || !at[1] || !at[2] || !at[3] || (end & EPILOGUE_VECTOR && !at[4]) || (end & EPILOGUE_AUX && !at[5]) ||
        (planned.workspace && !at[6])) {
        PyErr_SetString(PyExc_ValueError, "a plan cannot work at address 0");
        return nullptr;
    }
    int status;
    Py_BEGIN_ALLOW_THREADS  // the queue may be full, and what empties it may want to run Python
    status = planned.run(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(status);
}

PyMethodDef plan_methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plan_run)), METH_FASTCALL,
     "run(handle, a, b, out, vector, aux, workspace, stream): start the product of what lies at these addresses; the status."},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef plan_members[] = {
    {"workspace", T_PYSSIZET, offsetof(Plan, workspace), READONLY, "Bytes that a run works in."},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot plan_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(plan_free)},
                            {Py_tp_methods, plan_methods},
                            {Py_tp_members, plan_members},
                            {0, nullptr}};
PyType_Spec plan_spec = {"framework._native.products.Plan", sizeof(Plan), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, plan_slots};

PyObject* start(PyObject*, PyObject* arguments) {
    const char* library;
    if (!PyArg_ParseTuple(arguments, "s:start", &library)) return nullptr;
#if defined(_WIN32)
    Py_RETURN_FALSE;
#else
    void* at = dlopen(library, RTLD_NOW);
    if (!at) Py_RETURN_FALSE;
    Library found;
    const auto take = [at](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(at, name));
        return function != nullptr;
    };
    if (!take(found.desc_create, "cublasLtMatmulDescCreate") || !take(found.desc_set, "cublasLtMatmulDescSetAttribute") ||
        !take(found.desc_destroy, "cublasLtMatmulDescDestroy") || !take(found.layout_create, "cublasLtMatrixLayoutCreate") ||
        !take(found.layout_set, "cublasLtMatrixLayoutSetAttribute") ||
        !take(found.layout_destroy, "cublasLtMatrixLayoutDestroy") ||
        !take(found.preference_create, "cublasLtMatmulPreferenceCreate") ||
        !take(found.preference_set, "cublasLtMatmulPreferenceSetAttribute") ||
        !take(found.preference_destroy, "cublasLtMatmulPreferenceDestroy") ||
        !take(found.heuristic, "cublasLtMatmulAlgoGetHeuristic") || !take(found.matmul, "cublasLtMatmul"))
        Py_RETURN_FALSE;
    lt = found;
    Py_RETURN_TRUE;
#endif
}

PyObject* plan(PyObject*, PyObject* arguments) {
    PyObject* address;
    int type, computed, turned_a, turned_b, batch;
    Matrix m[3];
    unsigned epilogue, aligned[5];
    long long aux_step;
    unsigned long long room;
    if (!PyArg_ParseTuple(arguments, "Oii(pp)(KKLL)(KKLL)(KKLL)iIL(IIIII)K:plan", &address, &type, &computed, &turned_a, &turned_b,
                          &m[0].rows, &m[0].columns, &m[0].step, &m[0].batch_step, &m[1].rows, &m[1].columns, &m[1].step,
                          &m[1].batch_step, &m[2].rows, &m[2].columns, &m[2].step, &m[2].batch_step, &batch, &epilogue,
                          &aux_step, &aligned[0], &aligned[1], &aligned[2], &aligned[3], &aligned[4], &room))
        return nullptr;
    void* handle = PyLong_AsVoidPtr(address);
    if (!handle && PyErr_Occurred()) return nullptr;
    if (!lt.matmul || !handle) {
        PyErr_SetString(PyExc_RuntimeError, "cuBLASLt was not started, or there is no handle");
        return nullptr;
    }
    auto* self = reinterpret_cast<Plan*>(plan_type->tp_alloc(plan_type, 0));
    if (!self) return nullptr;
    self->planned = new (std::nothrow) Planned;
    if (!self->planned) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    const int32_t turned[2] = {turned_a, turned_b};
    const uint32_t alignments[5] = {aligned[0], aligned[1], aligned[2], aligned[3], aligned[4]};
    if (self->planned->plan(handle, type, computed, turned, m, batch, epilogue, aux_step, alignments, room)) {
        Py_DECREF(self);
        Py_RETURN_NONE;
    }
    self->workspace = Py_ssize_t(self->planned->workspace);
    return reinterpret_cast<PyObject*>(self);
}

PyMethodDef functions[] = {
    {"start", start, METH_VARARGS, "start(library): load cuBLASLt; whether it is there with all that is used."},
    {"plan", plan, METH_VARARGS,
     "plan(handle, type, computed, turned, a, b, out, batch, epilogue, aux_step, alignments, room): how cuBLASLt does such a "
     "product in at most so many bytes, or None; a matrix is (rows, columns, step, step of the batch)."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "products", "Products of matrices by cuBLASLt.", -1, functions,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_products() {
    plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&plan_spec));
    return plan_type ? PyModule_Create(&definition) : nullptr;
}
