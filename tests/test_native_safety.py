"""What the extension does not trust: numbers that change meanwhile, memory, sizes that overflow."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import _native

sys.path.append(str(Path(__file__).parent / "stress"))
import fuzz_native as fuzz

native = _native.module
needs_native = pytest.mark.skipif(native is None, reason="without the native kernels")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and /proc as on Linux")
HUGE = 2**63 - 1


def python(program, **environment):
    """Runs a program in a process of its own, which must end well; gives what it printed."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, f"ended with {run.returncode}\n{run.stdout}\n{run.stderr[-2000:]}"
    return run.stdout


# -- memory ---------------------------------------------------------------------------------------


def test_numpy_may_resize_an_array_whatever_its_size():
    """A buffer just below the size from which we keep buffers is NumPy's, though the system gave more."""
    python("""
        import numpy as np, framework as fw
        for n in (65535, 65536, 65537, 70000):
            for to in (10, 65530, 65536, 200000):
                a = (fw.rand(n) * 2).numpy()
                first = a[:10].copy()
                a.resize(to, refcheck=False)
                assert (a[:10] == first).all()
                del a
                others = [fw.rand(80000) + 1 for _ in range(8)]
                assert all(((x.numpy() >= 1) & (x.numpy() <= 2)).all() for x in others)
    """)


@needs_native
def test_resizing_is_counted():
    before = fw.cpu.memory_allocated()
    a = (fw.rand(300000) * 2).numpy()
    a.resize(400000, refcheck=False)
    assert fw.cpu.memory_allocated() - before == 1600000
    del a
    assert fw.cpu.memory_allocated() == before


@needs_native
@linux
def test_scratch_without_memory_is_a_memory_error():
    python("""
        import resource, sys
        import framework as fw
        fw.set_num_threads(2)
        big = {
            "sort": (fw.rand(1 << 22), lambda x: x.sort(), 80),
            "of columns": (fw.rand(1 << 20, 4), lambda x: x.sort(0), 80),
            "kthvalue": (fw.rand(1 << 22), lambda x: x.kthvalue(5), 15),
        }
        fw.cpu.set_cache_limit(0)
        def size():
            return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        for name, (x, call, free) in big.items():
            held = fw.cpu.memory_allocated()
            resource.setrlimit(resource.RLIMIT_AS, (size() + (free << 20), resource.RLIM_INFINITY))
            try:
                call(x)
            except MemoryError:
                pass
            else:
                sys.exit(name + " raised nothing")
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert fw.cpu.memory_allocated() == held, name  # nothing leaked
            call(x)
    """)


@needs_native
@linux
def test_arguments_without_memory_are_a_memory_error():
    """Lists and texts become the extension's own: in a place where no exception may pass, of nanobind."""
    python("""
        import resource, sys
        from framework import _native
        m = _native.module
        def size():
            return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        import numpy as np
        state, row = np.zeros(13, np.uint64), np.ones((2, 3), np.float32)
        long, text = [1] * (8 << 20), "x" * (64 << 20)
        calls = [lambda: m.philox_uniform(state, long, False),
                 lambda: m.grid_sample(row, row, text, text, False)]
        for call in calls:
            resource.setrlimit(resource.RLIMIT_AS, (size() + (80 << 20), resource.RLIM_INFINITY))
            spare = bytearray(40 << 20)
            try:
                call()
            except MemoryError:
                pass
            else:
                sys.exit("raised nothing")
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    """)


@needs_native
def test_numbers_at_the_ends_of_their_range_are_refused():
    x, index = np.zeros((2, 3), np.float32), np.zeros((1, 2), np.int64)
    assert native.index_put(x, x[0, :2].copy(), index, dims=(HUGE, 1)) is NotImplemented
    state = np.zeros(13, np.uint64)
    assert native.philox_integers(state, [3], HUGE, 9) is NotImplemented


@needs_native
def test_large_scratch_goes_back():
    x = fw.rand(1 << 21)
    fw.cpu.empty_cache()
    held, cached = fw.cpu.memory_allocated(), fw.cpu.memory_stats()["cached"]
    out = x.sort()
    assert fw.cpu.memory_stats()["cached"] >= (1 << 21) * 16  # two places for each entry
    del out
    fw.cpu.empty_cache()
    assert fw.cpu.memory_allocated() == held and fw.cpu.memory_stats()["cached"] == cached == 0


@needs_native
@linux
def test_a_thread_that_cannot_start_is_asked_for_again():
    python(
        """
        import os, resource, time
        import framework as fw
        def tasks():
            return len(os.listdir("/proc/self/task"))
        x = fw.rand(1 << 20)
        fw.set_num_threads(4)
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        before = tasks()
        resource.setrlimit(resource.RLIMIT_AS, (size + (6 << 20), resource.RLIM_INFINITY))
        try:
            x.sum()  # no memory for the stacks of threads
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert tasks() < before + 3
        time.sleep(1.1)
        x.sum()
        assert tasks() == before + 3, (before, tasks())
    """,
        OMP_NUM_THREADS="1",
    )


# -- what changes meanwhile -----------------------------------------------------------------------


@needs_native
@pytest.mark.parametrize(
    "what",
    [
        "cross_entropy",
        "cross_entropy_grad",
        "pick_places",
        "put_places",
        "max_spread",
        "max_collect",
        "kthvalue",
        "gather",
        "embedding",
    ],
)
def test_another_thread_writes_into_the_positions(what):
    """Positions are checked where they are used, or copied: a write in between is no crash."""
    python(f"""
        import threading, sys, time
        import numpy as np
        import framework as fw
        from framework import _native
        sys.setswitchinterval(1e-5)
        m, what = _native.module, {what!r}
        fw.set_num_threads(2)
        r = np.random.default_rng(0)
        n, c = 4000, 32
        x = r.random((n, c), np.float32)
        t = r.integers(0, c, n)
        image = r.random((8, 8, 32, 32), np.float32)
        places = np.zeros((8, 8, 16, 16), np.int32)
        flat = np.zeros((8, 8, 256), np.int64)
        row = r.random(1 << 17, np.float32)
        written = {{"pick_places": flat, "put_places": flat, "max_spread": places, "max_collect": places,
                   "kthvalue": row}}.get(what, t)
        if written.dtype.kind == "i":
            whole, wrong = written.copy(), np.full_like(written, np.iinfo(written.dtype).max - 5)
        else:
            whole, wrong = written.copy(), np.full_like(row, np.nan)
        pool = ((3, 3), (2, 2), (1, 1), (1, 1), (16, 16))
        _, top, total = m.cross_entropy(x, t, None, -100, 0.0, "none")
        calls = {{
            "cross_entropy": lambda: m.cross_entropy(x, t, None, -100, 0.0, "mean"),
            "cross_entropy_grad": lambda: m.cross_entropy_grad(1.0, x, t, None, top, total, -1, 0.0, "mean"),
            "pick_places": lambda: m.pick_places(image.reshape(8, 8, 1024), flat, 1),
            "put_places": lambda: m.put_places(image[:, :, :8].reshape(8, 8, -1), flat, 1, (8, 8, 1024)),
            "max_spread": lambda: m.max_spread(image[:, :, :16, :16].copy(), places, image.shape, *pool),
            "max_collect": lambda: m.max_collect(image, places, *pool),
            "kthvalue": lambda: m.kthvalue(row, 0, False, row.size - 2, bool(time.time_ns() & 1)),
            "gather": lambda: m.gather(x, t.reshape(-1, 1), 1),
            "embedding": lambda: m.embedding(x[:c].copy(), t, None, False),
        }}
        end = time.monotonic() + 0.7
        def write():
            while time.monotonic() < end:
                written[...] = wrong
                written[...] = whole
        other = threading.Thread(target=write)
        other.start()
        while time.monotonic() < end:
            calls[what]()
        other.join()
        assert calls[what]() is not NotImplemented
    """)


# -- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.pad(x, (HUGE,) * 2),
        lambda x: F.pad(x, (2**62, 2**62)),
        lambda x: fw.tile(x, (2**62,)),
        lambda x: x.tile((2**62, 2**62)),
        lambda x: x.repeat(2**62, 4),
        lambda x: x.repeat(2**31, 2**31, 2**31),
        lambda x: x.repeat_interleave(2**61),
        lambda x: F.conv1d(x[None], fw.ones(2, 2, 2), padding=2**61, dilation=2**61),
        lambda x: F.conv1d(x[None], fw.ones(2, 2, 2), padding=2**62),
        lambda x: F.conv1d(x[None], fw.ones(2, 2, 2), padding=HUGE, dilation=HUGE),
        lambda x: F.conv2d(x[None, None], fw.ones(1, 1, 2, 2), padding=2**61, dilation=2**61),
        lambda x: F.conv_transpose1d(x[None], fw.ones(2, 2, 2), stride=2**62),
        lambda x: F.conv_transpose1d(x[None], fw.ones(2, 2, 2), dilation=2**62, output_padding=0),
        lambda x: F.max_pool1d(x[None], 2, padding=1, dilation=2**62),
        lambda x: F.max_pool1d(x[None], 2**62, padding=2**61),
        lambda x: F.avg_pool1d(x[None], 2**62, padding=2**61),
        lambda x: F.unfold(x[None, None], 2, padding=2**61, dilation=2**61),
        lambda x: F.fold(x[None, :, :1], 2**61, 1),
        lambda x: fw.zeros(2**62, 2**62),
        lambda x: fw.zeros(HUGE),
        lambda x: fw.full((2**40, 2**40), 1.0),
        lambda x: fw.rand(2**62, 4),
        lambda x: fw.randn(2**40, 2**40),
        lambda x: fw.randint(0, 5, (2**62, 8)),
        lambda x: fw.arange(2**62),
        lambda x: fw.arange(0, 1e300),
        lambda x: fw.linspace(0, 1, 2**62),
        lambda x: fw.eye(2**40, 2**40),
        lambda x: F.interpolate(x[None], size=2**61),
        lambda x: F.interpolate(x[None], scale_factor=1e18),
        lambda x: F.adaptive_avg_pool1d(x[None], 2**61),
        lambda x: F.adaptive_max_pool1d(x[None], 2**61),
        lambda x: F.one_hot(fw.tensor([1, 2]), 2**62),
        lambda x: fw.cat([x.expand(2**61, 2, 3)] * 3),
        lambda x: x.expand(2**40, 2**40, 2, 3) + 1,
        lambda x: (x.expand(2**40, 2, 3)[:, None] + x.expand(2**40, 2, 3)[None]).sum(),
        lambda x: x.unsqueeze(0).expand(2**60, 2, 3).contiguous(),
        lambda x: x.new_zeros(2**62, 4),
    ],
    ids=range(38),
)
def test_huge_sizes_are_errors(call):
    """No product of sizes wraps around to something small; what cannot be is said so."""
    with pytest.raises((ValueError, MemoryError, RuntimeError, OverflowError)) as info:
        call(fw.ones(2, 3))
    assert str(info.value)


# -- direct calls ---------------------------------------------------------------------------------


@needs_native
def test_arguments_that_do_not_fit_are_refused():
    a = np.zeros((2, 3, 4), np.float32)
    assert native.searchsorted(a[:1].copy(), a, False) is NotImplemented
    p = [np.zeros(3, np.float32) for _ in range(4)]
    with pytest.raises(KeyError):
        native.adam_step(p, {"lr": 0.1})
    where = np.full((1, 1, 2, 2), 200, np.uint8)
    windows = ((1, 1, 4, 4), (2, 2), (2, 2), (1, 1), (1, 1), (2, 2))
    assert native.max_spread(np.zeros((1, 1, 2, 2), np.float32), where, *windows) is NotImplemented


@needs_native
def test_a_number_beside_an_empty_array_is_refused():
    """One was read from the empty array, which only a sanitizer saw."""
    assert native.special_zeta(np.zeros((2, 0)), np.array(1.0)) is NotImplemented


@needs_native
def test_gradients_of_another_byte_order_are_refused_by_ctc():
    """Their type was asked for before it was known whether kernels read them at all."""
    x, labels = np.zeros((4, 2, 3), np.float32), np.array([[0, 1, 0], [0, 2, 0]])
    losses, alpha = native.ctc(x, labels, np.array([4, 4]), np.array([1, 1]), 0)
    given = {"g": losses, "alpha": alpha, "losses": losses}
    rest = (labels, np.array([4, 4]), np.array([1, 1]))
    call = lambda g, alpha, losses: native.ctc_grad(g, x, alpha, losses, *rest, blank=0)
    assert call(**given).shape == x.shape
    for name, a in given.items():
        for wrong in (a.astype(a.dtype.newbyteorder()), a[:0], a.astype("f8"), np.float32(1) + a[0]):
            assert call(**{**given, name: np.asarray(wrong)}) is NotImplemented


@needs_native
def test_steps_that_are_done_once_cannot_write_past_the_result():
    """They fill buffers of 64 numbers: into an array of two, that was a heap overflow, seen long after."""
    with pytest.raises(ValueError, match="once"):
        native.make_kernel(("x",), (False,), (), 0, (("neg", 1, 0, 0, 0),), 1, False, np.negative)


@needs_native
@linux
def test_direct_calls_never_crash(tmp_path):
    """A slice of ``tests/stress/fuzz_native.py``, over calls that were noted of nearly all functions."""
    calls_file = tmp_path / "calls"
    fuzz.record(native.__file__, calls_file)
    known = pickle.loads(calls_file.read_bytes())
    assert len(known) > 95
    failures = fuzz.run(native.__file__, calls_file, 6000, seed=int(time.time()) // 86400, jobs=2, most=3)
    assert not failures, "\n".join(failures)


# -- interrupts -----------------------------------------------------------------------------------


LONG = """
import os, signal, sys, threading
import numpy as np
import framework as fw
import framework.nn.functional as F
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs tests beside it ignores it
fw.set_num_threads(int(sys.argv[1]))
x = fw.rand(1, 1 << 16, 64)  # half a minute to the end, without AVX many; it stops after a 64th
if sys.argv[2] == "product":
    x = fw.rand(1, 9000, 9000)  # half a minute of one thread
rows = int(sys.argv[1])  # of one number that is multiplied for hours, each in a thread of its own
places = fw.zeros(1, 1, dtype=fw.int64).expand(rows, 1 << 42)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    if sys.argv[2] == "places":
        fw._native.module.scatter_multiply(np.ones((rows, 1)), np.ones(()), places.numpy(), dim=1)
    elif sys.argv[2] == "product":
        x @ x
    elif sys.argv[2] == "fold":  # one result of numbers that repeat
        step = ("exp", 1, 0, 0, 0)
        kernel = fw._native.module.make_kernel(("x",), (False,), (), 1, (step,), 0, False, np.exp)
        many = np.lib.stride_tricks.as_strided(np.ones(17), (17, 1 << 50), (8, 0))
        kernel.fold("sum", (0, 1), False, 1.0, many)
    else:
        F.scaled_dot_product_attention(x, x, x)
except KeyboardInterrupt:
    print("interrupted", (x[0, :64] @ x[0, :64].mT).shape == (64, 64))  # all is as before
"""


@needs_native
@pytest.mark.parametrize("threads,kernel", [(1, "attention"), (2, "attention"), (1, "product"), (1, "places"),
                                            (2, "places"), (1, "fold"), (2, "fold")])
def test_a_long_kernel_can_be_interrupted(threads, kernel):
    done = subprocess.run([sys.executable, "-c", LONG, str(threads), kernel], capture_output=True, text=True,
                          timeout=100)
    assert done.stdout == "interrupted True\n", done.stderr


@needs_native
def test_a_program_with_a_handler_of_its_own_is_not_interrupted():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(fw.ones(3).sum().item()))
    try:
        y = fw.rand(40, 1 << 16)
        timer = threading.Timer(0.08, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        values = y.sort().values.numpy()
        timer.join()
        time.sleep(0.01)
        assert heard == [3.0] and (np.diff(values) >= 0).all()
    finally:
        signal.signal(signal.SIGINT, before)


SWAPPED = """
import sys, threading
import framework as fw
fw.cpu.set_cache_limit(0)  # so that memory which nobody has is the system's at once
n = 400_000
x, w, done = fw.ones(n), fw.ones(n), threading.Event()
def swap():
    while not done.is_set():
        x.data = fw.zeros(n)
other = threading.Thread(target=swap)
sys.setswitchinterval(1e-5)
other.start()
for _ in range(60):
    x.softmax(0), x.sum(), fw.where(w > 0, x, w), x.sort(), x[:1000].exp(), w[:9].copy_(x[:9])
    w.add_(x), x + w
done.set()
other.join()
print("survived")
"""


@needs_native
def test_a_tensor_may_get_another_array_while_a_kernel_reads_the_old_one():
    done = subprocess.run([sys.executable, "-c", SWAPPED], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "survived", done.stderr[-2000:]
