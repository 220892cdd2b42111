"""Products by cuBLASLt: its functions are called as its header says, here in a library that keeps descriptors
and has the products computed by what stands for cuBLAS; and cuBLAS takes over wherever it has no plan."""

import ctypes
import ctypes.util
import gc
import glob
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import device_products
from framework.ops.linalg.cublas import product

F = fw.nn.functional


class Product(ctypes.Structure):
    """What cublas_lt.c hands over to be computed."""

    _fields_ = [*[(n, ctypes.c_int) for n in ("type", "computed")], ("turned", ctypes.c_int * 2),
                *[(n, ctypes.c_int) for n in ("batch", "epilogue")],
                *[(n, ctypes.c_int64) for n in "mnk"], ("steps", ctypes.c_int64 * 3),
                ("offsets", ctypes.c_int64 * 3),
                *[(n, ctypes.c_void_p) for n in ("alpha", "a", "b", "beta", "out", "bias", "stream")]]


class Library:
    """The stand-in for cuBLASLt: its switches, and the products that it was handed."""

    def __init__(self, library):
        self._library, self.done, self.wrong = library, [], []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Product))
        self._called = kind(self._compute)
        ctypes.c_void_p.in_dll(library, "lt_compute").value = ctypes.cast(self._called, ctypes.c_void_p).value

    def _compute(self, at):
        try:
            p = at.contents
            from cupy import cublas

            cublas.gemmStridedBatchedEx(
                cublas.HANDLE, *p.turned, p.m, p.n, p.k, p.alpha, p.a, p.type, p.steps[0], p.offsets[0], p.b,
                p.type, p.steps[1], p.offsets[1], p.beta, p.out, p.type, p.steps[2], p.offsets[2] or p.m,
                p.batch, p.computed, -1)
            if p.epilogue == 4:
                dtype = np.dtype({0: "f4", 1: "f8", 2: "f2"}.get(p.type) or "bfloat16")
                out = cublas._memory(p.out, (p.m, p.n), (1, p.steps[2]), dtype)
                bias = cublas._memory(p.bias, (p.m, 1), (1, 1), dtype)
                out[...] = (out.astype("d") + bias.astype("d")).astype(dtype)
            self.done.append((p.type, p.computed, tuple(p.turned), p.batch, p.epilogue))
        except Exception as error:  # which ctypes would print and forget
            self.wrong.append(error)
            return 13
        return 0

    def __getattr__(self, name):
        return ctypes.c_int.in_dll(self._library, f"lt_{name}").value

    def set(self, **values):
        for name, value in values.items():
            kind = ctypes.c_size_t if name == "workspace" else ctypes.c_int
            kind.in_dll(self._library, f"lt_{name}").value = value


@pytest.fixture
def lt(raw, cupy, monkeypatch):  # noqa: F811
    if find_spec("framework._native.products") is None or not hasattr(cupy, "_new"):
        pytest.skip("the native module is not built here, or this is a real CuPy")
    library, path = raw.library("cublas_lt")
    monkeypatch.setattr(device_products, "library", lambda: path)
    monkeypatch.setattr(device_products, "_started", (None, None))
    found = Library(library)
    found.set(refuses=0, fails=0, planned=0, workspace=1000)
    yield found
    assert not found.wrong
    device_products._plans.clear()
    gc.collect()
    assert found.alive == 0  # descriptors go with their plans
    monkeypatch.undo()
    device_products._started = None, None


def laid(rng, dtype, shape, turned):
    a = rng.standard_normal((*shape[:-2], shape[-1], shape[-2]) if turned else shape).astype(dtype)
    return a.swapaxes(-1, -2) if turned else a


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_products_are_planned_once(dtype, lt, cupy):  # noqa: F811
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    fw.empty(1, dtype=fw.bfloat16)
    rng, close = np.random.default_rng(0), {"float64": 1e-12, "float32": 1e-5}.get(dtype, 2e-2)
    for batch, other in (((), ()), ((3,), (3,)), ((2, 3), ()), ((), (4,)), ((2, 1), (3,))):
        for turned in ((False, False), (True, False), (False, True), (True, True)):
            x, y = laid(rng, kind, (*batch, 4, 5), turned[0]), laid(rng, kind, (*other, 5, 6), turned[1])
            theirs = [cupy._new(a, 0) for a in (x, y)]
            for _ in range(2):
                plans = lt.planned
                got = product(*theirs)
                want = np.matmul(x.astype("d"), y.astype("d"))
                np.testing.assert_allclose(got.get().astype("d"), want, close, close)
            # memory of another alignment is another plan
            assert lt.done and lt.planned <= plans + 1
    ways = {d[0] for d in lt.done}
    assert ways == {{"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}[dtype]}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_bias_is_added_by_the_product(dtype, lt, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    ends, rng = [], np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((2, 3, 5), (4, 5), (4,))]
    for device in ("cuda", "cpu"):
        x, w, b = (fw.tensor(a).to(device, getattr(fw, dtype)).requires_grad_() for a in arrays)
        counts.clear()
        y = F.linear(x, w, b)
        launches = dict(counts.launches)
        y.sin().sum().backward()
        ends.append([a.detach().double().cpu().numpy() for a in (y, x.grad, w.grad, b.grad)])
        if device == "cuda":
            assert launches == {"matmul": 1} and lt.done[0][-1] == 4
    close = {"float32": 1e-5, "float64": 1e-12}.get(dtype, 3e-2)
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, close, close)
    one = fw.ones(1, dtype=x.dtype, device="cuda")  # no number for each column
    got = F.linear(x.to("cuda"), w.to("cuda"), one).detach().double().cpu()
    np.testing.assert_allclose(got, F.linear(x, w).double().detach().numpy() + 1, close, close)


def test_where_there_is_no_plan_cublas_computes(lt, cupy):  # noqa: F811
    from cupy import cublas

    x, w, b = (fw.randn(s, device="cuda") for s in ((3, 5), (4, 5), (4,)))
    want = F.linear(*(t.cpu() for t in (x, w, b))).numpy()
    lt.set(refuses=1)
    for _ in range(2):
        before = len(lt.done)
        np.testing.assert_allclose(F.linear(x, w, b).cpu().numpy(), want, 1e-5, 1e-5)
        assert len(lt.done) == before and cublas.calls[-1][0] == 0
    device_products._plans.clear()
    lt.set(refuses=0, fails=14)
    with pytest.warns(UserWarning, match="cuBLASLt refused a product that it had planned .*status 14"):
        np.testing.assert_allclose(F.linear(x, w, b).cpu().numpy(), want, 1e-5, 1e-5)
    np.testing.assert_allclose(F.linear(x, w, b).cpu().numpy(), want, 1e-5, 1e-5)  # said once
    device_products._plans.clear()
    device_products._refused.clear()
    lt.set(fails=0, workspace=device_products.ROOM + 1)  # more room than is given
    F.linear(x, w, b)
    assert not lt.done
    lt.set(workspace=0)
    device_products._plans.clear()
    F.linear(x, w, b)
    assert len(lt.done) == 1


def test_what_is_asked_follows_the_precision(lt, cupy):  # noqa: F811
    x = fw.randn(3, 3, device="cuda")
    before = fw.get_float32_matmul_precision()
    try:
        for precision in ("highest", "high"):
            fw.set_float32_matmul_precision(precision)
            x @ x
    finally:
        fw.set_float32_matmul_precision(before)
    assert [computed for _, computed, *_ in lt.done] == [68, 77]


def test_wrong_calls_of_the_native_module_raise(lt, cupy):  # noqa: F811
    (fw.randn(3, 3, device="cuda") @ fw.randn(3, 3, device="cuda")).cpu()
    plan = next(iter(device_products._plans.values()))
    native = sys.modules["framework._native.products"]
    with pytest.raises(TypeError, match="7 addresses, got 1"):
        plan.run(1)
    with pytest.raises(ValueError, match="address 0"):
        plan.run(1, 0, 0, 0, 0, 0, 0)
    with pytest.raises(TypeError):
        plan.run(*["a"] * 7)
    with pytest.raises(TypeError):
        native.plan(1)
    with pytest.raises(TypeError, match="cannot create"):
        type(plan)()
    for library in ("libnothing.so", ctypes.util.find_library("c") or "libc.so.6"):
        assert not native.start(library)
    assert plan.workspace == 1000


def test_the_real_library_takes_what_it_is_told():
    """Descriptors need no GPU: NVIDIA's own library accepts the numbers and sizes of their attributes."""
    if find_spec("nvidia") is None:
        pytest.skip("pip install nvidia-cublas")
    import nvidia

    found = [p for root in nvidia.__path__ for p in glob.glob(f"{root}/**/libcublasLt.so.*", recursive=True)]
    if not found:
        pytest.skip("pip install nvidia-cublas")
    c, library = ctypes, ctypes.CDLL(found[0])
    made = [c.c_void_p() for _ in range(3)]
    assert not library.cublasLtMatmulDescCreate(c.byref(made[0]), 77, 0)
    sizes = c.c_uint64(8), c.c_uint64(9), c.c_int64(8)
    assert not library.cublasLtMatrixLayoutCreate(c.byref(made[1]), 14, *sizes)
    assert not library.cublasLtMatmulPreferenceCreate(c.byref(made[2]))
    setters = (library.cublasLtMatmulDescSetAttribute, library.cublasLtMatrixLayoutSetAttribute,
               library.cublasLtMatmulPreferenceSetAttribute)
    for which, what, value in ((0, 3, c.c_int32(1)), (0, 4, c.c_int32(1)), (0, 7, c.c_uint32(4)),
                               (0, 8, c.c_void_p(256)), (1, 5, c.c_int32(3)), (1, 6, c.c_int64(72)),
                               (2, 1, c.c_uint64(1 << 25)),
                               *[(2, a, c.c_uint32(16)) for a in (5, 6, 7, 8)]):
        status = setters[which](made[which], what, c.byref(value), c.c_size_t(c.sizeof(value)))
        assert status == 0, (which, what)
