"""Kernels of ours compiled and kept by a real CuPy, without a GPU: python cupy_kept.py [more]

CuPy's own code compiles a module (by NVRTC) and keeps it in CUPY_CACHE_DIR, or finds it there; what is left
out is to load it into a device. Writes {name: (whether it was compiled, what would be loaded, in short)}.
more: a comment in every source, so that they are others.
"""

import hashlib
import json
import sys
import types

import cupy
from cupy.cuda import compiler

from framework.backends import cuda, device_code
from framework.ops.language.cuda import elementwise_source, write
from framework.ops.language.cuda_fold import fold_source

found = {}


class Module:
    """In place of what loads a kernel into a device."""

    def load(self, cubin):
        self.kept = hashlib.sha1(cubin).hexdigest()

    def _set_mapping(self, mapping):
        pass


def raw_module(code, options, **given):
    before = len(compiled)
    made = compiler._compile_module_with_cache(code, options, **given)
    return len(compiled) > before, made.kept


def compile_and_count(*given, compile_it=compiler._compile_using_nvrtc_no_warning, **more):
    compiled.append(given)
    return compile_it(*given, **more)


compiled: list = []
compiler.function = types.SimpleNamespace(Module=Module)
compiler._get_arch = lambda: "90"  # these two would ask a device
compiler._get_arch_for_options_for_nvrtc = lambda arch=None: (f"-arch=sm_{arch}", "cubin")
compiler._compile_using_nvrtc_no_warning = compile_and_count
cupy.RawModule, cuda.cupy = raw_module, lambda: cupy
end = "// others\n" if "more" in sys.argv else ""
each = write("x * y", ("x", "y"), ("f", "f"))
for text in (elementwise_source("elementwise", each), fold_source("Sum", each)):
    found[text] = device_code.module(text + end)
for source in device_code.SOURCES:
    if "f" in source.dtypes and (source.cooperative or source.options or "softmax" in source.text("f")):
        found[source.path] = device_code.module(source.text("f") + end, source.cooperative, source.options)
json.dump(found, sys.stdout)
