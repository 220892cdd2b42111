"""The import arrow of docs/architecture.md, and what ``import framework`` may load."""

import ast
import importlib
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "framework"
FILES = sorted(PACKAGE.rglob("*.py"))

# the families of ops, each with a folder, from the ground up
FAMILIES = ["record", "convert", "shape", "language", "write", "pointwise", "index", "reduce", "special",
            "linalg", "random", "losses", "image", "normalization", "sequence", "signal"]

# from the ground up: a file may import from its own level or lower ones; the longest prefix decides
LEVELS = [
    ["_native"],
    ["errors", "checks"],
    ["config", "layouts", "memory_formats", "philox", "size", "swap"],
    ["dtypes"],
    ["device"],
    ["backends"],
    ["doors", "node", "quiet", "seam", "sparse_door"],
    ["tensor"],
    ["autograd.mode"],
    ["autograd"],
    ["random"],
    *([f"ops.{family}"] for family in FAMILIES),
    ["ops.further_homes", "ops.inplace_functions", "ops.spaces"],
    ["ops.__init__"],
    ["from_data", "creation", "printing", "protocols", "storage", "traits"],
    ["typed", "types", "foreach", "absent", "version", "overrides", "_C", "sparse"],
    ["array_api", "numpy_protocol"],
    ["multiprocessing"],
    ["io"],
    ["distributed"],
    ["data"],
    ["nn"],
    ["optim"],
    ["ao", "quantization"],
    ["distributed.sync_norm", "distributed.optim", "distributed.fsdp"],
    ["amp"],
    ["cuda", "cpu"],
    ["accelerator", "xpu", "mps", "hub", "serialization"],
    ["func", "utils"],
    ["autograd.functional"],
    ["__init__", "ops.docs", "ops.stub", "config.__main__"],
    ["profiler"],
    ["autograd.profiler", "autograd.profiler_legacy"],
    ["models", "utils.tensorboard", "utils.collect_env"],
    ["compiler", "jit", "__config__"],
    ["nested"],
    ["batching"],
    ["distributions", "testing", "fx"],  # written as a program would be: against the public names
    ["onnx"],
    ["runtime"],
    ["library"],
    ["as_torch"],
]
LEVEL = {name: i for i, names in enumerate(LEVELS) for name in names}
# data and io stand beside nn and optim, which they must not need, nor be needed by
APART = {("nn", "data"), ("nn", "io"), ("optim", "data"), ("optim", "io"), ("data", "io")}


def module_of(path):
    """``ops.cast`` for framework/ops/convert/cast.py, ``ops.__init__`` for framework/ops/__init__.py."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def exists(name):
    return (PACKAGE / (name.replace(".", "/") + ".py")).exists()


def is_package(name):
    return (PACKAGE / name.replace(".", "/") / "__init__.py").exists()


def level_of(name):
    """The level of a module by its longest known prefix; new homes at the top count as above nn."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in LEVEL:
            return LEVEL[".".join(parts[:n])]
    return LEVEL["nn"]


def own_imports(path):
    """(line, module of ours that is imported, is it at the top of the file) for each import."""
    module = module_of(path)
    here = module.split(".")[:-1]
    tree = ast.parse(path.read_text())
    typing_only = {
        n
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for n in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        top = node in tree.body
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.partition(".")[0] == "framework":
                    yield node.lineno, a.name.partition(".")[2] or "__init__", top
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = here[: len(here) - node.level + 1]
            elif (node.module or "").partition(".")[0] == "framework":
                base = []
            else:
                continue
            name = (
                (node.module or "").removeprefix("framework").lstrip(".")
                if not node.level
                else node.module or ""
            )
            base = ".".join([*base, *([name] if name else [])])
            for a in node.names:
                full = f"{base}.{a.name}".lstrip(".")
                if exists(full):
                    yield node.lineno, full, top
                elif is_package(full):
                    yield node.lineno, f"{full}.__init__", top
                else:
                    yield node.lineno, (base if exists(base) else f"{base}.__init__".lstrip(".")), top


def allowed(module, target):
    """Whether ``module`` may import ``target``."""
    homes = module.split(".")[0], target.split(".")[0]
    if homes in APART or homes[::-1] in APART:
        return False
    if module.endswith("__init__") and target.startswith(module.removesuffix("__init__")):
        return True  # a package gathers what is in it
    if target.endswith(".__init__") and homes[0] == homes[1] and module != target:
        return homes[0] == "backends"  # a room that imports its own package makes a circle
    return level_of(target) <= level_of(module)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    module = module_of(path)
    wrong = [
        f"line {line}: {module} imports {target}"
        for line, target, _ in own_imports(path)
        if not allowed(module, target)
    ]
    assert not wrong, "imports must point down:\n" + "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_lazy_imports_of_our_own(path):
    lazy = [
        f"{path.relative_to(PACKAGE)}:{line} imports {target}"
        for line, target, top in own_imports(path)
        if not top
    ]
    assert not lazy, "imports of our own package belong at the top of the file:\n" + "\n".join(lazy)


# modules that load some by name, and why that points at nothing above them
BY_NAME = {
    "backends.device_launcher": "a compiled module of _native",
    "backends.flags": "itself, to become a class that checks what is set",
    "config.__init__": "asked for by the listing of settings",
    "nn.modules.__init__": "its own package, whose layers it shows under their other names",
    "overrides": "the homes of public functions, if they are loaded",
}
_CALLS = ("import_module", "__import__", "sys.modules.get")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_is_imported_by_name_points_down_too(path):
    """Through ``doors.py`` where something above is needed; its doors are hung at the top."""
    module = module_of(path)
    if level_of(module) >= LEVEL["__init__"] or module in BY_NAME:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_CALLS):
            name = node.args[0]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            name = node.slice
        else:
            continue
        if isinstance(name, ast.JoinedStr):  # what is within the module's own package, or one of Python's
            fits = ast.unparse(name).startswith(("f'{__name__}.", "f'multiprocessing."))
        elif isinstance(name, ast.Constant) and name.value.startswith("framework."):
            fits = allowed(module, name.value.removeprefix("framework."))
        else:
            fits = isinstance(name, ast.Constant) and name.value.partition(".")[0] not in ("", "framework")
        assert fits, f"{path.name}:{node.lineno}: {ast.unparse(node)}: go through doors.py"


def test_no_circles():
    """The files form no circle of imports (a package's __init__ stands for what it gathers)."""
    edges = {module_of(p): {t for _, t, top in own_imports(p) if top} for p in FILES}
    done, path = set(), []

    def walk(name):
        if name in path:
            pytest.fail("a circle of imports: " + " -> ".join([*path[path.index(name) :], name]))
        if name in done or name not in edges:
            return
        path.append(name)
        for target in sorted(edges[name]):
            walk(target)
        path.pop()
        done.add(name)

    for name in edges:
        walk(name)


def test_no_torch_or_scipy_in_the_package():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            bad = {n.partition(".")[0] for n in names} & {"torch", "scipy", "cupy"}
            assert not bad, f"{path.relative_to(PACKAGE)}:{node.lineno} imports {bad}"


def test_kernels_know_no_python():
    """Of the native sources only those in bind/ name Python, NumPy or nanobind, or include what does."""
    native = PACKAGE / "_native"
    knows = re.compile(r'#include [<"](bind/|nanobind|numpy|Python|structmember)|'
                       r"\b(nb::|npy_|NPY_|Py[A-Z]\w*_)")
    plain = [path for path in native.glob("*/**/*") if path.suffix in (".cpp", ".h")
             and path.relative_to(native).parts[0] != "bind"]
    assert len(plain) > 100
    assert not [f"{path.relative_to(native)}:{number}" for path in plain
                for number, line in enumerate(path.read_text().splitlines(), 1) if knows.search(line)]


def test_import_loads_nothing_optional():
    program = (
        "import sys, numpy; before = set(sys.modules); import framework; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    roots = {m.partition(".")[0] for m in loaded}
    assert not roots & {"cupy", "scipy", "PIL", "sklearn", "torch", "tqdm", "matplotlib", "pytest"}
    foreign = [m for m in loaded if not m.startswith(("framework", "numpy"))]
    assert len(foreign) < 60, f"{len(foreign)} modules beside ours and NumPy's: {' '.join(foreign)}"


def test_import_leaves_numpys_random_numbers_until_they_are_asked_for():
    """They are a tenth of the import; NumPy itself waits from 2.3 on."""
    code = ("import sys, numpy; before = 'numpy.random' in sys.modules; import framework as fw;"
            "assert before or 'numpy.random' not in sys.modules;"
            "fw.manual_seed(0); fw.rand(2); fw.nn.functional.dropout(fw.ones(9))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ops_are_imported_not_named():
    """``OPS_BY_NAME["where"]`` is an import that no test of arrows sees: only the language may."""
    named = [f"{path.relative_to(PACKAGE)}:{node.lineno}" for path in sorted(PACKAGE.rglob("*.py"))
             if path.parent.name != "language" for node in ast.walk(ast.parse(path.read_text()))
             if getattr(node, "id", getattr(node, "name", "")) == "OPS_BY_NAME"]
    assert not named, named


def public_modules():
    """The package, and the modules that its completion leads to."""
    found, waiting = {}, [importlib.import_module("framework")]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = shown = {n: getattr(module, n) for n in dir(module) if n[0] != "_"}
            waiting += [v for v in shown.values() if isinstance(v, types.ModuleType)]
    return found


def test_completion_shows_public_names():
    """`dir` shows what can be had: neither the files that a package is made of, nor what they import."""
    found = public_modules()
    assert len(found) > 100
    for expected in ("nn.functional", "optim.lr_scheduler", "data.transforms", "autograd.graph", "random",
                     "utils.metrics", "distributions.constraints", "hub", "compiler", "cuda.memory"):
        assert f"framework.{expected}" in found
    inside = {"activation", "engine", "registry", "recorder", "core", "collate", "listen", "saved", "history",
              "kl_pairs", "seam", "node", "quiet", "segments", "tensor"}
    strangers = []
    for name, shown in found.items():
        assert name.partition(".")[0] == "framework", f"a module from elsewhere: {name}"
        assert not inside & {n for n, v in shown.items() if isinstance(v, types.ModuleType)}, name
        if name != "framework.multiprocessing":  # which has the names of Python's, on purpose
            strangers += [f"{name}.{n}" for n, v in shown.items()
                          if isinstance(v, (type, types.FunctionType, types.BuiltinFunctionType))
                          and not v.__module__.startswith("framework") or n in ("Any", "Callable", "np")]
    assert not strangers, "add `__dir__ = own(globals())` or `listing(...)` of framework.config.listing"
