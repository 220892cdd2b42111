"""What a real CuPy says of names: reads a list of dotted ones, writes {name: its parameters, None for none}.

``cupy.ufunc.types`` and other values are given as they are. No GPU is needed.
"""

import importlib
import inspect
import json
import os
import re
import sys

# what CuPy has kernels compiled with, besides the architecture, folders of headers and what it is given
COMPILES_WITH = ("-ftz=true", "--device-as-default-execution-space")


def found(name):
    """The object of a dotted name; LookupError without one."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:i]))
            except ImportError as error:
                if getattr(value, "available", True) is False:
                    raise ImportError(f"{value.__name__} found no library") from error
                raise LookupError(name) from error
    return value


def parameters(value):
    """Names of parameters, "*" in front of those that take any number; None where nobody says."""
    try:
        taken = inspect.signature(value).parameters.values()
        return [{p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name for p in taken
                if p.name != "self"]
    except (TypeError, ValueError):
        pass
    text = (getattr(value, "__doc__", None) or "").strip()
    if isinstance(value, type):
        text = (getattr(value.__init__, "__doc__", None) or "").strip()
    own = getattr(value, "__name__", "")
    first = re.match(rf"(?:{own}|__init__|[\w.]+)\((.*?)\)(?: ->.*)?(?:\n|$)", text, re.S)
    if not first or own and not text.startswith((own, "__init__")):
        return None
    taken = []
    depth, word = 0, ""
    for c in first[1] + ",":
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            name = re.split(r"[:=]", word)[0].strip().split(" ")[-1]
            if name not in ("", "/", "*", "self"):
                taken.append(name)
            word = ""
        else:
            word += c
    return taken


def said(name):
    """The parameters, a plain value, or True for what says nothing of itself."""
    value = found(name)
    if isinstance(value, (bool, int, str, list, tuple)):
        return {"value": list(value) if isinstance(value, tuple) else value}
    return {"takes": parameters(value), "callable": callable(value)}


def options():
    """What CuPy has a kernel compiled with, besides the architecture and what it is given."""
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    from cupy.cuda import compiler

    class Program:  # in place of NVRTC's, which need not be here
        def __init__(self, *_, **__):
            pass

        def compile(self, options, log_stream=None):
            raise Seen(options)

    class Seen(Exception):
        pass

    compiler._NVRTCProgram, compiler._get_nvrtc_version = Program, lambda: (13, 0)
    compiler._preprocess = lambda *_, **__: ""
    compiler._get_arch_for_options_for_nvrtc = lambda arch=None: (f"-arch=sm_{arch}", "cubin")
    try:
        compiler._compile_module_with_cache("", ("given",), arch="90")
    except Seen as seen:
        return [o for o in seen.args[0] if o not in ("given", "-arch=sm_90")]
    raise AssertionError("CuPy did not compile")


if __name__ == "__main__":
    import ml_dtypes  # which makes CuPy know bfloat16

    assert ml_dtypes
    out = {}
    for one in json.load(sys.stdin):
        try:
            out[one] = said(one) if one != "options" else {"value": options()}
        except LookupError:
            out[one] = None
        except ImportError as error:  # of a library of CUDA's that is not installed here
            out[one] = {"unknown": str(error)}
    json.dump(out, sys.stdout)
