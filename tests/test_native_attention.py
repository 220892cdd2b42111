"""Native attention against its NumPy formula, and what it promises besides: layout, memory, threads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
import framework.nn.functional as F
from framework import _native
from framework.ops.sequence.attention import attention, attention_grad

module = _native.module
pytestmark = [pytest.mark.usefixtures("each_threads"),
              pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")]
# of the largest number, which is a sum of some hundred products
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-13}
LENGTHS = [1, 2, 3, 7, 16, 17, 31, 32, 33, 65, 107, 112, 113, 130, 230]
WIDTHS = [1, 2, 3, 8, 15, 16, 17, 33, 64]
HEADS: list[tuple] = [((), (), ()), ((2,), (2,), (2,)), ((2, 3), (2, 3), (2, 3)), ((2, 3), (3,), (2, 1)),
                      ((1, 2), (3, 1), (3, 2)), ((), (2,), (3, 1)), ((2, 2, 3), (2, 1, 3), (2, 1, 3))]
LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "length first": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -2, 0)), 0, -2),
    "reversed": lambda a: np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1],
    "part": lambda a: np.concatenate([a, a], -1)[..., :a.shape[-1]],
    "expanded": lambda a: np.broadcast_to(a[..., :1, :], a.shape),
}


def largest(*arrays: Any) -> float:
    return max(np.abs(a[np.isfinite(a)]).max(initial=1) for a in arrays if a is not None)


def close(got: np.ndarray, wanted: np.ndarray, scale: float) -> None:
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    assert np.squeeze(got).strides == np.squeeze(wanted).strides or not got.size
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[got.dtype] * scale)


def check(arrays: tuple, **given: Any) -> None:
    """Forward and backward, native and plain, on q, k, v, mask, g."""
    *operands, g = arrays
    given = {"causal": False, "scale": 0.4, "p": 0.0, "key": 5, **given}
    with np.errstate(all="ignore"):
        wanted, found = attention.plain(*operands, **given), module.attention(*operands, **given)
        assert found is not NotImplemented
        for a, b in zip(found, wanted):
            close(a, b, largest(b))
        mask = operands[3]
        settings = {**given, "wanted": (True, True, True, mask is not None and mask.dtype != bool)}
        found = module.attention_grad(g, *operands, *found, **settings)
        assert found is not NotImplemented
        # of what is added up, and may cancel: g v^T times an operand, for each head and query
        size = largest(*operands) * largest(g) * g.size ** 0.5
        for a, b in zip(found, attention_grad.plain(g, *operands, *wanted, **settings)):
            close(a, b, max(size, largest(b)))


@st.composite
def calls(draw) -> tuple:
    length, keys = draw(st.sampled_from(LENGTHS)), draw(st.sampled_from(LENGTHS))
    width, out_width = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(WIDTHS))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2 ** 32 - 1)))
    leads = draw(st.sampled_from(HEADS))
    rows = [(length, width), (keys, width), (keys, out_width)]

    def made(*shape: int) -> np.ndarray:
        return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](rng.standard_normal(shape).astype(dtype))
    operands = [made(*lead, *size) for lead, size in zip(leads, rows)]
    lead = np.broadcast_shapes(*leads)
    g = made(*lead, length, out_width)
    kind = draw(st.sampled_from(["none", "causal", "closed", "added", "added -inf"]))
    mask = None
    if kind not in ("none", "causal"):
        cut = draw(st.integers(0, len(lead)))
        shape = [draw(st.sampled_from([1, n])) for n in (*lead[cut:], length, keys)]
        mask = made(*shape)
        if kind == "closed":
            mask = mask > 0.3
        elif kind == "added -inf":
            mask = np.where(mask > 0.3, mask, dtype(-np.inf))
    p, key = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])), draw(st.integers(0, 2 ** 64 - 1))
    return (*operands, mask, g), {"causal": kind == "causal", "p": p, "key": key}


@settings(deadline=None, max_examples=150)
@given(calls())
def test_like_the_formula(call):
    arrays, given = call
    check(arrays, **given)


has_unit = module is not None and module.has_matrix_unit()
with_unit = pytest.mark.skipif(not has_unit, reason="no matrix unit here, or not granted, or switched off")


def by_unit(arrays: tuple, **given: Any) -> tuple:
    """Results of bfloat16 by the matrix unit, and of the formula on the same numbers in float32."""
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
    narrow, mask = [a.astype(fw.bfloat16.numpy) for a in arrays[:3]], arrays[3]
    wide = [a.astype(np.float32) for a in narrow]
    if mask is not None and mask.dtype != bool:
        mask = mask.astype(np.float32)
    given = {"causal": False, "scale": 0.4, "p": 0.0, "key": 5, **given}
    with np.errstate(all="ignore"):
        found, wanted = module.attention(*narrow, mask, **given), attention.plain(*wide, mask, **given)
        size = attention.plain(*wide[:2], np.abs(wide[2]), mask, **given)[0]
    assert found[0].dtype == fw.bfloat16.numpy and found[1].dtype == np.float32
    return [a.astype(np.float32) for a in found], wanted, size


@with_unit
@settings(deadline=None, max_examples=150)
@given(calls())
def test_of_bfloat16_by_the_matrix_unit(call):
    (*arrays, _), given = call
    found, wanted, size = by_unit(tuple(arrays), **given)
    # weights and results are rounded
    assert np.all(np.abs(found[0] - wanted[0]) <= size * 2.0 ** -7 + 2.0 ** -120)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5, atol=1e-5)


@with_unit
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 1e-40])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_extreme_numbers_of_bfloat16(place, value, causal):
    arrays = operands()
    arrays[place][0, 60, 3] = value
    found, wanted, _ = by_unit((*arrays, None), causal=causal)
    np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(wanted[0]))
    np.testing.assert_array_equal(np.isinf(found[0]), np.isinf(wanted[0]))
    np.testing.assert_array_equal(np.isnan(found[1]), np.isnan(wanted[1]))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [16, 520])  # which the unit takes, and which it does not
def test_gradients_of_bfloat16(masked, width):
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
    arrays = [made(2, 3, 70, width, seed=s) * width ** -0.25 for s in range(4)]
    mask = fw.tensor(np.random.default_rng(4).random((70, 70)) < 0.7) if masked else None
    results = []
    for dtype in (fw.bfloat16, fw.float32):
        *x, g = [fw.tensor(a).bfloat16().to(dtype).requires_grad_() for a in arrays]
        y = F.scaled_dot_product_attention(*x, attn_mask=mask, is_causal=not masked)
        found = [y, *fw.autograd.grad(y, x, g)]
        assert all(t.dtype is dtype for t in found)
        results.append([t.detach().float().numpy() for t in found])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=2.0 ** -6 * largest(b))


def made(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(length: int = 70, keys: int = 130, **given: Any) -> list:
    shapes = (2, length, 16), (2, keys, 16), (2, keys, 8)
    return [made(*shape, seed=i, **given) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 1e-40])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_extreme_numbers(place, value, dtype, causal):
    arrays = [*operands(dtype=dtype), made(2, 70, 8, seed=3, dtype=dtype)]
    arrays[place][0, 60, 3] = value
    with np.errstate(all="ignore"):
        check((*arrays[:3], None, arrays[3]), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys, width, heads", [
    (70, 250, 64, 8), (230, 230, 17, 32),  # rows that drive each other out of the cache
    (40, 4200, 128, 4),                    # too many to be kept
    (520, 130, 64, 17)])                   # a page apart
def test_rows_far_apart(queries, keys, width, heads, causal):
    def rows(length: int, seed: int) -> np.ndarray:
        own = np.random.default_rng(seed).standard_normal((length, heads, -(-width // 16) * 16), np.float32)
        return np.moveaxis(own, 1, 0)[:2, :, :width]
    q, k, v, g = rows(queries, 0), rows(keys, 1), rows(keys, 2), rows(queries, 3)
    check((q, k, v, None, g), causal=causal)


def test_rows_that_may_attend_to_nothing_are_zeros():
    q, k, v = operands()
    open = np.random.default_rng(4).random((70, 130)) > 0.5
    open[[0, 33, 69]] = False
    v[0, 7, 2] = np.nan
    for mask in (open, np.where(open, 0, -np.inf).astype(np.float32)):
        check((q, k, v, mask, made(2, 70, 8)))
        out, lse = module.attention(q, k, v, mask, causal=False, scale=1.0, p=0.0, key=0)
        assert not out[:, [0, 33, 69]].any() and (lse[:, [0, 33, 69]] == np.inf).all()


def test_scores_far_apart():
    q, k, v = operands()
    k[0, ::7] *= 1000  # the largest score comes late, and many weights are 0
    check((q, k, v, None, made(2, 70, 8)))


def test_left_to_numpy():
    q, k, v = operands()
    settings = {"causal": False, "scale": 1.0, "p": 0.0, "key": 0}
    for call in ((q[:, :0], k, v, None), (q, k[:, :0], v[:, :0], None), (q, k, v.astype(np.float64), None),
                 (q, k, v, np.ones(130, np.float32)), (q[..., :3], k, v, None), (q[:1, :, :0], k, v, None)):
        assert module.attention(*call, **settings) is NotImplemented


@pytest.mark.parametrize("lengths", [(0, 3), (3, 0), (0, 0)])
def test_empty(lengths):
    q, k, v = operands(*lengths)
    x = [fw.tensor(a, requires_grad=True) for a in (q, k, v)]
    y = F.scaled_dot_product_attention(*x)
    y.sum().backward()
    assert y.shape == (2, lengths[0], 8) and not y.detach().numpy().any()
    assert all(a.grad.shape == a.shape and not a.grad.numpy().any() for a in x)


@pytest.mark.parametrize("causal", [False, True])
def test_the_same_numbers_with_any_number_of_threads(causal):
    q, k, g = (made(1, n, 24, seed=n) for n in (200, 300, 200))
    settings = {"causal": causal, "scale": 0.2, "p": 0.2, "key": 9}
    found = []
    for n in (1, 2, 3):
        fw.set_num_threads(n)
        outs = module.attention(q, k, k, None, **settings)
        wanted = (True, True, True, False)
        found.append([*outs, *module.attention_grad(g, q, k, k, None, *outs, **settings, wanted=wanted)])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
def test_results_lie_so_that_heads_join_for_free(order):
    back = np.argsort(order)
    x = [fw.tensor(made(*[(2, 3, 5, 4)[i] for i in order], seed=s)).permute(*back).requires_grad_()
         for s in range(3)]
    y = F.scaled_dot_product_attention(*x)
    joined = y.permute(2, 0, 1, 3) if order[0] == 2 else y.transpose(1, 2)
    assert np.shares_memory(joined.reshape(*joined.shape[:2], 12).detach().numpy(), y.detach().numpy())
    found = fw.autograd.grad(y.sum(), x)
    for g in found:
        assert g.stride() == y.stride()


def test_never_keeps_the_table():
    x = [fw.tensor(made(2, 2, 1024, 16, seed=s), requires_grad=True) for s in range(3)]
    module.reset_peak()
    before = module.memory_statistics()["allocated"]
    F.scaled_dot_product_attention(*x, is_causal=True, dropout_p=0.1).sum().backward()
    assert module.memory_statistics()["peak"] - before < 12 * x[0].numel() * 4


def test_dropout_repeats_and_agrees_with_the_weights():
    x = fw.tensor(made(7, 2, 8))
    layer = fw.nn.MultiheadAttention(8, 2, dropout=0.4)
    found = []
    for need in (True, False, False):
        fw.manual_seed(3)
        found.append(layer(x, x, x, need_weights=need)[0].detach().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[2], found[1])


def test_few_keys_of_many_heads() -> None:
    """Crews of heads have sums of their own, which are added in order whatever the threads."""
    draw = np.random.default_rng(0)
    q, k, v, g = (draw.standard_normal(shape) for shape in (
        (900, 2, 5, 4), (1, 2, 6, 4), (1, 2, 6, 3), (900, 2, 5, 3)))
    found = []
    for shared in (True, False):
        parts = [fw.tensor(a if shared else np.broadcast_to(a, (900, *a.shape[1:])), requires_grad=True)
                 for a in (q, k, v)]
        out = F.scaled_dot_product_attention(*parts)
        found.append([x.numpy() for x in fw.autograd.grad(out, parts, fw.tensor(g))])
    (dq, dk, dv), (each_q, each_k, each_v) = found
    assert dk.shape == k.shape and dv.shape == v.shape
    np.testing.assert_allclose(dq, each_q, 1e-12, 1e-14)
    np.testing.assert_allclose(dk, each_k.sum(0, keepdims=True), 1e-11, 1e-11)
    np.testing.assert_allclose(dv, each_v.sum(0, keepdims=True), 1e-11, 1e-11)
    before = fw.get_num_threads()
    fw.set_num_threads(1)
    again = fw.autograd.grad(F.scaled_dot_product_attention(*(t := [
        fw.tensor(a, requires_grad=True) for a in (q, k, v)])), t, fw.tensor(g))
    fw.set_num_threads(before)
    for a, b in zip((dq, dk, dv), again, strict=True):
        np.testing.assert_array_equal(a, b.numpy())
