// A module of its own, for any processor: what this one can do, by cpuid, and as far as the system keeps the
// registers. `framework._native` asks it which of the large modules to load.
#include <Python.h>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace {

PyObject* flags(PyObject*, PyObject*) {
    PyObject* found = PyList_New(0);
    if (!found) return nullptr;
    auto add = [&](const char* name, bool has) {
        PyObject* text = has ? PyUnicode_FromString(name) : nullptr;
        if (text) PyList_Append(found, text);
        Py_XDECREF(text);
    };
#if defined(__x86_64__)
    __builtin_cpu_init();
    add("avx2", __builtin_cpu_supports("avx2"));
    add("fma", __builtin_cpu_supports("fma"));
    add("bmi", __builtin_cpu_supports("bmi"));
    add("bmi2", __builtin_cpu_supports("bmi2"));
    add("avx512f", __builtin_cpu_supports("avx512f"));
    add("avx512bw", __builtin_cpu_supports("avx512bw"));
    add("avx512dq", __builtin_cpu_supports("avx512dq"));
    add("avx512vl", __builtin_cpu_supports("avx512vl"));
#elif defined(__aarch64__) && defined(__linux__)
    const unsigned long has = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    add("asimd", has & HWCAP_ASIMD);
    add("asimddp", has & HWCAP_ASIMDDP);
    add("sve", has & HWCAP_SVE);
    add("i8mm", more & HWCAP2_I8MM);
    add("bf16", more & HWCAP2_BF16);
#elif defined(__aarch64__)
    add("asimd", true);
#else
    (void)add;
#endif
    if (!PyErr_Occurred()) return found;
    Py_DECREF(found);
    return nullptr;
}

PyMethodDef methods[] = {{"flags", flags, METH_NOARGS, "The names of the processor's features that matter."},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "processor", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_processor() { return PyModule_Create(&module); }
