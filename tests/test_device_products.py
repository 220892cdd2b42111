"""Products by cuBLASLt: its functions are called as its header says, here in a library that keeps descriptors
and has the products computed by what stands for cuBLAS; and cuBLAS takes over wherever it has no plan."""

import ctypes
import ctypes.util
import glob
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from device_libraries import in_place
from device_steps import counted
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import device_products
from framework.ops.linalg.cublas import followed, kept_of, product

F = fw.nn.functional


class Product(ctypes.Structure):
    """What cublas_lt.c hands over to be computed."""

    _fields_ = [*[(n, ctypes.c_int) for n in ("type", "computed")], ("turned", ctypes.c_int * 2),
                *[(n, ctypes.c_int) for n in ("batch", "epilogue")],
                *[(n, ctypes.c_int64) for n in "mnk"], ("steps", ctypes.c_int64 * 3),
                ("offsets", ctypes.c_int64 * 3),
                *[(n, ctypes.c_void_p) for n in ("alpha", "a", "b", "beta", "out", "vector", "aux")],
                ("aux_step", ctypes.c_int64), ("stream", ctypes.c_void_p)]


def gelu(x):
    """The approximate one, and its slope."""
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)
    slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x ** 2)
    return x * (1 + np.tanh(inner)) / 2, (1 + np.tanh(inner)) / 2 + x * slope / np.cosh(inner) ** 2 / 2


def follow(p, out, memory):
    """What cublasLt.h says that an epilogue does with a product, of columns; ``out`` is in float64."""
    def vector(n):
        return memory(p.vector, (n,), (1,))

    end = p.epilogue
    if end & (256 | 512):
        which, n, k = (0, p.m, 1) if end == 256 else (1, p.n, 0)
        rows, columns = ((p.m, p.k) if which == 0 else (p.k, p.n))
        steps = (1, p.steps[which]) if not p.turned[which] else (p.steps[which], 1)
        factor = memory((p.a, p.b)[which], (rows, columns), steps)
        vector(n)[...] = factor.astype("d").sum(k).astype(factor.dtype)
        return out
    if end & 4:
        out = out + vector(p.m).astype("d")[:, None]
    kept = end & 128
    if end & (2 | 8) and kept:  # bits of a column lie together
        bits = memory(p.aux, (p.aux_step // 8, p.n), (1, p.aux_step // 8), np.dtype("u1"))
        if end & 2:
            padded = np.zeros((p.aux_step, p.n), bool)
            padded[:p.m] = out > 0
            bits[...] = np.packbits(padded, axis=0, bitorder="little")
        else:
            out = out * np.unpackbits(bits, axis=0, bitorder="little")[:p.m]
    elif kept:
        before = memory(p.aux, (p.m, p.n), (1, p.aux_step))
        if end & 32:
            before[...] = out.astype(before.dtype)
        else:
            out = out * gelu(before.astype("d"))[1]
    if end & 2:
        out = np.maximum(out, 0)
    elif end & 32:
        out = gelu(out)[0]
    if end & 16:
        vector(p.m)[...] = out.sum(1).astype(vector(p.m).dtype)
    return out


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

            cublas.multiply(
                cublas.HANDLE, *p.turned, p.m, p.n, p.k, p.alpha, p.a, p.type, p.steps[0], p.offsets[0], p.b,
                p.type, p.steps[1], p.offsets[1], p.beta, p.out, p.type, p.steps[2], p.offsets[2] or p.m,
                p.batch, p.computed, -1)
            if p.epilogue != 1:
                dtype = np.dtype({0: "f4", 1: "f8", 2: "f2"}.get(p.type) or "bfloat16")
                out = cublas._memory(p.out, (p.m, p.n), (1, p.steps[2]), dtype)
                a, b = (self._factor(p, i, dtype) for i in range(2))
                out[...] = follow(p, a @ b, lambda at, shape, steps, kind=dtype: cublas._memory(
                    at, shape, steps, kind)).astype(dtype)
            self.done.append((p.type, p.computed, tuple(p.turned), p.batch, p.epilogue))
        except Exception as error:  # which ctypes would print and forget
            self.wrong.append(error)
            return 13
        return 0

    @staticmethod
    def _factor(p, which, dtype):
        from cupy import cublas

        shape = (p.m, p.k) if which == 0 else (p.k, p.n)
        turned, step = p.turned[which], p.steps[which]
        at = (p.a, p.b)[which]
        return cublas._memory(at, shape, (step, 1) if turned else (1, step), dtype).astype("d")

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
    begins = {"refuses": 0, "fails": 0, "planned": 0, "workspace": 1000}
    with in_place(device_products, Library(library), monkeypatch, **begins) as found:
        yield found


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
        done = len(lt.done)
        y.sin().sum().backward()
        ends.append([a.detach().double().cpu().numpy() for a in (y, x.grad, w.grad, b.grad)])
        if device == "cuda":
            assert launches == {"matmul": 1} and lt.done[0][-1] == 4
            # the gradients of weight and bias are one product; cuBLASLt has no such epilogue in float64
            assert sorted(d[-1] for d in lt.done[done:]) == ([1, 1] if dtype == "float64" else [1, 512])
    close = {"float32": 1e-5, "float64": 1e-12}.get(dtype, 3e-2)
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, close, close)
    one = fw.ones(1, dtype=x.dtype, device="cuda")  # no number for each column
    got = F.linear(x.to("cuda"), w.to("cuda"), one).detach().double().cpu()
    np.testing.assert_allclose(got, F.linear(x, w).double().detach().numpy() + 1, close, close)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["relu", "gelu"])
def test_activations_are_part_of_the_product(kind, dtype, lt, cupy):  # noqa: F811
    """Values and gradients of layers with an activation behind them, in and out of training."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    close = 1e-5 if dtype == "float32" else 3e-2
    active = fw.nn.ReLU() if kind == "relu" else fw.nn.GELU("tanh")
    net = fw.nn.Sequential(fw.nn.Linear(6, 13), active, fw.nn.Linear(13, 8, bias=False), active)
    x, ends = fw.randn(2, 5, 6, generator=fw.Generator().manual_seed(0)), []
    for device in ("cuda", "cpu"):
        model = net.to(device, getattr(fw, dtype))
        for p in model.parameters():
            p.grad = None
        with fw.no_grad():
            counts.clear()
            y = model(x.to(device, getattr(fw, dtype)))
            launches = dict(counts.launches)
        at = x.to(device, getattr(fw, dtype)).requires_grad_()
        done = len(lt.done)
        z = model(at)
        z.sin().sum().backward()
        ends.append([a.detach().double().cpu().numpy()
                     for a in (y, z, at.grad, *[p.grad for p in model.parameters()])])
        if device == "cuda":
            assert launches == {"matmul": 2}
            wanted = [6, 2] if kind == "relu" else [36 | 128, 32 | 128]
            assert [d[-1] for d in lt.done[done:]][:2] == wanted and 512 in [d[-1] for d in lt.done]
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, close, close)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["relu", "gelu"])
def test_slopes_of_activations_are_part_of_the_product(kind, dtype, lt, cupy):  # noqa: F811
    """Two layers with an activation between them: backward is four products, and nothing besides."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    close, bias = 1e-5 if dtype == "float32" else 5e-2, {"relu": True, "gelu": False}[kind]
    active = fw.nn.ReLU() if kind == "relu" else fw.nn.GELU("tanh")
    for first, second in ((True, True), (bias, not bias)):
        net = fw.nn.Sequential(fw.nn.Linear(6, 13, bias=first), active, fw.nn.Linear(13, 5, bias=second))
        x, g, ends = fw.randn(2, 7, 6), fw.randn(2, 7, 5), []
        for device in ("cuda", "cpu"):
            model = net.to(device, getattr(fw, dtype)).requires_grad_()
            at = x.to(device, getattr(fw, dtype)).requires_grad_()
            y, slope = model(at), g.to(device, getattr(fw, dtype))
            done = len(lt.done)
            counts.clear()
            found = fw.autograd.grad(y, [at, *model.parameters()], slope, retain_graph=True)
            if device == "cuda":
                assert set(counts.launches) <= {"matmul", "fold"} and counts.launches["matmul"] == 4
                ended = {d[-1] for d in lt.done[done:]} - {1, 512}
                assert ended == {(136 if kind == "relu" else 192) | (16 if first else 0)}
            (one,) = fw.autograd.grad(y, [at], slope, retain_graph=True)  # what is asked for alone
            for p in net[0].parameters():
                p.requires_grad_(False)
            rest = fw.autograd.grad(model(at.detach()), [*net[2].parameters()], slope)
            ends.append([a.detach().double().cpu().numpy() for a in (y, one, *found, *rest)])
        for a, b in zip(*ends, strict=True):
            np.testing.assert_allclose(a, b, close, close * 4)


def test_activations_join_under_autocast_and_in_transformers(lt, cupy):  # noqa: F811
    from cupy import counts

    net, x = fw.nn.Sequential(fw.nn.Linear(4, 4), fw.nn.ReLU()).to("cuda"), fw.randn(3, 4, device="cuda")
    with fw.autocast("cuda", dtype=fw.float16):
        y = net(x)
    assert y.dtype is fw.float16 and lt.done[-1][-1] == 6
    for active in ("relu", fw.nn.GELU("tanh")):
        layer = fw.nn.TransformerEncoderLayer(8, 2, 16, 0.0, active, batch_first=True)
        x, ends = fw.randn(2, 3, 8), []
        for device in ("cpu", "cuda"):
            layer.to(device)
            counts.clear()
            ends.append(layer(x.to(device)).detach().cpu().numpy())
        ended = [134, 6] if active == "relu" else [164, 36]
        assert [d[-1] for d in lt.done if d[-1] & 34][-1] == ended[0]
        np.testing.assert_allclose(*ends, 1e-4, 1e-5)
        with fw.no_grad():
            np.testing.assert_allclose(layer(x.to("cuda")).cpu().numpy(), ends[0], 1e-4, 1e-5)
        assert [d[-1] for d in lt.done if d[-1] & 34][-1] == ended[1]  # nothing is kept
        layer.dropout.p = 0.5
        layer(x.to("cuda"))
        assert [d[-1] for d in lt.done if d[-1] & 34][-1] == (6 if active == "relu" else 164)
    before = len(lt.done)
    handle = layer.linear1.register_forward_hook(lambda *_: None)  # then modules are called one by one
    layer(x.to("cuda"))
    assert not any(d[-1] & 32 for d in lt.done[before:])
    handle.remove()


@pytest.mark.parametrize("active", ["relu", "gelu"])
def test_shapes_of_two_layers_without_values(active, lt, cupy):  # noqa: F811
    from framework.ops.linalg.feed_forward import feed_forward_op
    from framework.ops.record.meta import Meta

    sizes = (2, 5, 6), (130, 6), (130,), (3, 130), (3,)
    given = [fw.randn(*s, device="cuda", requires_grad=True) for s in sizes]
    found = feed_forward_op.run(*given, active=active)
    told = feed_forward_op.infer(*[Meta(t.shape, t.dtype) for t in given], active=active)
    assert told == tuple([Meta(t.shape, t.dtype) for t in found])


def test_derivatives_of_joined_layers_to_second_order(lt, cupy):  # noqa: F811
    for kind in (fw.nn.ReLU(), fw.nn.GELU("tanh")):
        for last in ((), (kind,)):  # two layers as one call, and each with what follows it
            net = fw.nn.Sequential(fw.nn.Linear(3, 4), kind, fw.nn.Linear(4, 2), *last)
            x, ends = fw.randn(5, 3), []
            for device in ("cpu", "cuda"):
                net.to(device)
                at = x.to(device).requires_grad_()
                (g,) = fw.autograd.grad(net(at).sin().sum(), at, create_graph=True)
                found = fw.autograd.grad(g.square().sum(), [at, *net.parameters()][:-1], allow_unused=True,
                                         materialize_grads=True)
                ends.append([a.cpu().numpy() for a in found])
            for a, b in zip(*ends, strict=True):
                np.testing.assert_allclose(a, b, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_slopes_of_activations_in_products(dtype, lt, cupy):  # noqa: F811
    """relu's bits and gelu's matrix, kept by one product and read by the next, with the sum for a bias."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    fw.empty(1, dtype=fw.bfloat16)
    kind, rng = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), np.random.default_rng(0)
    x, w, b, g, v = (rng.standard_normal(s).astype(kind) for s in ((5, 6), (11, 6), (11,), (5, 3), (3, 11)))
    close = 1e-5 if dtype == "float32" else 5e-2
    P = device_products
    for active, slope in ((P.RELU, P.RELU_SLOPE), (P.GELU, P.GELU_SLOPE)):
        at = {n: cupy._new(a, 0) for n, a in {"x": x, "w": w, "b": b, "g": g, "v": v}.items()}
        kept = kept_of(active, 5, 11, kind)
        y = followed(at["x"], at["w"].T, active | P.BIAS | P.KEPT, at["b"], kept)
        inner = x.astype("d") @ w.astype("d").T + b.astype("d")
        value, steep = (np.maximum(inner, 0), inner > 0) if active == P.RELU else gelu(inner)
        np.testing.assert_allclose(y.get().astype("d"), value, close, close)
        total = cupy.empty(11, kind)
        d = followed(at["g"], at["v"], slope | P.SLOPE_SUM, total, kept)
        wanted = (g.astype("d") @ v.astype("d")) * steep
        np.testing.assert_allclose(d.get().astype("d"), wanted, close, close)
        np.testing.assert_allclose(total.get().astype("d"), wanted.sum(0), close, close * 5)


@pytest.mark.parametrize("name, most", [("mlp", 16), ("cnn", 30), ("gpt", 210), ("vit", 400)])
def test_launches_of_a_step_whose_products_do_more(name, most, lt, cupy):  # noqa: F811
    launches, waits, _ = counted(name)
    assert launches.total() <= most and not waits, (launches.total(), launches)


def test_where_there_is_no_plan_for_what_follows_kernels_do_it(lt, cupy):  # noqa: F811
    net = fw.nn.Sequential(fw.nn.Linear(4, 5), fw.nn.ReLU(), fw.nn.Linear(5, 2), fw.nn.GELU("tanh")).double()
    x, ends = fw.randn(3, 4).double(), []
    for device in ("cpu", "cuda"):
        net.to(device).zero_grad()
        net(x.to(device)).sum().backward()
        ends.append([p.grad.cpu().numpy() for p in net.parameters()])
    assert all(d[-1] in (1, 4) for d in lt.done)  # nothing follows products of float64 but a bias
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)


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
    with pytest.raises(TypeError, match="8 addresses, got 1"):
        plan.run(1)
    with pytest.raises(ValueError, match="address 0"):
        plan.run(1, 0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(TypeError):
        plan.run(*["a"] * 8)
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
    for which, what, value in ((0, 3, c.c_int32(1)), (0, 4, c.c_int32(1)),
                               *[(0, 7, c.c_uint32(end)) for end in (4, 6, 36, 134, 164, 152, 208, 512)],
                               (0, 8, c.c_void_p(256)), (0, 11, c.c_void_p(256)), (0, 12, c.c_int64(128)),
                               (1, 5, c.c_int32(3)), (1, 6, c.c_int64(72)),
                               (2, 1, c.c_uint64(1 << 25)),
                               *[(2, a, c.c_uint32(16)) for a in (5, 6, 7, 8)]):
        status = setters[which](made[which], what, c.byref(value), c.c_size_t(c.sizeof(value)))
        assert status == 0, (which, what)
