"""Every function of the native extension, called with what does not fit: it may raise or decline, not crash.

``python tests/stress/fuzz_native.py`` notes real calls of every function while the tables of samples run,
then makes calls of them with wrong shapes, dtypes, strides, lengths and numbers, in processes of their own.
Every other call is a sound one, whose result is compared with the plain formula's (``fuzz_compare.py``).
``--module`` names a build with sanitizers, for which LD_PRELOAD must hold their library (see
framework/_native/README.md).
"""

import argparse
import contextlib
import copy
import importlib.machinery
import importlib.util
import mmap
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import fuzz_compare
import numpy as np

TESTS = Path(__file__).resolve().parents[1]
STATE = {
    "set_threads",
    "use_memory",
    "set_cache_limit",
    "simulate_threads",
    "set_near",
    "set_flush_denormals",
    "use_winograd",
}
MOST_EACH = 24  # calls that are noted of a function
MEMORY = 512 << 20  # bytes that a process may take more
SOON = 5  # seconds after which a call that asks for too much is interrupted, as by Ctrl-C
PATIENCE = 300  # seconds for one call: some formulas take seconds, on a busy machine minutes
HUGE = (
    -(2**63),
    -(2**31),
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    64,
    2**31 - 1,
    2**31,
    2**32,
    2**61,
    2**62,
    2**63 - 1,
    2**64,
    2**70,
)
DTYPES = (
    np.float32,
    np.float64,
    np.int64,
    np.int32,
    np.bool_,
    np.uint8,
    np.float16,
    np.complex64,
    object,
    "S3",
    ">f4",
    ">i8",
)


def load(path):
    """The extension module in a file."""
    name = "framework._native." + Path(path).name.split(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location(name, path, loader=loader)
    )
    loader.exec_module(module)
    return module


def stand_in(module, path):
    """Let ``framework`` use that module."""
    sys.modules[module.__name__] = module
    os.environ["FRAMEWORK_NATIVE"] = module.__name__.rsplit(".", 1)[1]
    os.environ["FRAMEWORK_NATIVE_PATH"] = str(Path(path).parent)
    sys.path.insert(0, str(TESTS.parent))


# -- noting calls ---------------------------------------------------------------------------------


def shape_of(a):
    """What makes two calls alike."""
    if isinstance(a, np.ndarray):
        return a.dtype.str, a.ndim, a.flags.c_contiguous
    return tuple(map(shape_of, a)) if isinstance(a, (tuple, list)) else type(a).__name__


def kept(a):
    """A copy that can be pickled."""
    if isinstance(a, np.ndarray):
        return a.copy(order="K")
    if isinstance(a, (tuple, list)):
        return type(a)(map(kept, a))
    if callable(a) and not isinstance(a, type):
        return None
    if type(a).__module__.startswith("framework"):  # a dtype
        return a.numpy
    return pickle.loads(pickle.dumps(a))


def can_be_pickled(call):
    try:
        pickle.dumps(call)
    except Exception:  # such as a method that the package replaced since
        return False
    return True


def note_calls(module):
    """Let every function of the module note its arguments; gives what is noted."""
    calls = {}

    def noting(name, function):
        def call(*args, **kwargs):
            known = calls.setdefault(name, {})
            key = shape_of(args), shape_of(tuple(kwargs.items()))
            if key not in known and len(known) < MOST_EACH:
                with contextlib.suppress(Exception):
                    known[key] = kept(args), {k: kept(v) for k, v in kwargs.items()}
            return function(*args, **kwargs)

        return call

    for name, function in list(vars(module).items()):
        if name.startswith("set_up") or name in STATE | {"instructions"}:  # what others stand on
            continue
        if callable(function) and not isinstance(function, type):
            setattr(module, name, noting(name, function))
    return calls


def collect(path):
    """Real calls of every function: {name: [(args, kwargs), ...]}."""
    module = load(path)
    calls = note_calls(module)
    stand_in(module, path)
    sys.path.insert(0, str(TESTS))
    warnings.simplefilter("ignore")
    call_functions()
    call_optimizers()
    call_layers()
    call_others(module)
    sent = {name: list(filter(can_be_pickled, known.values())) for name, known in calls.items()}
    return {name: known for name, known in sent.items() if known}


def quietly(function, *args):
    import table

    import framework as fw

    with contextlib.suppress(Exception):
        for out in table.flat(function(*args)):
            if isinstance(out, fw.Tensor) and out.requires_grad:
                out.sum().backward(retain_graph=True)


def call_functions():
    import table

    import framework as fw

    for row in table.ROWS:
        for sample in row.samples:
            for dtype in (np.float32, np.float64):
                for grad in (True, False):  # some kernels are for what is in no graph
                    quietly(sample.call, fw, *table.tensors(table.cast_inputs(sample, dtype), grad=grad))


def call_optimizers():
    from optimizer_rows import ROWS as OPTIMIZERS

    import framework as fw
    from framework import nn

    for row in OPTIMIZERS.values():
        for options in row.variants:
            p = nn.Parameter(fw.randn(5, 3))
            with contextlib.suppress(Exception):
                optimizer = getattr(fw.optim, row.name)([p], **options)
                for _ in range(2):
                    p.grad = fw.randn(5, 3)
                    optimizer.step()
    for kind in (fw.optim.SGD, fw.optim.Adagrad, fw.optim.SparseAdam):
        for dtype in (fw.float32, fw.float64):
            table_of_rows = nn.Embedding(7, 5, sparse=True, dtype=dtype)
            optimizer = kind(table_of_rows.parameters(), lr=0.1)
            table_of_rows(fw.tensor([1, 4, 1])).sum().backward()
            optimizer.step()
    grads = [fw.randn(5), fw.randn(3, 3)]
    parameters = [nn.Parameter(g.clone()) for g in grads]
    for p, g in zip(parameters, grads):
        p.grad = g
    nn.utils.clip_grad_norm_(parameters, 0.1), nn.utils.clip_grad_value_(parameters, 0.1)


def call_layers():
    import framework as fw
    from framework import nn

    for dims, layer in ((1, nn.Conv1d), (2, nn.Conv2d), (3, nn.Conv3d)):
        for groups, kernel, stride in ((1, 3, 1), (4, 3, 1), (2, 2, 2), (1, 1, 1)):
            for channels in (4, 32):
                conv = layer(channels, channels, kernel, stride, 1, groups=groups)
                quietly(conv, fw.randn(2, channels, *(8,) * dims, requires_grad=True))
    for layer in (nn.RNN, nn.LSTM, nn.GRU):
        quietly(layer(5, 7, 2, bidirectional=True), fw.randn(4, 3, 5, requires_grad=True))
    x = fw.randn(2, 8, 6, 6, requires_grad=True)
    for layer in (nn.BatchNorm2d(8), nn.BatchNorm2d(8).eval(), nn.GroupNorm(2, 8), nn.LayerNorm([6, 6])):
        quietly(layer, x)
    quietly(nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval(), x.detach())
    quietly(nn.Sequential(nn.Linear(6, 4), nn.ReLU()), x)


def call_others(module):
    import framework as fw
    from framework import nn
    from framework.nn import functional as F

    x = fw.randn(2, 8, 6, 6, requires_grad=True)
    quietly(lambda: F.dropout(x, 0.5))
    places = fw.tensor([1, 0])
    x.detach()[places] = 1.0
    quietly(
        lambda: (
            x.detach().clone()[0, 0].scatter_reduce(0, fw.zeros(2, 6, dtype=fw.int64), x[0, 1, :2], "prod")
        )
    )
    quietly(lambda: fw.func.jvp(lambda t: F.max_pool2d(t, 2), (x.detach(),), (x.detach(),)))
    quietly(lambda: fw.func.jvp(lambda t: F.max_pool2d(t, 3, 2, 1), (x.detach(),), (x.detach(),)))
    if hasattr(module, "crc32"):
        module.crc32(b"x" * 100, 1)
    with contextlib.suppress(ImportError):
        import ml_dtypes  # noqa: F401

        half = fw.randn(2, 32, 8, 8).to(fw.bfloat16).requires_grad_()
        for layer in (nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3, padding=1), nn.Linear(8, 8), nn.ReLU()):
            quietly(layer.to(fw.bfloat16), half)
    fw.randint(0, 9, (2000,)), fw.randn(30), fw.rand(30, dtype=fw.float64)
    call_directly(module)


def call_directly(module):
    """Functions that the package calls in special cases only."""
    from types import SimpleNamespace

    import framework as fw

    r = np.random.default_rng(0)

    def numbers(*shape, dtype=np.float32):
        return r.standard_normal(shape).astype(dtype)

    quietly(lambda: fw.ones(3, 4).scatter(1, fw.tensor([[0, 2]]), 2.0, reduce="multiply"))
    for dtype, kind in ((np.float32, np.int64), (np.float64, np.int32)):
        rows = SimpleNamespace(starts=np.array([0, 2, 2, 5], kind), columns=np.array([0, 3, 1, 2, 4], kind),
                               shape=(3, 5))
        module.spmm(numbers(5, dtype=dtype), numbers(5, 9, dtype=dtype), rows=rows)
        module.sddmm(numbers(3, 9, dtype=dtype), numbers(5, 9, dtype=dtype), rows=rows)
    for bias in (None, numbers(6)):
        weight, scale = r.integers(-127, 128, (6, 40)).astype(np.int8), np.abs(numbers(6))
        quietly(lambda b=bias, w=weight, s=scale: module.int8_linear(
            numbers(3, 40), w, s, b, input_scale=None, input_zero=0))
        kernels = r.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8)
        quietly(lambda b=bias, w=kernels, s=scale: module.int8_conv(
            numbers(2, 4, 7, 7), w, s, b, stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1,
            input_scale=None, input_zero=0))
    with fw.no_grad():
        for size in (8, 32):
            net = fw.nn.Sequential(fw.nn.Conv2d(size, size, 3), fw.nn.BatchNorm2d(size), fw.nn.ReLU()).eval()
            quietly(net, fw.randn(2, size, 8, 8))
            quietly(net[::2], fw.randn(2, size, 8, 8))
    with contextlib.suppress(ImportError):
        from ml_dtypes import bfloat16

        module.matmul_by_tiles(numbers(20, 34).astype(bfloat16), numbers(34, 18).astype(bfloat16), True)
        x, w, y = (numbers(*s).astype(bfloat16) for s in ((2, 6, 9, 8), (10, 3, 3, 3), (2, 10, 5, 4)))
        given = {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 2}
        for plain in (True, False):
            quietly(lambda p=plain: module.conv_by_tiles(x, w, None, **given, plain=p))
            quietly(lambda p=plain: module.conv_input_grad_by_tiles(y, w, x_shape=x.shape, **given, plain=p))
            quietly(lambda p=plain: module.conv_weight_grad_by_tiles(x, y, w_shape=w.shape, **given, plain=p))


# -- changing them --------------------------------------------------------------------------------


def resized(a, r):
    """An array of about that shape."""
    shape = list(a.shape)
    how = r.randrange(6)
    if how == 0 and shape:
        del shape[r.randrange(len(shape))]
    elif how == 1:
        shape.insert(r.randint(0, len(shape)), r.choice((0, 1, 2)))
    elif shape:
        d = r.randrange(len(shape))
        shape[d] = r.choice((0, 1, shape[d] + 1, max(shape[d] - 1, 0), 2 * shape[d], 17, 33))
    if np.prod(shape, dtype=float) > 1e6:
        return a
    return np.resize(a, shape) if a.size else np.zeros(shape, a.dtype)


def huge(a, r):
    """One number, seen as so many that no memory holds them."""
    if not a.ndim or not a.size:
        return a
    shape, strides = list(a.shape), list(a.strides)
    d = r.randrange(a.ndim)
    shape[d], strides[d] = r.choice((2**31, 2**32 + 1, 2**40, 2**52)), 0
    with contextlib.suppress(ValueError):  # more than NumPy counts
        return np.lib.stride_tricks.as_strided(a, shape, strides)
    return a


def laid_out(a, r):
    """The same numbers, or some of them, in other memory."""
    how = r.randrange(8)
    if how == 7:
        return huge(a, r) if r.random() < 0.2 else a[..., ::-1] if a.ndim else a
    if how == 0:
        return a.T
    if how == 1 and a.ndim:
        return np.repeat(a, 2, axis=-1)[..., ::2]
    if how == 2 and a.ndim:
        return a[::-1]
    if how == 3 and a.ndim:
        return np.broadcast_to(a[:1], a.shape)
    if how == 4:
        raw = np.zeros(a.nbytes + 1, np.uint8)[1:]
        with contextlib.suppress(Exception):
            odd = raw.view(a.dtype).reshape(a.shape)
            odd[...] = a
            return odd
    if how == 5:
        a = a.copy()
        a.flags.writeable = False
        return a
    return np.asfortranarray(a)


def changed_array(a, r):
    if a.size > 1_000_000:  # huge
        return a
    how = r.randrange(5)
    if how == 0:
        with contextlib.suppress(Exception):
            return a.astype(r.choice(DTYPES))
        return a
    if how == 1:
        return laid_out(a, r)
    if how == 2 and a.dtype.kind in "iu":
        numbers = (
            [r.choice(HUGE[:-2]) for _ in range(a.size)]
            if r.random() < 0.5
            else [r.choice((-2, -1, 0, 1, 2, 3, 100)) for _ in range(a.size)]
        )
        with np.errstate(all="ignore"):
            return np.array(numbers, np.int64).reshape(a.shape).astype(a.dtype)
    if how == 2 and a.dtype.kind == "f":
        return (
            np.array([r.choice((np.nan, np.inf, -np.inf, 0, -0.0, 1e30, 1)) for _ in range(a.size)])
            .reshape(a.shape)
            .astype(a.dtype)
        )
    if how == 2 and a.dtype.kind == "b":  # bytes that are no truth values
        odd = [r.choice((0, 1, 2, 128, 255)) for _ in range(a.size)]
        return np.array(odd, np.uint8).view(bool).reshape(a.shape)
    if how == 3 and r.random() < 0.3:
        return r.choice((None, 0, "x", [1, 2], 1.5, (), object()))
    return resized(a, r)


def arrays_in(a, found):
    """Where arrays stand: (the list, the position)."""
    for i, each in enumerate(a):
        if isinstance(each, np.ndarray):
            found.append((a, i))
        elif isinstance(each, list):
            arrays_in(each, found)
    return found


def in_shared_memory(args, r):
    """Lets one array lie in the memory of another one, as far as both have the dtype and it has the room."""
    places = arrays_in(args, [])
    if len(places) < 2:
        return
    (a, i), (b, j) = r.sample(places, 2)
    whole, part = a[i], b[j]
    first = r.choice((0, 0, 1, max(whole.size - part.size, 0)))
    if whole.dtype == part.dtype and whole.flags.c_contiguous and whole.size >= first + part.size:
        b[j] = whole.reshape(-1)[first : first + part.size].reshape(part.shape)


def changed(a, r):
    """Something like `a`."""
    if isinstance(a, np.ndarray):
        return changed_array(a, r)
    if isinstance(a, bool):
        return r.choice((not a, None, 2))
    if isinstance(a, int):
        return r.choice((a + 1, a - 1, r.choice(HUGE), r.choice(HUGE), 1.5, None))
    if isinstance(a, float):
        return r.choice((np.nan, np.inf, -1.0, 0.0, 1e308, "x", 3))
    if isinstance(a, (tuple, list)):
        a = list(a) if r.random() < 0.9 else []
        for _ in range(r.randint(1, 2)):
            how = r.randrange(5)
            if how == 0 and a:
                del a[r.randrange(len(a))]
            elif how == 1:
                a.insert(r.randint(0, len(a)), r.choice((*a, 0, 1, None)))
            elif how == 2 and r.random() < 0.1:
                a = a * 40
            elif a:
                i = r.randrange(len(a))
                a[i] = changed(a[i], r)
        return r.choice((tuple(a), tuple(a), list(a)))
    if isinstance(a, str):
        return r.choice((a + "x", "sum", "max", "", 3))
    if isinstance(a, dict):
        a = dict(a)
        key = r.choice(list(a) or ["x"])
        how = r.randrange(4)
        if how == 0:
            a.pop(key, None)
        elif how == 1:
            a[r.choice(("x", 3, None))] = 1.0
        else:
            a[key] = changed(a.get(key), r)
        return a
    if getattr(a, "__dict__", None) and not callable(a) and r.random() < 0.8:  # as of a sparse matrix
        a = copy.copy(a)
        key = r.choice(list(vars(a)))
        with contextlib.suppress(AttributeError, TypeError):
            object.__setattr__(a, key, changed(vars(a)[key], r))
        return a
    return r.choice((None, 0, np.zeros(3, np.float32), np.zeros((2, 3)), np.ones(3, bool), ""))


def fresh(a):
    """A copy, since some functions write."""
    if isinstance(a, np.ndarray):
        return a.copy(order="K")
    return type(a)(map(fresh, a)) if isinstance(a, (tuple, list)) else a


def mutant(calls, names, seed, i):
    """Call `i`: (name, args, kwargs, for a kernel what it is called with)."""
    r = random.Random(f"{seed} {i}")
    name = names[i % len(names)]
    args, kwargs = r.choice(calls[name])
    args, kwargs = [fresh(a) for a in args], {k: fresh(v) for k, v in kwargs.items()}
    if name == "make_kernel":
        args = [np.add if a is None and k == len(args) - 1 else a for k, a in enumerate(args)]
        if r.random() < 0.8:
            return name, args, kwargs, r
    for _ in range(r.choice((0, 1, 1, 1, 2, 3))):
        at = r.randrange(len(args) + len(kwargs)) if args or kwargs else -1
        if 0 <= at < len(args):
            args[at] = changed(args[at], r)
        elif at >= 0:
            key = list(kwargs)[at - len(args)]
            kwargs[key] = changed(kwargs[key], r)
    if r.random() < 0.02 and args:
        args.pop()
    if r.random() < 0.05:
        in_shared_memory(args, r)
    return name, args, kwargs, r


def call_kernel(kernel, count, r):
    """A program, called with arrays that may not fit; sometimes into `out`, sometimes folded."""
    dtype = r.choice((np.float32, np.float64, np.int64, np.int32))
    shape = [r.choice((0, 1, 2, 3, 17, 70)) for _ in range(r.randint(0, 3))]
    args = [
        np.ones([r.choice((n, 1)) for n in shape], r.choice((dtype, dtype, np.bool_))) for _ in range(count)
    ]
    args = [changed(a, r) if r.random() < 0.3 else r.choice((a, a, 2, 1.5, True)) for a in args]
    how = r.randrange(3)
    if how == 0:
        return kernel.fold(
            r.choice(("sum", "mean", "amax", "amin", "var", "x")),
            tuple(r.randrange(-1, 5) for _ in range(r.randint(0, 3))),
            r.random() < 0.5,
            1.0,
            *args,
        )
    if how == 1:
        return kernel(
            *args, out=changed(np.ones(shape, dtype), r) if r.random() < 0.5 else np.ones(shape, dtype)
        )
    return kernel(*args)


# -- running --------------------------------------------------------------------------------------


def work(path, calls_file, now_file, seed, first, last, step):
    """Calls first, first + step, ... in this process."""
    module = load(path)
    stand_in(module, path)  # before the calls are read, whose arguments import the package
    calls = pickle.loads(Path(calls_file).read_bytes())
    names = sorted(calls)
    compared = fuzz_compare.Compared(module, calls)
    module.set_threads(2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # but for calls that may ask for too much
    if not os.environ.get("LD_PRELOAD"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    with open(now_file, "r+b") as file:
        now = mmap.mmap(file.fileno(), 8)
    for i in range(first, last, step):
        now[:8] = i.to_bytes(8, "little")
        if i // step % 2:
            if wrong := compared.differs(seed, i):
                print(f"MISMATCH call {i} of seed {seed}: {wrong}", file=sys.stderr, flush=True)
            continue
        name, args, kwargs, r = mutant(calls, names, seed, i)
        with contextlib.suppress(Exception, KeyboardInterrupt):
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                out = getattr(module, name)(*args, **kwargs)
                if name == "make_kernel":
                    call_kernel(out, len(args[0]) if args else 1, r)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    now[:8] = last.to_bytes(8, "little")


def text_of(a):
    if isinstance(a, np.ndarray):
        head = f"{a.dtype}{list(a.shape)}" + ("" if a.flags.c_contiguous else f" strides {list(a.strides)}")
        return head + (f" {a.tolist()}" if a.size < 12 else "")
    if isinstance(a, (tuple, list)):
        return f"({', '.join(map(text_of, a))})"
    return repr(a)


def watch(path, calls_file, seed, first, last, step, most):
    """Runs a share of the calls in processes; gives the failures as texts."""
    calls = pickle.loads(Path(calls_file).read_bytes())
    names, failures = sorted(calls), []
    with tempfile.NamedTemporaryFile() as now, tempfile.NamedTemporaryFile() as errors:
        while first < last and len(failures) < most:
            now.write(b"\0" * 8), now.flush(), now.seek(0)
            errors.truncate(0), errors.seek(0)
            command = [
                sys.executable,
                __file__,
                "--work",
                str(path),
                str(calls_file),
                now.name,
                str(seed),
                str(first),
                str(last),
                str(step),
            ]
            process = subprocess.Popen(command, stderr=errors)
            at, since, interrupted = -1, time.monotonic(), False
            while process.poll() is None:
                time.sleep(0.05)
                seen = int.from_bytes(Path(now.name).read_bytes(), "little")
                if seen != at:
                    at, since, interrupted = seen, time.monotonic(), at < 0  # at first it still starts
                elif time.monotonic() - since > PATIENCE:
                    process.kill()
                elif time.monotonic() - since > SOON and not interrupted:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
            at = int.from_bytes(Path(now.name).read_bytes(), "little")
            told = Path(errors.name).read_text(errors="replace").splitlines()
            failures += [line[:2000] for line in told if line.startswith("MISMATCH")]
            if process.returncode == 0:
                break
            if process.returncode == 1 and b"Traceback" in Path(errors.name).read_bytes():
                raise RuntimeError(Path(errors.name).read_text()[-2000:])
            if at // step % 2:
                given = "a sound call"
            else:
                name, args, kwargs, _ = mutant(calls, names, seed, at)
                args = [*map(text_of, args), *(f"{k}={text_of(v)}" for k, v in kwargs.items())]
                given = f"{name}({', '.join(args)})"
            said = Path(errors.name).read_text(errors="replace").strip().splitlines()
            told = [line for line in said if "ERROR" in line or "runtime error" in line or "#" in line[:9]]
            said = told[:7] or said[-7:]  # without a sanitizer: what ended it
            failures.append(
                "\n    ".join(
                    [f"call {at} of seed {seed}, ended with {process.returncode}: {given}", *said]
                )[:2000]
            )
            first = at + step
    return failures


def run(path, calls_file, calls, seed=0, first=0, jobs=1, most=20):
    """The failures of so many calls."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(jobs) as pool:
        shares = [
            pool.submit(watch, path, calls_file, seed, first + k, first + calls, jobs, most)
            for k in range(jobs)
        ]
        return [text for share in shares for text in share.result()]


def record(path, calls_file):
    """Note real calls, in a process of its own, without any sanitizer."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run(
        [sys.executable, __file__, "--record", str(path), str(calls_file)], check=True, env=environment
    )


def main():
    if sys.argv[1:2] == ["--work"]:
        path, calls_file, now_file, *numbers = sys.argv[2:]
        return work(path, calls_file, now_file, *map(int, numbers))
    if sys.argv[1:2] == ["--record"]:
        return Path(sys.argv[3]).write_bytes(pickle.dumps(collect(sys.argv[2])))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="start at this call, to repeat a failure")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--module", help="the extension's file; the one that is in use if none is given")
    parser.add_argument(
        "--recorder", help="the extension's file with which calls are noted, if it is another one"
    )
    args = parser.parse_args()
    if args.module is None:
        sys.path.insert(0, str(TESTS.parent))
        from framework import _native

        if _native.module is None:
            return print(f"no native kernels here ({_native.isa}), nothing to call")
        args.module = _native.module.__file__
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        calls_file = Path(folder) / "calls"
        record(args.recorder or args.module, calls_file)
        known = pickle.loads(calls_file.read_bytes())
        noted = time.perf_counter() - start
        failures = run(args.module, calls_file, args.calls, args.seed, args.first, args.jobs)
    for text in failures:
        print(text)
    print(
        f"seed {args.seed}: {args.calls} calls of {len(known)} functions, {len(failures)} failures; "
        f"{noted:.0f} s to note calls, {time.perf_counter() - start - noted:.0f} s to make them"
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
