"""Second derivatives of every row: forward over reverse and reverse over forward give reverse twice."""

import numpy as np
import pytest
from table import (
    ROWS,
    cast_inputs,
    changes_inputs,
    cotangents,
    floating_leaves,
    is_floating,
    row_id,
    tensors,
)

import framework as fw
import framework.autograd.forward_ad as fwAD

TWICE = {
    row_id(row): row
    for row in ROWS
    if any(s.grad and s.order >= 2 and any(map(is_floating, s.inputs)) for s in row.samples)
}


@pytest.mark.parametrize("row", TWICE.values(), ids=TWICE)
def test_both_mixtures(row):
    for sample in row.samples:
        if not sample.grad or sample.order < 2 or not any(map(is_floating, sample.inputs)):
            continue
        inputs = tensors(cast_inputs(sample, np.float64), grad=True)
        xs = [x for x in inputs if isinstance(x, fw.Tensor) and x.requires_grad]
        ts = [fw.tensor(t, dtype=x.dtype) for t, x in zip(cotangents(xs, seed=8), xs)]
        ys = floating_leaves(called(row, sample, inputs))
        vs = [fw.tensor(v, dtype=y.dtype) for v, y in zip(cotangents(ys), ys)]
        if not ys:
            continue
        want = along(fw.autograd.grad(ys, xs, vs, create_graph=True, allow_unused=True), ts, xs)
        with fwAD.dual_level():
            pairs = iter(ts)
            duals = [fwAD.make_dual(x, next(pairs)) if any(x is own for own in xs) else x for x in inputs]
            ys = floating_leaves(called(row, sample, duals))
            gs = fw.autograd.grad(ys, xs, vs, allow_unused=True, retain_graph=True)
            forward_over_reverse = [None if g is None else fwAD.unpack_dual(g).tangent for g in gs]
            assert not any(t is not None and t.requires_grad for t in forward_over_reverse)
            reverse_over_forward = along([fwAD.unpack_dual(y).tangent for y in ys], vs, xs)
        for got in (forward_over_reverse, reverse_over_forward):
            for x, a, b in zip(xs, got, want):
                a, b = [np.zeros(x.shape) if t is None else t.numpy() for t in (a, b)]
                np.testing.assert_allclose(
                    a, b, rtol=1e-7 * sample.tol, atol=1e-8 * sample.tol, err_msg=sample.label
                )


def called(row, sample, xs):
    return sample.call(fw, *[x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in xs])


def along(values, directions, xs):
    """The gradients with respect to ``xs`` of the values that have one, for these cotangents."""
    pairs = [(y, v) for y, v in zip(values, directions) if y is not None and y.requires_grad]
    if not pairs:
        return [None] * len(xs)
    return fw.autograd.grad([y for y, _ in pairs], xs, [v for _, v in pairs], allow_unused=True)
