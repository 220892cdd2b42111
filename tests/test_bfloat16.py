"""bfloat16: promotion, arithmetic, gradients, files and capsules; and that it costs nothing until used."""

import io
import subprocess
import sys

import numpy as np
import pytest

import framework as fw
from framework import dtypes
from framework.ops import OPS

WITHOUT = "import sys; sys.modules['ml_dtypes'] = None; import framework as fw; "


def run(code):
    """Run a program; its output."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_nothing_is_imported_until_it_is_used():
    assert (
        run(
            "import framework as fw, sys; fw.bfloat16.itemsize, repr(fw.bfloat16), fw.ones(2).half(); "
            "print('ml_dtypes' in sys.modules)"
        )
        == "False"
    )


def test_the_extra_is_named():
    text = run(
        WITHOUT + "\ntry: fw.ones(2).bfloat16()\nexcept ImportError as e: print(type(e).__name__, e)"
    )
    assert (
        text.startswith("MissingExtraError")
        and "dtype bfloat16" in text
        and "framework[lowprecision]" in text
    )


ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
B = fw.bfloat16


def b(*values, **settings):
    """A bfloat16 tensor."""
    return fw.tensor(list(values), dtype=B, **settings)


@pytest.mark.parametrize(
    "other, wanted",
    [
        ("bfloat16", "bfloat16"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int64", "bfloat16"),
        ("bool", "bfloat16"),
        ("uint8", "bfloat16"),
        ("complex64", "complex64"),
    ],
)
def test_promotion(other, wanted):
    x, y = fw.ones(2, dtype=B), fw.ones(2, dtype=getattr(fw, other))
    assert (x + y).dtype is (y * x).dtype is fw.promote_types(B, y.dtype) is getattr(fw, wanted)
    assert fw.promote_types(y.dtype, B) is getattr(fw, wanted)


def test_promotion_is_pytorchs():
    torch = pytest.importorskip("torch", reason="tells what PyTorch promotes to")
    for d in dtypes.ALL:
        theirs = getattr(torch, d.name, None)
        if theirs is None or d.name in ("uint16", "uint32", "uint64"):
            continue
        assert (
            str(torch.promote_types(torch.bfloat16, theirs)) == f"torch.{fw.promote_types(B, d).name}"
        )


@pytest.mark.parametrize("value", [2, 2.5, True, np.float64(2.5), np.float32(2.5)])
def test_numbers_are_weak(value):
    assert (b(1.0) + value).dtype is (value * b(1.0)).dtype is B


def test_sums_do_not_stall():
    """Added up in bfloat16 itself, a sum of ones stops at 256."""
    x = fw.ones(4096, dtype=B)
    assert x.sum().item() == x.cumsum(0)[-1].item() == (x @ x).item() == 4096
    assert x.mean().item() == 1 and x.norm().item() == 64 and x.var().item() == 0


def test_one_rounding_per_op():
    """An expression of several steps is computed in float32 and rounded once."""
    x = fw.linspace(-3, 3, 101).to(B)
    for name in ("sigmoid", "tanh", "exp", "rsqrt", "erf"):
        want = getattr(x.float(), name)().to(B)
        assert fw.equal(fw.nan_to_num(getattr(x, name)()), fw.nan_to_num(want)), name
    assert fw.equal(fw.nn.functional.gelu(x), fw.nn.functional.gelu(x.float()).to(B))


def test_making_and_showing():
    assert fw.zeros(2, dtype=B).dtype is fw.arange(3, dtype=B).dtype is fw.eye(2, dtype=B).dtype is B
    assert fw.full((2,), 0.1, dtype=B).tolist() == [0.10009765625] * 2
    assert repr(b(1.0, 2.5)) == "tensor([1.0000, 2.5000], dtype=framework.bfloat16)"
    assert (
        fw.as_tensor(np.ones(2, ml_dtypes.bfloat16)).dtype is B
        and b(1.0).numpy().dtype == ml_dtypes.bfloat16
    )
    assert dtypes.as_dtype("bfloat16") is dtypes.as_dtype(ml_dtypes.bfloat16) is B
    assert fw.finfo(B).eps == 2**-7 and fw.finfo(B).bits == 16 and b(1.0).itemsize == 2
    assert b(1.0).is_floating_point() and not b(1.0).is_complex()


def test_random_numbers():
    fw.manual_seed(1)
    for x in (fw.rand(1000, dtype=B), fw.zeros(1000, dtype=B).uniform_()):
        assert (
            x.dtype is B
            and x.min().item() >= 0
            and x.max().item() < 1
            and abs(x.mean().item() - 0.5) < 0.05
        )
    x = fw.randn(1000, dtype=B)
    assert x.dtype is B and abs(x.float().std().item() - 1) < 0.1
    assert fw.zeros(9, dtype=B).exponential_().min().item() >= 0
    assert fw.nn.functional.dropout(fw.ones(100, dtype=B), 0.5).unique().tolist() == [0.0, 2.0]


def test_views_share_memory_and_in_place_writes():
    x = fw.zeros(2, 3, dtype=B)
    x.t()[0].fill_(3)
    x[1, 1:] += 0.5
    x.mul_(2)
    assert x.tolist() == [[6, 0, 0], [6, 1, 1]] and x.reshape(-1)._array.base is not None
    assert (x > 0.5).tolist() == [[True, False, False], [True, True, True]]
    values, indices = x.max(1)
    assert values.dtype is B and indices.tolist() == [0, 0]
    x[x == 0] = -1
    assert x.sort(1).values.tolist() == [[-1, -1, 6], [1, 1, 6]]


def test_gradients_are_bfloat16():
    x, w = b(1.0, 2.0, 3.0, requires_grad=True), fw.ones(3, 2, dtype=B).requires_grad_()
    ((x @ w).softmax(0) * fw.tensor([1.0, 3.0], dtype=B)).sum().backward()
    assert x.grad.dtype is w.grad.dtype is B
    (g,) = fw.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = fw.autograd.grad(g.sum(), x)
    assert g.tolist() == [3, 12, 27] and h.tolist() == [6, 12, 18] and h.dtype is B


def test_gradients_cross_casts():
    x = fw.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(B) * 3
    (y.float() * fw.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.dtype is fw.float32 and x.grad.tolist() == [3, 6]


def test_like_torch():
    torch = pytest.importorskip("torch", reason="PyTorch's gradients: the compare extra")
    rng = np.random.default_rng(0)
    a, w = [rng.normal(size=s).astype(np.float32) for s in ((4, 3, 8, 8), (5, 3, 3, 3))]
    grads = []
    for M in (fw, torch):
        x, k = [M.tensor(v).to(M.bfloat16).requires_grad_() for v in (a, w)]
        y = M.nn.functional.conv2d(x, k)
        y = M.nn.functional.layer_norm(M.nn.functional.max_pool2d(M.nn.functional.silu(y), 2), (3, 3))
        y.pow(2).mul(0.3).exp().mean().backward()
        grads.append([t.float().detach().numpy() for t in (y, x.grad, k.grad)])
    for ours, theirs in zip(*grads):
        np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.02 * np.abs(theirs).max())


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax"])
def test_modules_train(name):
    fw.manual_seed(0)
    layer = fw.nn.Linear(3, 2).bfloat16()
    optimizer = getattr(fw.optim, name)(layer.parameters(), lr=0.125)
    before = layer.weight.detach().clone()
    layer(fw.ones(4, 3, dtype=B)).square().mean().backward()
    optimizer.step()
    assert layer.weight.dtype is layer.weight.grad.dtype is B
    assert not fw.equal(before, layer.weight.detach()) and fw.isfinite(layer.weight).all()


def test_files():
    file = io.BytesIO()
    state = {"w": fw.randn(3, 2).to(B), "x": fw.ones(2)}
    fw.save(state, file)
    file.seek(0)
    back = fw.load(file)
    assert back["w"].dtype is B and fw.equal(back["w"], state["w"]) and fw.equal(back["x"], state["x"])


def test_safetensors_of_others(tmp_path):
    """The bytes are bfloat16's own: the upper half of float32."""
    from framework.io.safetensors import load_safetensors

    header = b'{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    data = (np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    assert load_safetensors(path)["a"].tolist() == [1.5, -2.0]


def test_capsules():
    """Through DLPack, to itself and to PyTorch and back, over the same memory."""
    x = b(1.5, -2.0)
    y = fw.from_dlpack(x)
    y[0] = 4
    assert y.dtype is B and x.tolist() == [4, -2]
    with pytest.raises(TypeError, match="NumPy does not take"):
        fw.from_dlpack(Exporter())


class Exporter:
    """Something whose elements no one reads."""

    def __dlpack__(self, **settings):
        raise RuntimeError("an unknown dtype")

    def __dlpack_device__(self):
        return 1, 0


def test_capsules_with_torch():
    torch = pytest.importorskip("torch", reason="the other side")
    theirs = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    ours = fw.from_dlpack(theirs)
    ours[1] = 3
    assert ours.dtype is B and theirs.tolist() == [1.5, 3]
    back = torch.from_dlpack(b(0.5, 7.0))
    assert back.dtype is torch.bfloat16 and back.tolist() == [0.5, 7]
    assert fw.from_dlpack(theirs, copy=True).add_(1).tolist() == [2.5, 4] and theirs.tolist() == [
        1.5,
        3,
    ]


def test_a_fresh_process_reads_a_pickle(tmp_path):
    """Before anything there has named bfloat16."""
    import pickle

    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(b(1.0, 2.0)))
    code = f"import pickle; x = pickle.load(open({str(path)!r}, 'rb')); print((x * 1.5).sum().dtype, x.dtype)"
    assert run(code) == "framework.bfloat16 framework.bfloat16"


def test_float32_keeps_its_kernel_beside_bfloat16():
    """Once bfloat16 is in use, every call must ask for it; the answer must not be slow or wrong."""
    narrow, wide = fw.ones(3, dtype=fw.bfloat16)._array, fw.ones(3)._array
    for name in ("exp", "add", "matmul", "cat"):
        op = next(op for op in OPS if op.name == name)
        if name != "cat":  # which only moves elements
            assert op.kernel_for([wide, narrow]) is op.narrow
        assert op.kernel_for([wide, 2.0, None]) is op.cpu
        assert op.kernel_for([wide, [wide, wide]]) is op.cpu


def test_gradients_without_dimensions_that_meet():
    """Their sum stays an array of the dtype: of two NumPy numbers, what follows would make a float32."""
    y = fw.tensor(1.5, dtype=B, requires_grad=True)
    x = fw.ones(3, dtype=B)
    b = y * 1
    ((x * 1) * b + b * 2).sum().backward()
    assert y.grad.dtype is B and y.grad.item() == 9


def test_gradients_of_single_numbers_are_bfloat16():
    """NumPy makes float64 of a scalar of bfloat16 beside a Python number."""
    x = fw.tensor(0.5, dtype=fw.bfloat16, requires_grad=True)
    for y in (fw.where(x != 1, x, 0.0).mean(), fw.nn.functional.hinge_embedding_loss(
            x, fw.tensor(-1.0, dtype=fw.bfloat16))):
        (g,) = fw.autograd.grad(y, x)
        assert g.dtype is fw.bfloat16 and abs(g.item()) == 1.0
