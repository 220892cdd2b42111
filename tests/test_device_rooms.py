"""The kernels that stand in rooms (softmax, norms, losses, attention, ...) beside the CPU's results.

Each case runs on a device with kernels, in both orders of threads, over guarded memory: values and gradients.
"""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
import framework.nn.utils
import framework.optim
from framework import nn
from framework.backends import device_code

F = nn.functional
CASES = {}
IN_ANY_ORDER = {"add_rows", "add_along", "grid_sample_grad"}  # kernels that add atomically
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 5e-2, "float16": 5e-3}


def case(*shapes, kernels, dtypes="float32 float64 bfloat16", **more):
    """A function of (floating tensors of these shapes, and others) whose device kernels are ``kernels``."""

    def add(function):
        CASES[function.__name__] = (function, shapes, set(kernels.split()), dtypes.split(), more)
        return function

    return add


def integers(high, *shape):
    return fw.tensor(np.random.default_rng(1).integers(0, high, shape))


@case((5, 7), (3, 40), (2, 6, 5), (2, 300), kernels="softmax softmax_grad")
def softmax(at, *xs):
    return [F.softmax(x, dim=d) for x in xs for d in (-1, 0)]


@case((4, 9), (2, 3, 4), kernels="softmax softmax_grad")
def log_softmax(at, *xs):
    return [F.log_softmax(x, dim=d) for x in xs for d in (1, 0)]


@case((5, 37), (3, 2200), (2, 1, 3), kernels="cumprod cumprod_grad", dtypes="float32 float64")
def running_products(at, x, y, z):
    factors = fw.ones_like(x)
    factors[1, 3] = factors[2, 4] = factors[2, 30] = 0  # one zero, and two
    return [(x * factors).cumprod(d) for d in (0, 1)] + [(1 + y / 100).cumprod(1), z.cumprod(1), z.cumprod(2)]


@case((5, 37), (3, 2200), (2, 1, 3), kernels="logcumsumexp logcumsumexp_grad", dtypes="float32 float64")
def running_log_sums(at, x, y, z):
    nothing = fw.zeros_like(x)
    nothing[0, :4] = -float("inf")
    return [(30 * x + nothing).logcumsumexp(d) for d in (0, 1)] + [(9 * y).logcumsumexp(1), z.logcumsumexp(1)]


@case((3, 4, 5), (6, 2), (2, 3, 4), kernels="triangle")
def triangles(at, x, y, z):
    z = z.mT  # columns one after the other
    return [f(a, k) for a in (x, y, z, x[1:, ::2]) for f in (fw.tril, fw.triu) for k in (-2, 0, 1)] + [
        fw.tril((z.detach() * 9).to(kind), -1).to(z.dtype) for kind in (fw.int64, fw.int8, fw.bool)]


@case((40, 33), (2, 9, 4, 8), (3, 70, 8), (1, 64, 1, 31), (4, 2, 8, 9), kernels="turn")
def copies_of_what_lies_transposed(at, matrix, image, rows, tile, heads):
    found = [x.transpose(0, -1).contiguous() for x in (matrix, tile)] + [rows.mT.clone()] + [
        x.contiguous(memory_format=fw.channels_last) for x in (image, tile, heads)]
    found += [found[3].contiguous(), image.permute(2, 3, 0, 1).contiguous(),
              heads.permute(0, 3, 1, 2).clone()]
    for kind in (fw.int64, fw.uint8, fw.int16, fw.bool, fw.complex64):
        found.append(((rows.detach() * 9).to(kind).mT.clone() != 0).to(rows.dtype))
    for i in (0, 1, 6):
        assert found[i].is_contiguous()
    return found


@case((2, 5, 5), (2, 5, 3), (3, 5), (2, 1, 1), kernels="mirrored singular_middle eigen_middle",
      dtypes="float32 float64")
def gradients_of_factors(at, x, tall, wide, one):
    linalg, found = fw.linalg, []
    for a in (x, tall, wide, one):
        found += [*linalg.qr(a)] + [linalg.qr(a)[i] for i in (0, 1)]
        u, s, vh = linalg.svd(a, full_matrices=False)
        found += [(u * u), s, (vh * vh), u[..., :1] @ vh[..., :1, :], linalg.svdvals(a)]
    for a in (x, one):
        eye = at(fw.eye(a.shape[-1], dtype=a.dtype))
        values, vectors = linalg.eigh(a + a.mT + eye)
        found += [values, vectors * vectors, linalg.eigvalsh(a + a.mT), linalg.cholesky(a @ a.mT + eye)]
    return [*found, linalg.inv(x + 3 * at(fw.eye(5, dtype=x.dtype)))]


@case((3, 1, 1), (2, 2, 2), (5, 5), (4, 6, 6), (40, 40), (2, 70, 70), kernels="cofactors", dtypes="float64")
def determinants(at, a, b, c, d, e, f):
    keep = fw.ones(4, 6, 6, dtype=a.dtype)
    keep[1, 2] = keep[2] = 0  # rank 5, and 0
    d = d * at(keep)
    equal = fw.cat([d[3:, :, :5], d[3:, :, 4:5]], -1)  # columns that are equal
    return [fw.linalg.det(x) for x in (a, b, c, d, equal, e / 6, f / 8)]


@case((3, 1, 1), (2, 2, 2), (4, 5, 5), (40, 40), kernels="matrix_exp", dtypes="float32 float64")
def exponentials(at, a, b, c, d):
    large = c * at(fw.tensor([0.0, 0.1, 3, 9]))[:, None, None].to(c.dtype)
    return [fw.matrix_exp(x) for x in (a, b, c, large, c.mT, d / 8)]


@case((2, 5, 5), (2, 5, 3), (150, 150), (150, 2), (3, 1, 4, 4), kernels="solve_rows",
      dtypes="float32 float64")
def triangular_systems(at, a, b, large, many, c):
    solve, found = fw.linalg.solve_triangular, []
    a = a + 3 * at(fw.eye(5, dtype=a.dtype))
    for upper in (True, False):
        for unit in (True, False):
            found += [solve(x, y, upper=upper, unitriangular=unit) for x, y in (
                (a, b), (a[0], b), (a, b[1]), (a.mT, b), (a[::2, 1:4, 1:4], b[:1, :3]), (c + 2, c))]
        found += [solve(large / 99 + 2 * at(fw.eye(150, dtype=a.dtype)), many, upper=upper),
                  solve(a, b.mT, upper=upper, left=False)]
    return [*found, fw.cholesky_solve(b, a), fw.linalg.lu_solve(*fw.linalg.lu_factor(a), b)]


@case((2, 5, 5), (40, 40), (3, 1, 1), (2, 5, 3), (40, 2), kernels="ldl_factor ldl_solve",
      dtypes="float32 float64")
def factors_of_symmetric_matrices(at, a, large, one, b, many):
    linalg, swapped = fw.linalg, at(fw.tensor([[0.0, 2, 0], [2, 0, 1], [0, 1, 1]])).to(a.dtype)
    a, large, one, b, many = (x.detach() for x in (a, large, one, b, many))
    found = []
    for x, y in ((a, b), (large, many), (one, one), (swapped + 0, b[0, :3]),
                 (large * 0 + swapped[0, 1], many), (a, b[0]), (a[0], b)):
        LD, pivots, info = linalg.ldl_factor_ex(x)
        found += [LD, pivots.to(x.dtype), info.to(x.dtype)]
        if x is not large and x.shape[-1] < 40:
            found.append(linalg.ldl_solve(LD, pivots, y))
    LD, pivots = linalg.ldl_factor(large + large.mT)
    return [*found, linalg.ldl_solve(LD, pivots, many), linalg.ldl_factor_ex(a * 0).info.to(a.dtype)]


@case((9, 4), (20,), kernels="bags_of take_rows add_rows")
def bags(at, table, weights):
    places, starts = at(integers(9, 20)), at(fw.tensor([0, 3, 3, 11, 20]))
    bag = F.embedding_bag
    return [bag(places, table, starts, mode=m) for m in ("sum", "mean", "max")] + [
        bag(places, table, starts[:3], mode="sum", per_sample_weights=weights),
        bag(places, table, starts, include_last_offset=True), bag(places, table, starts, padding_idx=2)]


@case((50, 3), (50, 3), kernels="edges_of bins_of count_places add_along")
def histograms(at, x, w):
    x, w = x.detach(), w.detach().abs()
    edges = at(fw.tensor([-1.0, 0.0, 0.0, 0.5, 2.0])).to(x.dtype)
    cells = fw.histogramdd(x, [4, 3, 2])
    return [*fw.histogram(x, 7), fw.histogram(x, edges).hist, fw.histogram(x * 0, 3).hist,
            *fw.histogram(x, 5, weight=w, density=True), cells.hist, *cells.bin_edges,
            fw.histogramdd(x[:, :1], [edges], weight=w[:, 0]).hist]


@case((4, 5), (3, 40), (5,), kernels="margin_losses margin_grads")
def margins(at, x, y, z):
    t, u = integers(5, 4), integers(45, 3, 40) - 5
    classes = fw.where(u < 40, u, 3)
    return [
        F.multi_margin_loss(x, at(t)), F.multi_margin_loss(x, at(t), 2, 0.5, reduction="none"),
        F.multi_margin_loss(z, at(t[0]), 2), F.multi_margin_loss(y, at(integers(40, 3)), reduction="sum"),
        F.multilabel_margin_loss(y, at(classes)), F.multilabel_margin_loss(y, at(classes), reduction="none"),
        F.multilabel_margin_loss(z, at(fw.tensor([1, 1, -1, 0, 9]))),
    ]


@case((4, 5), (3, 4, 2, 3), (5,), kernels="cross_entropy cross_entropy_grad target_shares")
def cross_entropy(at, x, y, w):
    t, u = integers(5, 4), integers(4, 3, 2, 3)
    t[1], u[0, 0, 1] = -100, 2
    t, u, w = at(t), at(u), w.detach().abs()
    return [
        F.cross_entropy(x, t),
        F.cross_entropy(x, t, w, reduction="sum", label_smoothing=0.2),
        F.cross_entropy(y, u, reduction="none"),
        F.cross_entropy(y, u, label_smoothing=0.1, ignore_index=2),
        F.cross_entropy(x, t, w),
    ]


@case((4, 5), (3, 4, 2, 3), (5,), kernels="pick_class put_class class_shares")
def nll_loss(at, x, y, w):
    t, u = integers(5, 4), integers(4, 3, 2, 3)
    t[1], u[0, 0, 1] = -100, 2
    t, u, w = at(t), at(u), w.detach().abs()
    return [
        F.nll_loss(x, t),
        F.nll_loss(x, t, w, reduction="sum"),
        F.nll_loss(y, u, reduction="none", ignore_index=2),
        F.nll_loss(y, u, w[:4], ignore_index=1),
    ]


@case((7, 4, 5), (6, 5), kernels="ctc_labels ctc ctc_grad", dtypes="float32 float64")
def ctc_loss(at, x, y):
    rows = at(fw.tensor([[1, 2, 2], [3, 1, -9], [4, 4, 4], [2, -1, 9]]))
    lengths, sizes = at(fw.tensor([7, 6, 3, 4])), at(fw.tensor([3, 2, 3, 1]))  # the third is too long
    x, y = x.log_softmax(-1), y.log_softmax(-1)
    given = rows, [7, 6, 7, 4], [3, 2, 3, 0]
    return [
        F.ctc_loss(x, rows, lengths, sizes, reduction="none", zero_infinity=True),
        *[F.ctc_loss(x, *given, reduction=r) for r in ("mean", "sum", "none")],
        F.ctc_loss(x, rows - 1, [0, 6, 7, 4], (1, 2, 3, 1), 4, "sum", True),
        F.ctc_loss(x, at(fw.tensor([1, 2, 1, 3, 4, 4])), [7, 6, 7, 4], [3, 0, 2, 1]),
        F.ctc_loss(y, rows[1, :2], at(fw.tensor([6])), [2]),
    ]


@case((3, 10), (10,), (10,), (2, 3, 4, 5), (4, 5), (4, 5), kernels="norm_rows norm_grad fold")
def layer_norm(at, x, w, b, y, v, c):
    return [F.layer_norm(x, (10,), w, b), F.layer_norm(y, (4, 5), v, c), F.layer_norm(x, (10,))]


@case((3, 10), (10,), kernels="norm_rows norm_grad fold")
def rms_norm(at, x, w):
    return [F.rms_norm(x, (10,), w), F.rms_norm(x, (10,))]


@case((4, 6, 3, 2), (6,), (6,), (7, 6), kernels="norm_rows norm_grad fold")
def channel_norms(at, x, w, b, y):
    return [
        F.batch_norm(x, None, None, w, b, training=True),
        F.batch_norm(y, None, None, training=True),
        F.group_norm(x, 3, w, b),
        F.instance_norm(x, weight=w, bias=b),
    ]


@case((4, 6, 3), (6,), (6,), (6,), kernels="norm_fixed", dtypes="float32 float64 bfloat16 float16")
def norm_by_given_averages(at, x, w, b, m):
    with fw.no_grad():
        return [F.batch_norm(x, m, w.abs() + 0.5, w, b), F.batch_norm(x, m, w.abs() + 0.5)]


@case((4, 6, 3), (6,), (6,), (6,), (5, 6), dtypes="float32 float64",
      kernels="norm_fixed fold elementwise_strided")
def norm_by_given_averages_in_the_graph(at, x, w, b, m, y):
    m, v = m.detach(), m.detach().abs() + 0.5
    return [F.batch_norm(x, m, v, w, b), F.batch_norm(x, m, v), F.batch_norm(y, m, v, w),
            F.batch_norm(x[:, :1], m[:1], v[:1], w[:1], b[:1])]


@case((3, 5, 5), (4, 7), (7, 4), (9, 150), (140, 132), kernels="lu_columns lu_rows", dtypes="float32 float64")
def factors_of_matrices(at, x, y, z, wide, large):
    large, singular = large.detach(), x.detach() * x.new_tensor([1.0, 1, 0, 1, 1]).detach()
    packed, pivots, order = fw.ops.linalg.lu.factor_op.run(large, pivot=True)
    lower = packed.tril(-1) + fw.eye(140, 132, dtype=x.dtype, device=x.device)
    exchanged = lower @ packed.triu()[:132]
    found = [exchanged, *[part.to(x.dtype) for part in (pivots, order)], large[order]]
    for a in (x, y, z, wide, singular):
        packed, pivots, order = fw.ops.linalg.lu.factor_op.run(a, pivot=True)
        found += [packed, pivots.to(x.dtype), order.to(x.dtype)]
    heavy = x + 4 * fw.eye(5, dtype=x.dtype, device=x.device)
    return [*found, fw.ops.linalg.lu.factor_op.run(heavy, pivot=False)[0]]


@case((2, 3, 7, 6), (4, 30), (3, 8, 2), (2, 12, 6), kernels="fold_image fold_windows")
def windows_laid_back(at, x, y, z, columns):
    return [F.unfold(x, (3, 2), (2, 1), 1, 2), F.unfold(x[0], 3), F.fold(columns, (4, 4), (2, 3), 1, 0, 1),
            y.unfold(1, 8, 3), y.unfold(0, 2, 1), z.unfold(1, 3, 2), z.unfold(1, 2, 5), y.unfold(1, 30, 1)]


@case((6, 4), kernels="take_rows add_rows", dtypes="float32 float64")
def embedding_by_frequency(at, w):
    i = at(integers(6, 3, 5))
    return [F.embedding(i, w, scale_grad_by_freq=True), F.embedding(i, w, 2, scale_grad_by_freq=True)]


@case((4, 5), (3, 5), (3,), (2, 3, 5), kernels="elementwise_strided fold", dtypes="float32 float64")
def linear(at, x, w, b, y):
    return [F.linear(x, w, b), F.linear(y, w, b), F.linear(y, w), F.linear(x[:, :5], w, b).relu()]


@case((6, 4), kernels="take_rows add_rows")
def embedding(at, w):
    i = at(integers(6, 3, 5))
    return [F.embedding(i, w), F.embedding(i[0], w, padding_idx=2)]


@case((6, 4), (2, 3, 4, 5), kernels="take_at put_at")
def places(at, x, y):
    i, j = at(integers(6, 3, 5)), at(integers(3, 7))
    i[0, 0] = -1
    k = at(fw.tensor([[1, 0, -2], [0, 1, 1]]))
    own = at(fw.tensor([4, 0, -1]))
    z, v = x.index_put((own,), x[:3] * 2), y.index_put((slice(None), own % 3, own % 4), y.sum())
    z[own] = z[:3] * 2
    return [x[i], x[:, j], y[:, j, 1], y[:, k, k], y[..., k], y[k, :, k], z, v, x.take(i),
            x.index_select(1, j % 4), (x > 0)[i], (x * 10).long()[i], x.double()[:, j]]


@case((4, 5, 3), (2, 6, 3), (7,), kernels="gather_along add_along",
      dtypes="float32 float64 bfloat16 float16")
def gathered(at, x, y, z):
    i, j, k = at(integers(4, 6, 2, 3)), at(integers(3, 4, 5, 9)), at(integers(7, 20))
    return [x.gather(0, i), x.gather(2, j), z.gather(0, k), (x * 10).long().gather(2, j),
            (x > 0).gather(0, i), x.take_along_dim(j - 3, 2),
            x.scatter_add(0, i[:3], y[:, :3].permute(1, 0, 2)),
            (x * 10).int().scatter_add(2, j, at(integers(9, 4, 5, 9)).int()),
            (x * 10).long().scatter_add(2, j, at(integers(9, 4, 5, 9)))]


@case((4, 5, 3), (2, 5, 3), (7,), kernels="scatter_along extreme_along",
      dtypes="float32 float64 bfloat16")
def scattered(at, x, y, z):
    places = at(fw.tensor(np.random.default_rng(3).random((4, 5, 3)).argsort(0)[:2]))
    i, whole = at(integers(4, 2, 5, 3)), (x * 10).long()
    found = [x.scatter(0, places, y), x.scatter(0, i, 2.5), (x > 0).scatter(0, places, y > 0),
             whole.scatter(0, i, 7), z.scatter(0, at(fw.tensor([6, 2])), y[0, 0, :2]),
             x.scatter(2, at(fw.tensor([[[2, 0]]])), y[:1, :1, :2])]
    for way in ("amax", "amin"):
        found += [x.scatter_reduce(0, i, y, way), x.scatter_reduce(0, i, y, way, include_self=False),
                  whole.scatter_reduce(0, i, whole[:2] * 2, way),
                  x.index_reduce(2, at(fw.tensor([1, 1])), y[:, :, :2].repeat(2, 1, 1), way),
                  fw.where(x > 1, float("nan"), x).detach().scatter_reduce(0, i, y.detach(), way)]
    return found


@case((30, 40), (12, 5), kernels="gamma_slope dirichlet_slope")
def slopes_of_samples(at, x, y):
    """From small parameters to those that are as good as normal, near and far from where samples lie."""
    draws = fw.ops.random.draws
    size = (2.5 * x.detach()).exp()
    size, parts = fw.where(x > 2, size * 1e4, size).detach(), (2 * y.detach()).exp()
    shares = (y.detach() * 1.5).exp()
    return [draws.slope_of_gamma.run(size, size * (x.detach() * 0.3).exp()),
            draws.slope_of_gamma.run(size, size + size.sqrt() * x.detach().clamp(-0.9, 3)),
            draws.slope_of_gamma.run(size[0], fw.ones(40, dtype=x.dtype, device=x.device)),
            draws._dirichlet_slope.run(shares / shares.sum(-1, keepdim=True), parts,
                                       parts.sum(-1, keepdim=True))]


@case((30,), kernels="add_along", dtypes="float32 float64")
def counted_by_weight(at, w):
    return [at(integers(9, 30)).int().bincount(w.detach()), at(integers(9, 30)).bincount(w.detach(), 12)]


@case((40, 7), (30,), kernels="count_bins count_places")
def counted(at, x, y):
    i, x = at(integers(9, 30)), x.detach()
    return [x.histc(10), x.histc(5, -1, 1), (x[0, 0] * 0 + 2).histc(3), x[:0].histc(4, 0, 1), i.bincount(),
            i.bincount(minlength=20), (y / 0).clamp(-1, 1).detach().histc(2),
            x.new_full((5,), float("nan")).histc(3, 0, 1)]


@case((6, 4), (5, 3), kernels="mark_rows shrink_rows take_rows")
def rows_of_limited_norm(at, x, y):
    x, y, i = x.detach(), y.detach(), at(fw.tensor([1, 0, 1, 4]))
    return [F.embedding(i, x, max_norm=1.0), F.embedding(i, y, max_norm=0.7, norm_type=1.0),
            F.embedding(i[:2], y * 3, max_norm=1.5, norm_type=float("inf")), x, y]


@case((6, 4), kernels="take_rows add_rows_in_order")
def embedding_in_order(at, w):
    try:
        fw.use_deterministic_algorithms(at.device == "cuda")
        out = F.embedding(at(integers(6, 30)), w)
        return [fw.autograd.grad(out.sum() + (out * out).sum(), w, create_graph=False)[0]]
    finally:
        fw.use_deterministic_algorithms(False)


@case((3, 50), (100,), kernels="dropout")
def dropout(at, x, y):
    fw.manual_seed(3)
    keys = [
        fw.ops.random.dropout.dropout_op.run(a, p=p, key=k)
        for a in (x, y.reshape(10, 10).t())
        for p, k in ((0.5, 7), (0.1, 1 << 40), (0.0001, 5), (0.999, 2))
    ]
    return keys


def heads(*shapes):
    return case(*shapes, kernels="attention attention_dq attention_dkv", dtypes="float32 float64")


@heads((2, 2, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3), (40, 8), (35, 8), (35, 9))
def attention(at, q, k, v, x, y, z):
    mask = at(fw.tensor(np.random.default_rng(2).random((2, 1, 5, 7)) < 0.6))
    mask[0, 0, 2] = False
    added = fw.where(mask, 0.3, float("-inf"))
    dot = F.scaled_dot_product_attention
    return [
        dot(q, k, v),
        dot(q, k, v, is_causal=True),
        dot(q, k, v, mask),
        dot(q, k, v, added),
        dot(x, y, z),
        dot(q.transpose(1, 2), q.transpose(1, 2), q.transpose(1, 2), scale=0.3),
    ]


@heads((3, 2, 6, 4), (1, 2, 9, 4), (3, 1, 9, 5))
def attention_over_shared_heads(at, q, k, v):
    return [F.scaled_dot_product_attention(q, k, v)]


@heads((2, 2, 5, 4), (2, 2, 40, 4), (2, 2, 5, 40), (5, 40), (2, 1, 5, 40))
def attention_with_a_table_that_learns(at, q, k, table, shared, own):
    closed = fw.where(table > 1, float("-inf"), table)
    return [F.scaled_dot_product_attention(q, k, k, m) for m in (table, shared, own, closed)]


@heads((2, 5, 4), (2, 40, 4))
def attention_with_dropout(at, q, k):
    op = fw.ops.sequence.attention.attention
    return [op.run(q, k, k, None, causal=False, scale=0.5, p=0.25, key=11)[0]]


@case((3, 4, 5), (4, 1), (5,), kernels="fold elementwise_strided elementwise_flat")
def sums(at, x, y, z):
    return [
        x.sum(),
        x.mean((0, 2)),
        x.sum(1, keepdim=True),
        (x * y + z).exp(),
        x.amax(2),
        x.amin((0, 1)),
        F.mse_loss(x, x * 2),
        (x - x.mean(0)) / (x.var(0) + 1).sqrt(),
        x.clamp(-0.5, 0.5) * z,
    ]


@case(
    (2, 4, 7, 6),
    (6, 2, 3, 2),
    (6,),
    (1, 3, 9),
    (5, 3, 2),
    (2, 2, 3, 4, 3),
    (2, 2, 2, 2, 2),
    (2, 3, 4, 5),
    kernels="conv conv_input_grad conv_weight_grad",
)
def convolutions(at, x, w, b, y, v, z, u, t):
    return [
        F.conv2d(x, w, b, stride=(2, 1), padding=1, groups=2),
        F.conv1d(y, v, dilation=2, padding=3),
        F.conv3d(z, u, stride=2, padding=1),
        F.conv_transpose2d(x, w.transpose(0, 1)[:, :, :2].repeat(2, 1, 1, 1)),
        F.conv2d(x, w, padding=(1, 0), dilation=(2, 3), groups=2),
    ]


@case((20, 1, 16, 16), (2, 1, 3, 3), kernels="conv conv_input_grad conv_weight_grad fold")
def a_convolution_of_many_images(at, x, w):
    return [F.conv2d(x, w, padding=1)]


@case(
    (2, 3, 7, 6),
    (2, 3, 9),
    (1, 2, 4, 5, 3),
    kernels="max_pool max_position max_spread sum_pool sum_pool_grad",
)
def pools(at, x, y, z):
    a, i = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    return [
        a,
        i.to(x.dtype),
        F.max_pool1d(y, 3, 1),
        F.max_pool3d(z, 2),
        F.max_pool2d(x, 2, dilation=2),
        F.avg_pool2d(x, 2),
        F.avg_pool3d(z, (2, 2, 1)),
        F.adaptive_avg_pool2d(x, 1),
        F.avg_pool1d(y, 3, 3),
    ]


@case((2, 3, 7, 6), (2, 3, 9), (1, 2, 4, 5, 3), kernels="max_index sum_pool sum_pool_grad")
def uneven_pools(at, x, y, z):
    return [
        *F.max_pool2d(x, (3, 2), 2, 1, (1, 2), True, return_indices=True)[:2],
        F.max_pool3d(z, 2, 1, 1, return_indices=True)[1], F.max_pool1d(y, 3, 1, return_indices=True)[1],
        F.max_pool2d(x.repeat(1, 1, 3, 3), 17, return_indices=True)[1],
        *F.max_pool2d(x - float("inf"), 3, 2, 1, 2, return_indices=True),
        F.avg_pool2d(x, 3, 2, 1, True, count_include_pad=False), F.avg_pool2d(x, 3, 2, 1, True),
        F.avg_pool3d(z, 2, 1, 1, count_include_pad=False), F.avg_pool1d(y, 4, 3, 2, True),
        F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    ]


@case((2, 3, 7, 6), (2, 3, 9), (1, 2, 4, 5, 3), (3, 4, 4), dtypes="float32 float64",
      kernels="adaptive_place fractional_place add_along")
def pools_of_a_size(at, x, y, z, w):
    u, v, t = (at(fw.tensor(np.random.default_rng(3).random(s))).to(x.dtype)
               for s in ((2, 3, 2), (1, 2, 3), (1, 3, 2)))
    w = w * w.new_tensor([1.0, float("nan"), 1.0, 1.0]).detach()
    return [
        *F.adaptive_max_pool2d(x, (3, 4), True), *F.adaptive_max_pool3d(z, (2, 3, 3), True),
        F.adaptive_max_pool1d(y, 4), F.adaptive_max_pool2d(w.detach(), 3),
        *F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=u),
        *F.fractional_max_pool2d(x, (2, 1), output_ratio=0.9, return_indices=True, _random_samples=u),
        *F.fractional_max_pool3d(z, 2, (2, 3, 1), return_indices=True, _random_samples=v),
        F.fractional_max_pool2d(w.detach(), 2, 3, _random_samples=t),
    ]


@case((2, 3, 5, 6), (1, 2, 7), (1, 2, 3, 4, 3), kernels="resample", dtypes="float32 float64 bfloat16")
def interpolations(at, x, y, z):
    return [
        *[F.interpolate(x, scale_factor=s, mode=m) for s in (2, 0.5) for m in ("nearest", "area", "bicubic")],
        F.interpolate(x, (7, 3), mode="bilinear", align_corners=True, antialias=False),
        F.interpolate(y, 11, mode="linear"),
        F.interpolate(z, (2, 5, 3), mode="trilinear"),
        F.adaptive_avg_pool2d(x, (3, 4)),
        F.pad(x, (2, 1, 0, 3), mode="reflect"),
        F.pad(y, (2, 1), mode="circular"),
    ]


def grids(function):
    return case((2, 3, 5, 6), (2, 4, 3, 2), (2, 2, 3, 4, 3), (2, 2, 2, 3, 3), dtypes="float32 float64",
                kernels="grid_sample grid_sample_grad")(function)


def _sampled(x, places, y, depths, modes):
    found = []
    for padding in ("zeros", "border", "reflection"):
        for align in (False, True):
            found += [F.grid_sample(x, places, m, padding, align) for m in modes]
            found.append(F.grid_sample(y, depths, modes[0], padding, align))
            found.append(F.grid_sample(x[:, :, :1], places * 3, modes[0], padding, align))
    return found


@grids
def grid_sample(at, x, places, y, depths):
    return _sampled(x, places, y, depths, ["bilinear", "bicubic"])


@grids
def grid_sample_of_the_nearest(at, x, places, y, depths):
    return _sampled(x, places, y, depths, ["nearest"])


@case(
    (9, 3), (4, 5), (4, 5), (20, 3), (20, 5), (20,), (20,), kernels="lstm lstm_grad", dtypes="float32 float64"
)
def lstm(at, x, h, c, w, v, b, d):
    op, found = fw.ops.sequence.rnn.lstm_op, []
    for reverse in (False, True):
        found += op.run(x, h, c, w, v, b, d, sizes=(4, 3, 2), reverse=reverse)[:3]
        found += op.run(x, h[:3], c[:3], w, v, None, None, sizes=(3, 3, 3), reverse=reverse)[:3]
    return found


@case((9, 3), (4, 5), (15, 3), (15, 5), (15,), (15,), kernels="gru gru_grad", dtypes="float32 float64")
def gru(at, x, h, w, v, b, d):
    op, found = fw.ops.sequence.rnn.gru_op, []
    for reverse in (False, True):
        found += op.run(x, h, w, v, b, d, sizes=(4, 3, 2), reverse=reverse)[:2]
        found += op.run(x, h[:3], w, v, None, None, sizes=(3, 3, 3), reverse=reverse)[:2]
    return found


@case((9, 3), (4, 5), (5, 3), (5, 5), (5,), (5,), dtypes="float32 float64",
      kernels="rnn_tanh rnn_tanh_grad rnn_relu rnn_relu_grad")
def rnn(at, x, h, w, v, b, d):
    op, found = fw.ops.sequence.rnn.rnn_op, []
    for relu in (False, True):
        for reverse in (False, True):
            found += op.run(x, h, w, v, b, d, sizes=(4, 3, 2), reverse=reverse, relu=relu)
            found += op.run(x, h[:3], w, v, None, None, sizes=(3, 3, 3), reverse=reverse, relu=relu)
    return found


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_norms_read_and_write_16_bits(dtype, raw, cupy):  # noqa: F811
    """One kernel forward and no copy of the elements in float32; weights of 16 or of 32 bits; second
    derivatives in float32, as on the CPU."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    rng, narrow = np.random.default_rng(0), getattr(fw, dtype)
    calls = {
        "layer": lambda x, w, b: F.layer_norm(x, (6,), w, b), "rms": lambda x, w, b: F.rms_norm(x, (6,), w),
        "group": lambda x, w, b: F.group_norm(x, 2, w, b), "instance": lambda x, w, b: F.instance_norm(
            x, weight=w, bias=b), "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True)}
    start, seed, factors = (rng.standard_normal(s) for s in ((4, 6, 6), (4, 6, 6), (2, 6)))
    for name, call in calls.items():
        for weights in (narrow, fw.float32):
            found = []
            for device in ("cpu", "cuda"):
                x = fw.tensor(start, dtype=narrow, device=device, requires_grad=True)
                w, b = (fw.tensor(a, dtype=weights, device=device, requires_grad=True) for a in factors)
                g = fw.tensor(seed, dtype=narrow, device=device)
                inputs = [x, w] if name == "rms" else [x, w, b]
                counts.clear()
                y = call(x, w, b)
                assert device == "cpu" or dict(counts.launches) == {"norm_rows": 1}, (name, counts.launches)
                counts.clear()
                grads = fw.autograd.grad(y, inputs, g, retain_graph=True)
                ours = {"norm_grad", "fold", *(["copy"] if name == "group" else [])}  # of a view's gradient
                assert device == "cpu" or set(counts.launches) <= ours, (name, counts.launches)
                live = fw.autograd.grad(y, inputs, g, create_graph=True)
                again = fw.autograd.grad(live, inputs[:2], grads)
                found.append([(a.dtype, a.detach().cpu().double().numpy()) for a in (y, *grads, *again)])
            for (want_dtype, want), (got_dtype, got) in zip(*found):
                assert want_dtype is got_dtype
                close = 1e-2 if dtype == "bfloat16" else 2e-3
                np.testing.assert_allclose(got, want, close, close * max(1, abs(want).max()), err_msg=name)


class At:
    """A tensor on the device of a run."""

    def __init__(self, device):
        self.device = device

    def __call__(self, t):
        return t.to(self.device)


def found(name, device, dtype):
    """The results of a case and the gradients of its inputs, in float64."""
    function, shapes, *_ = CASES[name]
    rng = np.random.default_rng(0)
    xs = [fw.tensor(rng.standard_normal(s)).to(device, getattr(fw, dtype)).requires_grad_() for s in shapes]
    outs = function(At(device), *xs)
    grown = [y for y in outs if y.requires_grad]
    seeds = [fw.tensor(rng.standard_normal(y.shape)).to(device, y.dtype) for y in grown]
    grads = fw.autograd.grad(grown, xs, seeds, allow_unused=True) if grown else []
    assert all(str(y.device).startswith(device) for y in (*outs, *[g for g in grads if g is not None]))
    return [
        (str(y.dtype), y.detach().cpu().double().numpy())
        for y in (*outs, *[g for g in grads if g is not None])
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_rooms_on_a_device(dtype, raw, cupy):  # noqa: F811
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    from cupy import counts

    fw.empty(1, dtype=getattr(fw, dtype), device="cuda")
    char = {"float32": "f", "float64": "d", "bfloat16": "E"}[dtype]
    raw.prepare(device_code.prelude(), [s.text(char) for s in device_code.SOURCES if char in s.dtypes])
    raw.settings.update(guarded=True)
    for name, (_, _, kernels, dtypes, _) in CASES.items():
        if dtype not in dtypes:
            continue
        want = found(name, "cpu", dtype)
        before = None
        for backward in (False, True):
            raw.settings.update(backward=backward)
            counts.clear()
            got = found(name, "cuda", dtype)
            assert kernels <= set(counts.launches), f"{name}: {kernels - set(counts.launches)} did not run"
            assert len(got) == len(want)
            for i, ((a_dtype, a), (b_dtype, b)) in enumerate(zip(got, want)):
                assert a_dtype == b_dtype, f"{name}, result {i}"
                scale = max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0))
                np.testing.assert_allclose(
                    a,
                    b,
                    TOLERANCE[dtype],
                    TOLERANCE[dtype] * scale,
                    err_msg=f"{name}, result {i}, {dtype}, backward={backward}",
                )
            if before is not None and not kernels & IN_ANY_ORDER:
                assert all(a.tobytes() == b.tobytes() for (_, a), (_, b) in zip(got, before)), (
                    f"{name}: order"
                )
            before = got


def test_blocks_of_most_threads_say_so(raw, cupy):  # noqa: F811
    """The stand-in refuses blocks for which registers may be too few; long rows have the largest ones."""
    rng = np.random.default_rng(0)
    for kind in ("float32", "bfloat16"):
        x = fw.tensor(rng.standard_normal((2, 5000)), device="cuda").to(getattr(fw, kind)).requires_grad_()
        classes = fw.tensor([1, 2], device="cuda")
        for call in (lambda t: F.softmax(t, 1), lambda t: F.layer_norm(t, (5000,)), lambda t: t.cumprod(1),
                     lambda t: F.rms_norm(t, (5000,)), lambda t: F.cross_entropy(t, classes),
                     lambda t: t.logcumsumexp(1), lambda t: t.sum(1), lambda t: t.sort(1).values,
                     lambda t: F.group_norm(t.reshape(1, 2, 5000), 1), lambda t: F.normalize(t, dim=1)):
            call(x).sum().backward()
        for replaced in (True, False):
            assert fw.multinomial(x.detach().abs(), 3, replaced).shape == (2, 3)
        fw._sample_dirichlet(x.detach().abs() + 1)
    with pytest.raises(ValueError, match="softmax: 2048 threads .* say __launch_bounds__.2048."):
        source = next(s for s in device_code.SOURCES if s.path.endswith("reduce/kernels.cu"))
        source.kernel("softmax", "f")((1,), (2048,), ())


def test_indices_out_of_range_are_told_at_the_next_wait(raw, cupy):  # noqa: F811
    w, x = fw.ones(5, 2, device="cuda"), fw.ones(2, 4, device="cuda")
    out = F.embedding(fw.tensor([1, 7], device="cuda"), w)
    with pytest.raises(
        IndexError, match=r"embedding: input is 7, but the table has 5 rows \(0 to 4\).*cuda:0"
    ):
        out.tolist()
    assert out.tolist() == [[1.0, 1.0], [0.0, 0.0]]  # told once
    F.cross_entropy(x, fw.tensor([0, 4], device="cuda"))
    with pytest.raises(
        IndexError, match=r"cross_entropy: a target is class 4, but there are 4 classes \(0 to 3\)"
    ):
        fw.cuda.synchronize()


def test_a_0_on_a_diagonal_is_told_at_the_next_wait(raw, cupy):  # noqa: F811
    from cupy import counts

    counts.clear()
    A, B = fw.tensor([[1.0, 2.0], [0.0, 0.0]], device="cuda"), fw.ones(2, 1, device="cuda")
    fw.linalg.solve_triangular(A, B, upper=True)
    assert not counts.waits
    with pytest.raises(fw.errors.LinAlgError, match="there is a 0 on the diagonal.*found on cuda"):
        fw.cuda.synchronize()


def test_positions_outside_are_told_at_the_next_wait(raw, cupy):  # noqa: F811
    from cupy import counts

    x, y = fw.arange(12.0, device="cuda").reshape(3, 4), fw.ones(2, 3, 4, device="cuda")
    counts.clear()
    bad, good = fw.tensor([0, 3], device="cuda"), fw.tensor([1, 0], device="cuda")

    def put(target, key):
        target[key] = 7.0

    for call, text in (
        (lambda: x[bad], "index 3 is out of range for dimension 0 of size 3"),
        (lambda: x[:, -bad - 2], "index -5 is out of range for dimension 1 of size 4"),
        (lambda: y[:, good, bad + 2], "index 5 is out of range for dimension 2 of size 4, in a key of"),
        (lambda: put(x, bad), "index 3 is out of range for dimension 0 of size 3"),
        (lambda: x.index_select(0, bad), "index_select: index 3 is out of range"),
        (lambda: x.gather(0, bad[:, None]), "gather: index 3 is out of range"),
    ):
        call()
        assert not counts.waits  # nobody has waited to look
        with pytest.raises(IndexError, match=text.replace("[", r"\[") + ".*found on cuda:0"):
            fw.cuda.synchronize()
        counts.clear()
    fw.cuda.synchronize()  # told once


OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "eps_inside": True}),
    ("AdamW", {"maximize": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("RMSprop", {"eps_inside": True}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.9, 0.6)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("Rprop", {"maximize": True, "step_sizes": (0.01, 0.06)}),
    ("ASGD", {"t0": 1, "lambd": 0.1, "weight_decay": 0.1}),
    ("Lion", {"weight_decay": 0.1}),
    ("Adafactor", {"weight_decay": 0.1}),
    ("Adafactor", {"eps": (1e-4, 1e-2), "maximize": True, "d": 2.0}),
]


@pytest.mark.parametrize("small", ["all", "some", "none"])
@pytest.mark.parametrize("backward, dtype", [(False, "float32"), (True, "bfloat16"), (True, "float64")])
def test_muon_iterates_small_matrices_in_one_launch(
    backward, dtype, small, raw, cupy, monkeypatch,  # noqa: F811
):
    """And multiplies large ones of equal shapes together.

    Products are of bfloat16: the last bits of sums may differ, and be carried on.
    """
    pytest.importorskip("ml_dtypes")
    fw.empty(1, dtype=fw.bfloat16)
    from cupy import counts

    from framework.optim import cuda_muon

    monkeypatch.setattr(cuda_muon, "SMALL", {"all": cuda_muon.SMALL, "some": 1000, "none": 0}[small])
    raw.settings.update(backward=backward, guarded=True)
    shapes = [(35, 70), (70, 35), (3, 2), (2, 3), (3, 2), (1, 5), (4, 4), (35, 70), (0, 3)]
    large = {"all": 0, "some": 2, "none": 6}[small]  # shapes with elements
    two = {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 2}
    for options in ({}, two, {"ns_steps": 0}):
        rng, ends = np.random.default_rng(0), []
        starts, steps = ([rng.standard_normal(s) for s in shapes] for _ in range(2))
        for device in ("cpu", "cuda"):
            params = [fw.tensor(s).to(device, getattr(fw, dtype)).requires_grad_() for s in starts]
            optimizer = fw.optim.Muon(params, lr=0.05, **options)
            for k in range(3):
                for p, g in zip(params, steps):
                    p.grad = fw.tensor(g * (k - 0.5)).to(device, p.dtype)
                counts.clear()
                optimizer.step()
                launches, rounds = dict(counts.launches), options.get("ns_steps", 5)
                assert not counts.waits
            ends.append([p.detach().cpu().double().numpy() for p in params])
        products = launches.pop("matmul", 0)
        copies, ours = launches.pop("copy_all", 0), launches.pop("muon_iterate", 0)
        assert (products, copies) == (3 * rounds * large, rounds * bool(large)), launches
        assert ours == (small != "none" and rounds > 0) and sum(launches.values()) == 3, launches
        for a, b in zip(*ends):
            np.testing.assert_allclose(b, a, 5e-2, 5e-3)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_steps_of_optimizers(dtype, backward, raw, cupy):  # noqa: F811
    """Three steps of parameters of several sizes, one of more elements than a block takes."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    from cupy import counts

    raw.settings.update(backward=backward, guarded=True)
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal(s) for s in ((5,), (70, 70), (), (3, 2), (3, 2, 4))]
    steps = [[rng.standard_normal(s.shape) for s in starts] for _ in range(3)]
    for name, options in OPTIMIZERS:
        ends = []
        for device in ("cpu", "cuda"):
            params = [fw.tensor(s).to(device, getattr(fw, dtype)).requires_grad_() for s in starts]
            optimizer = getattr(fw.optim, name)(params, lr=0.05, **options)
            for grads in steps:
                counts.clear()
                for p, g in zip(params, grads):
                    p.grad = fw.tensor(g).to(device, p.dtype)
                optimizer.step()
            ends.append([p.detach().cpu().double().numpy() for p in params])
        assert any(k.endswith("_step") for k in counts.launches), name
        for a, b in zip(*ends):
            np.testing.assert_allclose(b, a, TOLERANCE[dtype], TOLERANCE[dtype], err_msg=f"{name} {options}")
    # the functions that look at positions and classes; what is done with wrong ones the stand-in refuses by
    # itself
    fw.ops.index.index.positions(fw.tensor([1, 5], device="cuda"), 5, "index_select", 0)
    with pytest.raises(IndexError, match="index_select: index 5 is out of range for dimension 0 of size 5"):
        fw.cuda.synchronize()
    fw.ops.losses.classes._check_classes(fw.tensor([-100, 9], device="cuda")._array, 4, -100, "nll_loss")
    with pytest.raises(IndexError, match="nll_loss: a target is class 9"):
        fw.cuda.synchronize()


def test_who_waits_is_named(raw, cupy):  # noqa: F811
    x = fw.ones(3, device="cuda")
    assert fw.cuda.get_sync_debug_mode() == 0
    try:
        fw.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="tolist waits for the device"):
            assert x.tolist() == [1.0, 1.0, 1.0]
        fw.cuda.set_sync_debug_mode(2)
        y = (x * 2).sum()  # nobody waits
        for wait, name in (
            (y.item, "item"),
            (lambda: bool(y), "bool"),
            (y.cpu, "a copy to the host"),
            (lambda: float(y), "float"),
            (fw.cuda.synchronize, "synchronize"),
        ):
            with pytest.raises(RuntimeError, match=f"{name} waits for the device"):
                wait()
    finally:
        fw.cuda.set_sync_debug_mode("default")
    assert y.item() == 6.0
    with pytest.raises(ValueError, match="wanted 'default', 'warn' or 'error'"):
        fw.cuda.set_sync_debug_mode("loud")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_clipping_by_the_norm_is_two_launches(dtype, raw, cupy):  # noqa: F811
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    from cupy import counts

    rng, ends = np.random.default_rng(0), []
    starts = [rng.standard_normal(s) for s in ((5,), (70, 70), (), (3, 2))]
    for device in ("cpu", "cuda"):
        params = [fw.zeros(s.shape).to(device, getattr(fw, dtype)).requires_grad_() for s in starts]
        for p, g in zip(params, starts):
            p.grad = fw.tensor(g).to(device, p.dtype)
        fw.nn.utils.get_total_norm([p.grad for p in params])
        counts.clear()
        total = fw.nn.utils.clip_grad_norm_(params, 2.0)
        ends.append([a.double().cpu().numpy() for a in (total, *[p.grad for p in params])])
        casts = [k for k in counts.launches if k == "astype" or k.startswith("cast_to_")]  # the test's own
        launches = {k: n for k, n in counts.launches.items() if k not in casts}
        assert device == "cpu" or launches == {"norm_of_all": 1, "scale_all": 1}
    for a, b in zip(*ends):
        np.testing.assert_allclose(b, a, TOLERANCE[dtype], TOLERANCE[dtype])


def test_parameters_with_channels_last_are_clipped_and_stepped_in_one_launch_each(raw, cupy):  # noqa: F811
    from cupy import counts

    rng, ends = np.random.default_rng(0), []
    kernels, images = rng.standard_normal((4, 3, 3, 3)), rng.standard_normal((2, 3, 6, 6))
    for device in ("cpu", "cuda"):
        w = fw.nn.Parameter(fw.tensor(kernels).to(device).contiguous(memory_format=fw.channels_last))
        x = fw.tensor(images).to(device).contiguous(memory_format=fw.channels_last)
        optimizer = fw.optim.Adam([w], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            fw.nn.functional.conv2d(x, w).square().sum().backward()
            assert w.grad.stride() == w.stride() and not w.is_contiguous()
            counts.clear()
            fw.nn.utils.clip_grad_norm_([w], 0.5)
            optimizer.step()
        if device == "cuda":
            assert {k: counts.launches[k] for k in ("norm_of_all", "scale_all", "adam_step")} == {
                "norm_of_all": 1, "scale_all": 1, "adam_step": 1}
        ends.append(w.detach().cpu().numpy())
    np.testing.assert_allclose(ends[1], ends[0], 1e-9, 1e-9)


@pytest.mark.parametrize("own", [fw.contiguous_format, fw.channels_last])
def test_gradients_that_lie_another_way_are_stepped_by_the_kernel(own, raw, cupy):  # noqa: F811
    """Convolutions may give them so; a step of all others would go with them, and a graph would refuse it."""
    from cupy import counts, streams

    rng, ends = np.random.default_rng(0), []
    other = fw.channels_last if own is fw.contiguous_format else fw.contiguous_format
    kernels, slopes = rng.standard_normal((2, 4, 3, 5, 5))
    for device in ("cpu", "cuda", "graph"):
        at = device.replace("graph", "cuda")
        w = fw.nn.Parameter(fw.tensor(kernels).to(at).contiguous(memory_format=own))
        w.grad = fw.tensor(slopes).to(at).contiguous(memory_format=other)
        assert w.stride() != w.grad.stride()
        optimizer = fw.optim.AdamW([w], lr=0.1, capturable=True)
        optimizer.step()
        counts.clear()
        if device == "graph":
            graph = fw.cuda.CUDAGraph()
            try:
                with fw.cuda.graph(graph):
                    optimizer.step()
                graph.replay()
            finally:
                fw.cuda.graph.default_capture_stream = None
                streams.clear()
        else:
            optimizer.step()
        if device == "cuda":
            assert counts.launches == {"setitem": 1, "adam_step": 1}
        ends.append(w.detach().cpu().numpy())
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], 1e-9, 1e-9)
