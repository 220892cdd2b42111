"""What is used of CuPy is in the real one, as it is used, and what stands for it in tests takes the same.

pip install --no-deps --target FOLDER cupy-cuda13x cuda-pathfinder, and FRAMEWORK_CUPY=FOLDER for pytest; an
installed CuPy does, too. It is asked in a process of its own, and needs no GPU. With FRAMEWORK_CUPY nothing
is skipped for want of it.
"""

import ast
import inspect
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from cupy_facts import COMPILES_WITH
from test_cuda import STANDIN, cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_nvrtc import library

import framework as fw

HERE = Path(__file__).parent
PARTS = ("cuda", "linalg", "fft", "random", "lib")


class Real:
    """The real CuPy, asked for many names at once."""

    def __init__(self, environment):
        self.environment = environment

    def say(self, names):
        """{name: what cupy_facts.py says of it}."""
        done = subprocess.run([sys.executable, HERE / "cupy_facts.py"], capture_output=True, text=True,
                              input=json.dumps(sorted(names)), env=self.environment)
        assert not done.returncode, done.stderr[-2000:]
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def real():
    folder = os.environ.get("FRAMEWORK_CUPY")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [p for p in paths if p and Path(p) != Path(STANDIN)]
    found = Real({**os.environ, "PYTHONPATH": os.pathsep.join([folder, *paths] if folder else paths)})
    if folder is None:
        pytest.importorskip("ml_dtypes")
        look = [sys.executable, "-c", "import cupy, ml_dtypes; assert 'standin' not in cupy.__version__"]
        if subprocess.run(look, capture_output=True, env=found.environment).returncode:
            pytest.skip("no CuPy is here; FRAMEWORK_CUPY may name a folder with it")
    return found


# -- what the package uses ---------------------------------------------------------------------------


def _dotted(node, known):
    """The dotted name of an expression that begins with the module: ``cuda.cupy()``, ``cuda._cupy``, or a
    name that was given it or a part of it (``known``); None of others."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call):
        called = node.func
        mine = getattr(called, "id", "") == "cupy" or getattr(called, "attr", "") == "cupy"
        return "cupy" if mine and not node.args else None
    if not isinstance(node, ast.Attribute):
        return None
    if node.attr in ("cupy", "_cupy"):
        return "cupy"
    home = _dotted(node.value, known)
    return f"{home}.{node.attr}" if home else None


def _given(function):
    """The names of a function that are the module, or parts of it: ``xp``, and what is assigned."""
    known = {a.arg: "cupy" for a in function.args.args if a.arg == "xp"}
    for node in ast.walk(function):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            for a, b in zip(target.elts, node.value.elts) if several else [(target, node.value)]:
                if isinstance(a, ast.Name) and (name := _dotted(b, {})):
                    known[a.id] = name
    return known


def used():
    """{dotted name: (keywords that it is called with, the most arguments by position)} of our sources."""
    found = defaultdict(lambda: (set(), 0))
    for path in Path(fw.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
                continue
            known = _given(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and (name := _dotted(node, known)) not in (None, "cupy"):
                    found[name] = found[name]
                if isinstance(node, ast.Call) and (name := _dotted(node.func, known)) not in (None, "cupy"):
                    keywords, most = found[name]
                    plain = not any(isinstance(a, ast.Starred) for a in node.args)
                    found[name] = (keywords | {k.arg for k in node.keywords if k.arg},
                                   max(most, len(node.args) * plain))
    return dict(found)


def test_all_that_is_used_is_there(real):
    names = used()
    assert len(names) > 120 and "cupy.cuda.runtime.memcpyAsync" in names and "cupy.empty" in names
    facts, wrong = real.say(names), []
    for name, (keywords, most) in names.items():
        if facts[name] is None:
            wrong.append(f"{name} is not there")
        elif takes := facts[name].get("takes"):
            free = any(p.startswith("**") for p in takes)
            strange = set() if free else keywords - set(takes)
            if strange or most > len(takes) and not any(p.startswith("*") for p in takes):
                wrong.append(f"{name} takes {takes}, not {sorted(strange) or most}")
    assert not wrong, "\n".join(wrong)


# -- what it keeps on disk ---------------------------------------------------------------------------


def test_kernels_are_kept_on_disk_and_found_by_another_process(real, tmp_path):
    """Compiled by NVIDIA's compiler the first time, read the second, compiled where a text is another or
    what is kept is damaged."""
    nvrtc = library()
    if nvrtc is None:
        pytest.skip("NVRTC is not here; pip install nvidia-cuda-nvrtc")

    def run(*given):
        paths = [str(HERE.parent), *real.environment["PYTHONPATH"].split(os.pathsep)]
        done = subprocess.run([sys.executable, HERE / "cupy_kept.py", *given], capture_output=True, text=True,
                              env={**real.environment, "PYTHONPATH": os.pathsep.join(paths),
                                   "LD_LIBRARY_PATH": str(Path(nvrtc._name).parent),
                                   "CUPY_CACHE_DIR": str(tmp_path)})
        assert not done.returncode, done.stderr[-2000:]
        return json.loads(done.stdout)

    first = run()
    files = sorted(tmp_path.glob("*.cubin"))
    assert len(files) == len(first) > 4 and all(compiled for compiled, _ in first.values())
    assert run() == {name: [False, kept] for name, (_, kept) in first.items()}
    assert all(compiled for compiled, _ in run("more").values())
    assert len(list(tmp_path.glob("*.cubin"))) == 2 * len(files)
    files[0].write_bytes(files[0].read_bytes()[:-9])
    again = run()
    assert sum(compiled for compiled, _ in again.values()) == 1
    assert [kept for _, kept in again.values()] == [kept for _, kept in first.values()]


# -- what stands for it ------------------------------------------------------------------------------


def _parameters(value):
    """Those of a function of the stand-in, by name; None where it does not say."""
    if isinstance(value, type):
        value = value.__init__
    try:
        taken = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in taken):
        return None
    return [p.name for p in taken if p.name != "self"]


def _stands(cupy):  # noqa: F811
    """{dotted name: the parameters that it takes here} of the classes and functions that are written out."""
    found = {}
    classes = {"cupy.ndarray": cupy.ndarray, "cupy.ufunc": cupy.ufunc, "cupy.cuda.Device": cupy.cuda.Device,
               "cupy.cuda.Stream": cupy.cuda.Stream, "cupy.cuda.Event": cupy.cuda.Event,
               "cupy.cuda.MemoryPool": type(cupy.get_default_memory_pool()), "cupy.RawModule": cupy.RawModule,
               "cupy.cuda.nccl.NcclCommunicator": sys.modules["cupy.cuda.nccl"].NcclCommunicator}
    for name, kind in classes.items():
        found[name] = None
        for member, value in vars(kind).items():
            if not member.startswith("_"):
                found[f"{name}.{member}"] = _parameters(value) if inspect.isfunction(value) else None
    spaces = {"cupy.cuda": cupy.cuda, "cupy.cuda.runtime": cupy.cuda.runtime,
              "cupy.cuda.device": cupy.cuda.device, "cupy.lib.stride_tricks": cupy.lib.stride_tricks}
    for name, space in spaces.items():
        for member, value in vars(space).items():
            if callable(value) and not isinstance(value, type):
                found[f"{name}.{member}"] = _parameters(value)
            elif not hasattr(value, "__dict__"):
                found[f"{name}.{member}"] = None
    for name in ("asnumpy", "array", "asarray", "ascontiguousarray", "from_dlpack", "may_share_memory"):
        found[f"cupy.{name}"] = _parameters(getattr(cupy, name))
    for name in ("gemmStridedBatchedEx", "gemmEx"):
        found[f"cupy.cuda.cublas.{name}"] = _parameters(getattr(cupy.cuda.cublas, name))
    return found


OWN = {  # of the stand-in, for itself: streams' clocks, dtypes that strict.py asks
    "cupy.cuda.Stream": {"work", "clock"}, "cupy.cuda.Event": set(), "cupy.ufunc": {"types"},
}


def test_kernels_are_compiled_as_the_test_of_nvrtc_does(real):
    assert real.say(["options"])["options"]["value"] == list(COMPILES_WITH)


def test_the_stand_in_takes_what_the_real_one_takes(real, cupy):  # noqa: F811
    if "standin" not in cupy.__version__:
        pytest.skip("this is a real CuPy")
    stands = {n: p for n, p in _stands(cupy).items()
              if n.rpartition(".")[2] not in OWN.get(n.rpartition(".")[0], ())}
    assert len(stands) > 90
    facts, wrong = real.say(stands), []
    for name, here in stands.items():
        if facts[name] is None:
            wrong.append(f"{name} is not there")
        elif (there := facts[name].get("takes")) and here is not None and "lambda" not in name:
            lacks = [p for p in here if p not in there]
            if lacks and len(here) == len(there):
                continue  # by position: other names of as many
            if lacks and not any(p.startswith("*") for p in there):
                wrong.append(f"{name} takes {there}, the stand-in {here}")
    assert not wrong, "\n".join(wrong)


def test_the_stand_in_knows_the_real_ones_names_and_loops(real, cupy):  # noqa: F811
    if "standin" not in cupy.__version__:
        pytest.skip("this is a real CuPy")
    from cupy import names, strict

    tables = {"cupy": names.FUNCTIONS, "cupy.linalg": names.LINALG, "cupy.fft": names.FFT,
              "cupy.random": names.RANDOM}
    wanted = {f"{home}.{n}": text.split() for home, table in tables.items() for n, text in table.items()}
    wanted.update({f"cupy.{n}": None for n in (*names.PLAIN, *names.UFUNCS)})
    wanted.update({f"cupy.ndarray.{n}": None for n in names.NDARRAY})
    facts = real.say([*wanted, *[f"cupy.{n}.types" for n in strict.LOOPS]])
    missing = [n for n in wanted if facts[n] is None]
    other = [f"{n}: {facts[n]['takes']}, here {takes}" for n, takes in wanted.items()
             if takes is not None and "**" not in "".join(takes) and facts[n] is not None
             and facts[n].get("takes") not in (None, takes)]
    loops = [f"{n}: {facts[f'cupy.{n}.types']['value']}, here {types}" for n, types in strict.LOOPS.items()
             if facts[f"cupy.{n}.types"]["value"] != list(types)]
    assert not (missing or other or loops), "\n".join([*missing, *other, *loops])
