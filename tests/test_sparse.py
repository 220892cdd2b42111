"""Sparse tensors: values, gradients, layouts and errors, beside dense tensors, SciPy and PyTorch."""

import copy
import io
import pickle

import numpy as np
import pytest

import framework as fw
from framework.errors import AutogradError, LayoutError, ShapeError

COLUMN = fw.arange(1.0, 7, dtype=fw.float64).reshape(6, 1)
LAYOUTS = ["coo", "csr", "csc", "bsr", "bsc"]


def dense(m=6, n=4, seed=0, share=0.4, dtype=np.float64):
    """A matrix with about this share of elements that are not 0, and an empty row and column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(m, n)) * (rng.random((m, n)) < share)
    x[1] = 0
    x[:, 2] = 0
    x[0, 0] = 1.5
    return x.astype(dtype)


def as_layout(x, layout, requires_grad=False):
    x = fw.tensor(x) if isinstance(x, np.ndarray) else x
    blocks = ((2, 2),) if layout.startswith("bs") else ()
    made = getattr(x, f"to_sparse_{layout}")(*blocks).detach()
    return made.requires_grad_(requires_grad)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout):
    x = dense()
    s = as_layout(x, layout)
    assert s.layout is getattr(fw, f"sparse_{layout}") and repr(s.layout) == f"framework.sparse_{layout}"
    assert s.shape == (6, 4) and s.dtype is fw.float64 and s.ndim == 2 and s.numel() == 24
    assert s.is_sparse is (layout == "coo") and s.is_sparse_csr is (layout == "csr")
    np.testing.assert_array_equal(s.to_dense().numpy(), x)
    for other in LAYOUTS:
        np.testing.assert_array_equal(as_layout(s, other).to_dense().numpy(), x)
    np.testing.assert_array_equal(s.t().to_dense().numpy(), x.T)
    np.testing.assert_array_equal(fw.transpose(s, 0, 1).to_dense().numpy(), x.T)
    assert s.sparse_dim() == 2 and s.dense_dim() == 0


def test_dense_tensors_say_that_they_are():
    x = fw.ones(2)
    assert x.is_sparse is False and x.is_sparse_csr is False and x.layout is fw.strided
    assert x.to_dense() is x


def test_coalesce_sums_places_that_repeat_and_sorts():
    s = fw.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    assert not s.is_coalesced() and s._nnz() == 3
    with pytest.raises(AutogradError, match="coalesce"):
        s.values()
    c = s.coalesce()
    assert c.is_coalesced() and c._nnz() == 2 and c.coalesce() is c
    assert c.indices().tolist() == [[0, 1], [0, 2]] and c.values().tolist() == [4.0, 8.0]
    assert s._indices().tolist() == [[1, 0, 1], [2, 0, 2]] and s._values().tolist() == [3.0, 4.0, 5.0]


def test_hybrid_tensors_have_dense_dimensions():
    values = fw.arange(6.0).reshape(3, 2)
    s = fw.sparse_coo_tensor([[0, 2, 2]], values, (3, 2))
    assert s.sparse_dim() == 1 and s.dense_dim() == 1
    assert s.to_dense().tolist() == [[0, 1], [0, 0], [6, 8]]
    assert s.to_dense().to_sparse(1)._nnz() == 2
    np.testing.assert_array_equal(fw.sparse.sum(s, 1).to_dense().numpy(), [1, 0, 14])
    np.testing.assert_array_equal(fw.sparse.sum(s, 0).numpy(), [6, 9])
    with pytest.raises(LayoutError, match="dense dimensions"):
        s @ fw.ones(2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [None, 1, 3])
def test_products_and_their_gradients(layout, width):
    """A @ d for each layout: values, first and second derivatives to the values and to the dense operand."""
    x = dense()
    d = np.random.default_rng(1).normal(size=(4,) if width is None else (4, width))
    s = as_layout(x, layout, True)
    t = fw.tensor(d, requires_grad=True)
    y = s @ t
    np.testing.assert_allclose(y.detach().numpy(), x @ d, atol=1e-12)
    (y * y).sum().backward()
    w = fw.tensor(x, requires_grad=True)
    u = fw.tensor(d, requires_grad=True)
    ((w @ u) ** 2).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), u.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(s.grad.to_dense().numpy(), (w.grad * _stored(s)).numpy(), atol=1e-12)
    assert s.grad.layout is s.layout
    pattern = s.detach()

    def product(values, other):
        return fw.sparse.mm(with_values(pattern, values), other) if width else with_values(pattern,
                                                                                           values) @ other

    values = pattern.coalesce().values() if layout == "coo" else pattern.values()
    fw.autograd.gradcheck(product, (values.requires_grad_(), fw.tensor(d, requires_grad=True)),
                          fast_mode=True)
    fw.autograd.gradgradcheck(product, (values, fw.tensor(d, requires_grad=True)), fast_mode=True)


def _stored(s):
    """1 where a place is stored."""
    return with_values(s.detach(), fw.ones_like(s.detach()._values())).to_dense()


def with_values(s, values):
    if s.is_sparse:
        return fw.sparse_coo_tensor(s._indices(), values, s.shape)
    by_row = s.layout in (fw.sparse_csr, fw.sparse_bsr)
    parts = (s.crow_indices(), s.col_indices()) if by_row else (s.ccol_indices(), s.row_indices())
    return fw.sparse_compressed_tensor(*parts, values, s.shape, layout=s.layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_times_sparse(layout):
    x, d = dense(), np.random.default_rng(1).normal(size=(3, 6))
    s = as_layout(x, layout, True)
    t = fw.nn.Parameter(fw.tensor(d))
    y = t @ s
    np.testing.assert_allclose(y.detach().numpy(), d @ x, atol=1e-12)
    y.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.ones((3, 4)) @ x.T, atol=1e-12)
    np.testing.assert_allclose(s.grad.to_dense().numpy(), (d.T @ np.ones((3, 4))) * _stored(s).numpy(),
                               atol=1e-12)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_times_sparse(layout):
    a, b = dense(), dense(4, 5, seed=3)
    x, y = as_layout(a, layout, True), as_layout(b, layout, True)
    z = fw.sparse.mm(x, y)
    assert z.layout is x.layout
    np.testing.assert_allclose(z.to_dense().detach().numpy(), a @ b, atol=1e-12)
    (z.to_dense() ** 2).sum().backward()
    g = 2 * (a @ b)
    np.testing.assert_allclose(x.grad.to_dense().numpy(), (g @ b.T) * (a != 0), atol=1e-12)
    np.testing.assert_allclose(y.grad.to_dense().numpy(), (a.T @ g) * (b != 0), atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sampled_products(layout):
    x = dense()
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(3, 4))
    s = as_layout(x, layout, True)
    p, q = fw.tensor(a, requires_grad=True), fw.tensor(b, requires_grad=True)
    y = fw.sparse.sampled_addmm(s, p, q, beta=0.5, alpha=2.0)
    there = _stored(s).numpy()
    np.testing.assert_allclose(y.to_dense().detach().numpy(), 0.5 * x + 2 * (a @ b) * there, atol=1e-12)
    y.to_dense().sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), 2 * there @ b.T, atol=1e-12)
    np.testing.assert_allclose(q.grad.numpy(), 2 * a.T @ there, atol=1e-12)
    np.testing.assert_allclose(s.grad.to_dense().numpy(), 0.5 * there, atol=1e-12)


def test_addmm():
    x, d, m = dense(), np.ones((4, 2)), np.full((6, 2), 3.0)
    y = fw.sparse.addmm(fw.tensor(m), as_layout(x, "csr"), fw.tensor(d), beta=2, alpha=0.5)
    np.testing.assert_allclose(y.numpy(), 2 * m + 0.5 * x @ d)
    y = fw.addmm(fw.tensor(m), as_layout(x, "coo"), fw.tensor(d))
    np.testing.assert_allclose(y.numpy(), m + x @ d)
    lost = fw.sparse.addmm(fw.full((6, 2), float("nan"), dtype=fw.float64), as_layout(x, "csr"),
                           fw.tensor(d), beta=0)
    np.testing.assert_allclose(lost.numpy(), x @ d)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_of_elements(layout):
    a, b = dense(), dense(seed=5)
    x, y = as_layout(a, layout), as_layout(b, layout)
    for name, made, want in (
            ("times a number", x * 3, a * 3), ("number times", 3 * x, a * 3), ("by a number", x / 2, a / 2),
            ("minus", -x, -a), ("sum", x + y, a + b), ("difference", x - y, a - b), ("product", x * y, a * b),
            ("relu", x.relu(), a.clip(0)), ("tanh", fw.tanh(x), np.tanh(a)), ("square", x ** 2, a ** 2),
            ("abs", abs(x), abs(a)), ("alpha", fw.add(x, y, alpha=2), a + 2 * b),
            ("maximum", fw.maximum(x, y), np.maximum(a, b)), ("by dense", x * fw.tensor(b), a * b),
            ("by a row", x * fw.arange(1.0, 5, dtype=fw.float64), a * np.arange(1, 5)),
            ("by a column", x / COLUMN, a / COLUMN.numpy())):
        assert made.layout is x.layout, name
        np.testing.assert_allclose(made.to_dense().numpy(), want, err_msg=name, atol=1e-15)
    for made in (x + fw.tensor(b), fw.tensor(b) + x):
        assert made.layout is fw.strided
        np.testing.assert_allclose(made.numpy(), a + b)
    with pytest.raises(LayoutError, match="cos: of 0 it is 1.0.*to_dense"):
        x.cos()
    with pytest.raises(LayoutError, match="of 0 it is 2.0"):
        x + 2.0
    with pytest.raises(ShapeError, match="equal shapes"):
        x + as_layout(dense(4, 4), layout)


def test_gradients_through_functions_of_elements():
    i = fw.tensor([[0, 1, 1], [2, 0, 2]])
    v = fw.tensor([3.0, -4.0, 5.0], dtype=fw.float64, requires_grad=True)
    w = fw.tensor([1.0, 2.0, 3.0], dtype=fw.float64, requires_grad=True)
    d = fw.randn(2, 3, dtype=fw.float64, requires_grad=True)

    def function(v, w, d):
        x = fw.sparse_coo_tensor(i, v, (2, 3))
        y = fw.sparse_coo_tensor(i.flip(1), w, (2, 3))
        z = (x * 2 + y.tanh()) * d - x * y
        return z.to_dense(), fw.sparse.sum(z, 0).to_dense(), fw.sparse.softmax(x, 1).to_dense(), \
            fw.sparse.log_softmax(y.to_sparse_csr(), 0).to_dense(), d.sparse_mask(x).values()
    assert fw.autograd.gradcheck(function, (v, w, d), fast_mode=True)
    assert fw.autograd.gradgradcheck(function, (v, w, d), fast_mode=True)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sums_and_softmax(layout):
    a = dense()
    x = as_layout(a, layout)
    assert float(x.sum()) == pytest.approx(a.sum()) and float(fw.sum(x)) == pytest.approx(a.sum())
    for dim in (0, 1, -1):
        np.testing.assert_allclose(x.sum(dim).to_dense().numpy(), a.sum(dim), atol=1e-12)
    logits = np.where(a != 0, a, -np.inf)
    with np.errstate(all="ignore"):
        for dim in (0, 1):
            powers = np.exp(logits - np.where(np.isfinite(logits), logits, -1e9).max(dim, keepdims=True))
            want = np.nan_to_num(powers / powers.sum(dim, keepdims=True))
            got = fw.sparse.softmax(x, dim)
            assert got.layout is x.layout
            np.testing.assert_allclose(got.to_dense().numpy(), want, atol=1e-12)
            np.testing.assert_allclose(fw.sparse.log_softmax(x, dim).to_dense().exp().numpy() * (a != 0),
                                       want,
                                       atol=1e-12)


def test_selecting():
    a = dense()
    x = as_layout(a, "coo")
    np.testing.assert_array_equal(x.index_select(0, fw.tensor([3, 0, 3])).to_dense().numpy(), a[[3, 0, 3]])
    np.testing.assert_array_equal(as_layout(a, "csr").index_select(1, fw.tensor([1, 0])).to_dense().numpy(),
                                  a[:, [1, 0]])
    np.testing.assert_array_equal(x[3].to_dense().numpy(), a[3])
    with pytest.raises(LayoutError, match="index_select"):
        x[1:3]
    with pytest.raises(LayoutError, match="places never change"):
        x[0] = 1


def test_joining():
    a, b = dense(), dense(seed=4)
    for layout in LAYOUTS:
        x, y = as_layout(a, layout), as_layout(b, layout)
        for dim in (0, 1):
            made = fw.cat([x, y], dim)
            assert made.layout is x.layout
            np.testing.assert_array_equal(made.to_dense().numpy(), np.concatenate([a, b], dim))
    with pytest.raises(LayoutError, match="cat: sparse and dense"):
        fw.cat([x, fw.tensor(b)])


def test_in_blocks_that_look_or_choose():
    """Anomaly mode looks at sparse gradients; autocast leaves products with sparse matrices alone."""
    table = fw.nn.Embedding(4, 2, sparse=True)
    with fw.autograd.detect_anomaly():
        table(fw.tensor([1, 1])).sum().backward()
    assert table.weight.grad.is_sparse
    x = as_layout(dense().astype(np.float32), "csr")
    with fw.autocast("cpu", dtype=fw.bfloat16):
        assert (x @ fw.ones(4, 2)).dtype is fw.float32 and fw.spmm(x, fw.ones(4, 2)).dtype is fw.float32


def test_in_place():
    a = dense()
    x = as_layout(a, "csr")
    alias = x.detach()
    x *= 2
    x.div_(4)
    np.testing.assert_allclose(x.to_dense().numpy(), a / 2)
    np.testing.assert_allclose(alias.to_dense().numpy(), a / 2)
    x += as_layout(dense(seed=7), "csr")
    np.testing.assert_allclose(x.to_dense().numpy(), a / 2 + dense(seed=7))
    assert float(x.zero_().sum()) == 0
    with pytest.raises(AutogradError, match="leaf"):
        as_layout(a, "coo", True).mul_(2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_pickles_and_files(layout, tmp_path):
    x = as_layout(dense(), layout, True)
    path = tmp_path / "x.fw"
    fw.save({"adjacency": x, "n": 3}, path)
    for y in (copy.deepcopy(x), copy.copy(x), x.clone(), pickle.loads(pickle.dumps(x)), x.detach(),
              fw.load(path)["adjacency"]):
        assert y.layout is x.layout and y.shape == x.shape
        np.testing.assert_array_equal(y.to_dense().detach().numpy(), x.to_dense().detach().numpy())
    assert fw.load(path)["adjacency"].requires_grad and copy.deepcopy(x).requires_grad
    assert x.to(fw.float32).dtype is fw.float32 and x.float().dtype is fw.float32 and x.to(x.dtype) is x
    assert f"layout=framework.sparse_{layout}" in repr(x) and "nnz=" in repr(x)
    assert "requires_grad=True" in repr(x)


def test_a_damaged_file_is_refused():
    x = as_layout(dense(), "csr")
    buffer = io.BytesIO()
    fw.save(x, buffer)
    data = buffer.getvalue().replace(b'"csr"', b'"xyz"').replace(b"sparse_csr", b"sparse_xyz")
    with pytest.raises(fw.errors.CheckpointError):
        fw.load(io.BytesIO(data))


def test_modules_keep_them():
    class Graph(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", as_layout(dense(), "csr"))

    m = Graph()
    state = m.state_dict()
    assert state["adjacency"].layout is fw.sparse_csr
    m.float()
    assert m.adjacency.dtype is fw.float32 and m.adjacency.layout is fw.sparse_csr


def test_unsupported_operations_name_the_dense_way():
    x = as_layout(dense(), "coo")
    for call, name in ((lambda: fw.sort(x), "sort"), (lambda: fw.stack([x, x.to_dense()]), "stack"),
                       (lambda: x.numpy(), "numpy"),
                       (lambda: x.view(-1), "reshape|view"), (lambda: fw.linalg.svd(x), "svd"),
                       (lambda: fw.nn.functional.layer_norm(x, (4,)), "layer_norm"), (lambda: x.tolist(),
                                                                                      "tolist"),
                       (lambda: np.sin(x), "ufunc")):
        with pytest.raises((LayoutError, TypeError), match=name) as caught:
            call()
        assert "to_dense()" in str(caught.value) or caught.type is TypeError
    assert issubclass(LayoutError, NotImplementedError) and issubclass(LayoutError, RuntimeError)


WRONG = [
    ("columns", lambda: fw.sparse_coo_tensor([[0, 1]], [1.0], (2,)), ShapeError, "2 columns of indices"),
    ("outside", lambda: fw.sparse_coo_tensor([[0, 2]], [1.0, 1.0], (2,)), IndexError, "0 to 2, but size"),
    ("floats", lambda: fw.sparse_coo_tensor([[0.0, 1.0]], [1.0, 1.0], (2,)), TypeError, "integers"),
    ("size", lambda: fw.sparse_coo_tensor([[0, 1]], [1.0, 1.0], (2, 2)), ShapeError, "does not fit"),
    ("said coalesced", lambda: fw.sparse_coo_tensor([[1, 0]], [1.0, 1.0], is_coalesced=True), ValueError,
     "order"),
    ("starts", lambda: fw.sparse_csr_tensor([0, 2], [0], [1.0], (1, 1)), ValueError, "grow from 0"),
    ("order", lambda: fw.sparse_csr_tensor([0, 2], [1, 0], [1.0, 1.0], (1, 2)), ValueError, "grow within "
                                                                                            "each row"),
    ("column", lambda: fw.sparse_csr_tensor([0, 1], [2], [1.0], (1, 2)), IndexError, "there are 2 columns"),
    ("rows", lambda: fw.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)), ShapeError, "does not fit 2 "
                                                                                   "compressed"),
    ("blocks", lambda: fw.sparse_bsr_tensor([0, 1], [0], [1.0], (2, 2)), ShapeError, "height, width"),
    ("mm", lambda: fw.sparse.mm(fw.eye(2).to_sparse(), fw.ones(3, 1)), ShapeError, "does not fit"),
    ("dtype", lambda: fw.eye(2).to_sparse() @ fw.ones(2, 1, dtype=fw.float64), TypeError, r"\.to\(dtype\)"),
    ("neither", lambda: fw.sparse.mm(fw.eye(2), fw.eye(2)), LayoutError, "neither"),
    ("blocks do not divide", lambda: fw.eye(3).to_sparse_bsr(2), ShapeError, "do not divide"),
    ("mask", lambda: fw.eye(3).sparse_mask(fw.eye(3)), LayoutError, "mask must be sparse"),
    ("csr of vectors", lambda: fw.ones(3).to_sparse_csr(), LayoutError, "only matrices"),
]


@pytest.mark.parametrize("call, error, words", [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_spdiags():
    made = fw.sparse.spdiags(fw.arange(9.0).reshape(3, 3), fw.tensor([0, -1, 2]), (3, 4)).to_dense()
    assert made.tolist() == [[0, 0, 8, 0], [3, 1, 0, 0], [0, 4, 2, 0]]
    with pytest.raises(ValueError, match="twice"):
        fw.sparse.spdiags(fw.ones(2, 2), fw.tensor([1, 1]), (2, 2))


# -- sparse gradients ------------------------------------------------------------------------------


def test_gradients_of_embeddings_are_sparse():
    table = fw.nn.Embedding(1000, 2, sparse=True, padding_idx=3)
    rows = table(fw.tensor([[1, 7], [3, 7]]))
    rows.sum().backward()
    g = table.weight.grad
    assert g.is_sparse and not g.is_coalesced() and g.shape == (1000, 2) and g._nnz() == 3
    assert g.coalesce().indices().tolist() == [[1, 7]] and g.coalesce().values().tolist() == [[1, 1], [2, 2]]
    table(fw.tensor([9])).sum().backward()
    assert table.weight.grad.coalesce().indices().tolist() == [[1, 7, 9]]


def test_sparse_and_dense_gradients_of_one_table():
    w = fw.randn(5, 2, dtype=fw.float64, requires_grad=True)
    index = fw.tensor([1, 3, 1])

    def loss(sparse):
        return (fw.nn.functional.embedding(index, w, sparse=sparse) ** 3).sum() + (w ** 2).sum()
    want, = fw.autograd.grad(loss(False), w)
    got, = fw.autograd.grad(loss(True), w)
    assert got.layout is fw.strided
    np.testing.assert_allclose(got.numpy(), want.numpy())
    for first, second in ((True, False), (False, True), (True, True)):
        w.grad = None
        for sparse in (first, second):
            (fw.nn.functional.embedding(index, w, sparse=True) ** 3).sum().backward() if sparse else (
                w ** 2).sum().backward()
        dense_part = (not first) + (not second)
        rows, = fw.autograd.grad((fw.nn.functional.embedding(index, w) ** 3).sum(), w)
        np.testing.assert_allclose(w.grad.to_dense().numpy(),
                                   (rows * (2 - dense_part) + 2 * w.detach() * dense_part).numpy())


def test_a_computed_table_gets_a_dense_gradient():
    w = fw.ones(4, 2, requires_grad=True)
    fw.nn.functional.embedding(fw.tensor([1, 1]), w * 2, sparse=True).sum().backward()
    assert w.grad.layout is fw.strided and w.grad.tolist() == [[0, 0], [4, 4], [0, 0], [0, 0]]


def test_second_derivatives_hooks_and_frequency():
    w = fw.randn(4, 2, dtype=fw.float64, requires_grad=True)
    index = fw.tensor([1, 1, 2])
    g, = fw.autograd.grad((fw.nn.functional.embedding(index, w, sparse=True) ** 3).sum(), w,
                          create_graph=True)
    h, = fw.autograd.grad(g.to_dense().square().sum(), w)
    g2, = fw.autograd.grad((fw.nn.functional.embedding(index, w) ** 3).sum(), w, create_graph=True)
    want, = fw.autograd.grad(g2.square().sum(), w)
    np.testing.assert_allclose(h.to_dense().numpy(), want.numpy())
    seen = []
    handle = w.register_hook(lambda g: seen.append(g))
    fw.nn.functional.embedding(index, w, sparse=True, scale_grad_by_freq=True).sum().backward()
    assert seen[0].is_sparse and w.grad.to_dense()[:, 0].tolist() == [0, 1, 1, 0]
    handle.remove()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(mode):
    for sparse in (True, False):
        fw.manual_seed(0)
        bags = fw.nn.EmbeddingBag(20, 3, mode=mode, sparse=sparse)
        bags(fw.tensor([1, 2, 5, 5]), fw.tensor([0, 2])).square().sum().backward()
        if sparse:
            kept = bags.weight.grad
            assert kept.is_sparse
    np.testing.assert_allclose(kept.to_dense().numpy(), bags.weight.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name, options", [("SparseAdam", {}), ("SGD", {}), ("SGD", {"momentum": 0.9}),
                                           ("SGD", {"maximize": True}), ("Adagrad", {"lr_decay": 0.1})])
def test_optimizers_step_like_pytorch(name, options):
    torch = pytest.importorskip("torch")
    torch.sparse.check_sparse_tensor_invariants.disable()
    start, found = np.random.default_rng(0).normal(size=(10, 3)), []
    for M in (fw, torch):
        table = M.nn.Embedding(10, 3, sparse=True, dtype=M.float64)
        with M.no_grad():
            table.weight.copy_(M.tensor(start))
        optimizer = getattr(M.optim, name)(table.parameters(), lr=0.1, **options)
        for step in range(4):
            optimizer.zero_grad()
            (table(M.tensor([[1, 2], [step, 5]])) ** 2).sum().backward()
            optimizer.step()
        found.append(table.weight.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_optimizers_that_do_not_take_them_say_so_and_change_nothing():
    table, plain = fw.nn.Embedding(4, 2, sparse=True), fw.nn.Parameter(fw.ones(2))
    (table(fw.tensor([1])).sum() + plain.sum()).backward()
    before = table.weight.detach().clone()
    for make, error, words in (
            (lambda p: fw.optim.Adam(p), LayoutError, "SparseAdam, SGD and Adagrad"),
            (lambda p: fw.optim.RMSprop(p), LayoutError, "sparse=False"),
            (lambda p: fw.optim.SGD(p, weight_decay=0.1), ValueError, "weight_decay")):
        with pytest.raises(error, match=words):
            make([plain, table.weight]).step()
        assert plain.tolist() == [1, 1] and fw.equal(before, table.weight)


def test_clipping_and_zeroing():
    table = fw.nn.Embedding(4, 2, sparse=True)
    table(fw.tensor([1, 1])).sum().backward()
    assert float(fw.nn.utils.clip_grad_norm_(table.parameters(), 1.0)) == pytest.approx(8 ** 0.5)
    assert float(table.weight.grad.norm()) == pytest.approx(1.0, rel=1e-4)
    fw.nn.utils.clip_grad_value_(table.parameters(), 0.25)
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [0.25, 0.25], [0, 0], [0, 0]]
    fw.optim.SGD(table.parameters()).zero_grad(set_to_none=False)
    assert float(table.weight.grad.sum()) == 0
    table.zero_grad()
    assert table.weight.grad is None


# -- SciPy and PyTorch -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_scipy_shares_memory(layout):
    scipy = pytest.importorskip("scipy.sparse")
    x = as_layout(dense(), layout)
    made = fw.sparse.to_scipy(x)
    assert made.format == layout and np.shares_memory(made.data, x._values().numpy())
    back = fw.sparse.from_scipy(made)
    assert back.layout is x.layout and np.shares_memory(back._values().numpy(), made.data)
    np.testing.assert_array_equal(back.to_dense().numpy(), dense())
    if layout == "csr":
        assert np.shares_memory(back.col_indices().numpy(), made.indices)
        product = made @ np.ones((4, 3))
        np.testing.assert_allclose((back @ fw.ones(4, 3, dtype=fw.float64)).numpy(), product)
    random = scipy.random(300, 200, 0.02, "csr", random_state=0)
    d = np.random.default_rng(0).normal(size=(200, 17))
    np.testing.assert_allclose((fw.sparse.from_scipy(random) @ fw.tensor(d)).numpy(), random @ d, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_like_pytorch():
    torch = pytest.importorskip("torch")
    torch.sparse.check_sparse_tensor_invariants.disable()
    rng = np.random.default_rng(0)
    i = rng.integers(0, 5, (2, 9))
    v, d, e = rng.normal(size=9), rng.normal(size=(5, 3)), rng.normal(size=(5, 5))
    found = []
    for M in (fw, torch):
        values, other = M.tensor(v, requires_grad=True), M.tensor(d, requires_grad=True)
        x = M.sparse_coo_tensor(M.tensor(i), values, (5, 5))
        leaf = x.detach().coalesce().requires_grad_()
        c = x.coalesce()
        y = M.sparse.mm(x, other)
        (y ** 2).sum().backward()
        M.sparse.mm(leaf, other.detach()).sum().backward()
        csr = c.detach().to_sparse_csr()
        soft = M.sparse.softmax(c.detach(), 1)
        found.append([c.indices(), c.values().detach(), y.detach(), values.grad, other.grad,
                      leaf.grad.to_dense(),
                      csr.crow_indices(), csr.col_indices(), csr.values(), soft.to_dense(),
                      M.sparse.sum(c, 0).to_dense().detach(), M.tensor(e).sparse_mask(c.detach()).values(),
                      M.sparse.mm(c.detach(), c.detach()).to_dense(), (c + c).to_dense().detach(),
                      (M.tensor(e) + c).detach(), (c * 2).coalesce().values().detach(),
                      x.t().to_dense().detach(),
                      c.detach().to_sparse_csc().row_indices(),
                      M.sparse.sampled_addmm(csr, M.tensor(d), M.tensor(d).T.contiguous()).values()])
    for k, (a, b) in enumerate(zip(*found)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12, err_msg=str(k))
    ours, theirs = (repr(M.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))) for M in (fw, torch))
    assert ours.replace("framework", "torch") == theirs.replace("torch.Size([2])", "(2,)")


def test_zeros_like_and_equal():
    dense = fw.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0]])
    for x in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2))):
        zero = fw.zeros_like(x)
        assert zero.layout is x.layout and zero.shape == x.shape and zero._nnz() == 0
        assert not zero.to_dense().any() and fw.zeros_like(x, dtype=fw.float64).dtype is fw.float64
        assert fw.equal(x, x.clone()) and not fw.equal(x, x * 2) and not fw.equal(x, zero)
        assert fw.equal(x, dense.to_sparse()) and not fw.equal(x, dense.double().to_sparse())
    stored = fw.sparse_coo_tensor([[0, 0], [0, 1]], [0.0, 5.0], (1, 2))
    assert fw.equal(stored, fw.sparse_coo_tensor([[0], [1]], [5.0], (1, 2)))
    with pytest.raises(LayoutError, match="to_dense"):
        fw.equal(stored, stored.to_dense())


LIKE_DENSE = """x.select(0, 3)
x.select(-1, 1); x[0, 0]; x.narrow_copy(0, 1, 3); x.narrow_copy(1, -2, 2); x.unbind(1)[0]
x.sum(1, keepdim=True); x.sum((0, 1), keepdim=True); x.any(); x.round(decimals=1); x.nan_to_num(); fw.norm(x)
x.clone().sin_(); x.clone().abs_(); x.clone().relu_(); x.signbit(); x.type(fw.float32); fw.add(y, x, alpha=3)
y.clone().add_(x); y.clone().add_(x, alpha=-2); y.clone().sub_(x); y.clone().mul_(x)
fw.nn.functional.linear(z, x)
fw.nn.functional.linear(z, x, y[:, 0])"""


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("code", [c.strip() for c in LIKE_DENSE.replace("\n", ";").split(";")])
def test_like_dense(layout, code):
    a, y, z = dense(), fw.ones(6, 4, dtype=fw.float64) * 2, fw.ones(2, 4, dtype=fw.float64)
    if ".signbit" in code:
        a = -abs(a)  # of a 0 that is not stored it is False
    names = {"fw": fw, "y": y, "z": z}
    wanted, found = (eval(code, {**names, "x": x}) for x in (fw.tensor(a) + 0.0, as_layout(a, layout)))
    found = found.to_dense() if found.layout is not fw.strided else found
    assert found.dtype is wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_batches_stacks_and_sizes():
    x, y = dense(), dense(seed=1)
    both = fw.stack([as_layout(x, "coo"), as_layout(y, "coo")])
    other = fw.randn(2, 4, 3, dtype=fw.float64, requires_grad=True)
    out = fw.bmm(both.requires_grad_(), other)
    wanted = np.stack([x, y]) @ other.detach().numpy()
    np.testing.assert_allclose(out.detach().numpy(), wanted, rtol=1e-12)
    out.sum().backward()
    sums = np.stack([x, y]).sum(1)[:, :, None]
    np.testing.assert_allclose(other.grad.numpy(), sums.repeat(3, 2), rtol=1e-12)
    assert both.grad._nnz() == both._nnz()
    assert both.unsqueeze(1).shape == (2, 1, 6, 4) and both[1, 0].to_dense().tolist() == y[0].tolist()
    small = as_layout(x, "coo")
    assert small.sparse_resize_((9, 4), 2, 0).to_dense()[:6].tolist() == x.tolist()
    with pytest.raises(ShapeError, match="outside"):
        small.sparse_resize_((2, 4), 2, 0)
    assert small.sparse_resize_and_clear_((2, 3), 1, 1).to_dense().tolist() == [[0] * 3] * 2
    assert as_layout(x, "coo").transpose_(0, 1).to_dense().tolist() == x.T.tolist()
    with pytest.raises(LayoutError, match="would become"):
        as_layout(x, "csr").transpose_(0, 1)
    with pytest.raises(LayoutError, match="train its values"):
        fw.nn.Parameter(as_layout(x, "csr"))
    ones = fw.ones_like(as_layout(x, "csr"))
    assert ones.values().tolist() == [1] * int((x != 0).sum()) and ones.layout is fw.sparse_csr
    assert fw.full_like(ones, 3).values()[0] == 3 and fw.empty_like(ones)._nnz() == ones._nnz()
    with pytest.raises(LayoutError, match="ones_like"):
        fw.ones_like(as_layout(x, "coo"))


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_products_that_are_reduced_otherwise(reduce):
    x, y = dense(), fw.randn(4, 3, dtype=fw.float64, requires_grad=True)
    A = as_layout(x, "csr", requires_grad=True)
    found = fw.sparse.mm(A, y, reduce)
    products = np.where(x[:, :, None] != 0, x[:, :, None] * y.detach().numpy(), np.nan)
    function = {"mean": np.nanmean, "amax": np.nanmax, "amin": np.nanmin}[reduce]
    for i, row in enumerate(products):
        wanted = np.zeros(3) if np.isnan(row).all() else function(row, axis=0)
        np.testing.assert_allclose(found[i].detach().numpy(), wanted, rtol=1e-12)
    values = A.values().detach()
    assert fw.autograd.gradcheck(lambda v, y: fw.sparse.mm(
        fw.sparse_csr_tensor(A.crow_indices(), A.col_indices(), v, A.shape), y, reduce),
        (values.requires_grad_(), y))
