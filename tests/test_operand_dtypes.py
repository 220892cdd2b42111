"""Elementwise operands of several dtypes: what is computed without Python, beside the joint dtype."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import dtypes
from framework.errors import DTypeError
from framework.ops.language.elementwise import Elementwise
from framework.ops.record.op import OPS

KINDS = [fw.bool, fw.uint8, fw.int32, fw.int64, fw.float16, fw.bfloat16, fw.float32, fw.float64, fw.complex64]
NUMBERS = [0, 2, -3, True, 2.5, 1 << 70, math.nan, 1j]
TWO = [op for op in OPS if isinstance(op, Elementwise) and (len(op.inputs) == 2 or op.result == "select")]


def _outcome(op: Elementwise, operands: tuple) -> Any:
    try:
        return op.run(*operands)
    except Exception as error:
        return error


def _equal(got: Any, want: Any) -> bool:
    if isinstance(got, Exception) or isinstance(want, Exception):
        return type(got) is type(want)
    return got.dtype is want.dtype and got.shape == want.shape \
        and np.array_equal(got.numpy(), want.numpy(), equal_nan=got.dtype.category >= dtypes.FLOAT)


def _joint(op: Elementwise, operands: tuple) -> fw.dtype | None:
    try:
        return op.result_dtype(operands)[0]
    except (DTypeError, OverflowError):
        return None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("a", KINDS, ids=str)
def test_two_tensors_are_computed_in_their_joint_dtype(a):
    fw.manual_seed(0)
    for op, b, (m, n) in itertools.product(TWO, KINDS, [((), ()), ((), (3,)), ((3,), ()), ((3,), (2, 3))]):
        condition = (fw.rand(2, 3) > 0.5,) if op.result == "select" else ()
        x, y = (fw.rand(m) * 3 + 1).to(a), (fw.rand(n) * 3 + 1).to(b)
        dtype, got = _joint(op, (*condition, x, y)), _outcome(op, (*condition, x, y))
        if dtype is None:
            assert isinstance(got, DTypeError), (op.name, b, got)
        else:
            assert _equal(got, _outcome(op, (*condition, x.to(dtype), y.to(dtype)))), (op.name, b, m, n)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("a", KINDS, ids=str)
def test_a_tensor_and_a_number_are_computed_in_their_joint_dtype(a):
    fw.manual_seed(0)
    two = [op for op in TWO if len(op.inputs) == 2]
    for op, number, size in itertools.product(two, NUMBERS, [(), (3,)]):
        x = (fw.rand(size) * 3).to(a)
        for operands in ((x, number), (number, x)):
            dtype, got = _joint(op, operands), _outcome(op, operands)
            if dtype is None:
                assert isinstance(got, Exception), (op.name, operands, got)
                continue
            held = float(number) if dtype.category == dtypes.FLOAT else number
            want = _outcome(op, tuple(x.to(dtype) if o is x else held for o in operands))
            assert _equal(got, want), (op.name, operands, got, want)


@pytest.mark.filterwarnings("error")
def test_what_a_lesser_dtype_cannot_hold_is_infinite_without_a_warning():
    assert (fw.ones(2) * fw.tensor(1e300, dtype=fw.float64)).tolist() == [math.inf] * 2
    assert (fw.tensor(-1e300, dtype=fw.float64) + fw.ones(2)).tolist() == [-math.inf] * 2


def test_operands_that_are_converted_carry_gradients():
    x, w = fw.tensor([1.0, 2.0], requires_grad=True), fw.tensor(3.0, dtype=fw.float64, requires_grad=True)
    whole, mask = fw.tensor([4, 5]), fw.tensor([True, False])
    (x * whole + x * mask + x * w).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0] and x.grad.dtype is fw.float32
    assert w.grad.item() == 3.0 and w.grad.dtype is fw.float64
    whole.zero_()  # backward needs what was computed with, not this
    y = (x * fw.tensor([4, 5])).sum()
    y.backward()
    assert x.grad.tolist() == [12.0, 13.0]


def test_writing_into_a_converted_operand_is_as_it_was():
    x, whole = fw.tensor([1.0, 2.0], requires_grad=True), fw.tensor([4, 5])
    y = (x * whole).sum()
    whole.zero_()
    y.backward()
    assert x.grad.tolist() == [4.0, 5.0]


@pytest.mark.filterwarnings("error")
def test_linspace_is_numpys():
    ends = [0, 1, -1, 0.5, 1e300, -1e300, 5e-324, math.inf, math.nan, 1e40, 7.3]
    for a, b, n in itertools.product(ends, ends, [0, 1, 2, 3, 10, 1001]):
        for dtype in (fw.float32, fw.float64, fw.float16):
            got = fw.linspace(a, b, n, dtype=dtype)
            with np.errstate(all="ignore"):
                want = np.linspace(a, b, n).astype(dtype.numpy)
            assert got.dtype is dtype and np.array_equal(got.numpy(), want, equal_nan=True), (a, b, n)
    assert fw.linspace(0, 1, 3, requires_grad=True).requires_grad


def test_eye_is_numpys():
    for n, m, dtype in itertools.product([0, 1, 3, 700], [None, 0, 1, 2, 600], KINDS):
        got = fw.eye(n, dtype=dtype) if m is None else fw.eye(n, m, dtype=dtype)
        assert got.dtype is dtype and np.array_equal(got.numpy(), np.eye(n, m, dtype=dtype.numpy))
    assert fw.eye(2, requires_grad=True).requires_grad


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [fw.float16, fw.bfloat16])
def test_whole_numbers_beside_floats_of_16_bits(kind):
    """Rounded as a conversion rounds them, without a word about those that become infinite."""
    x, n = fw.tensor([1.0, 2.0, 0.5], dtype=kind), fw.tensor([100_001, -3, 1 << 40])
    for got in (x * n, n * x, x.clone().mul_(n)):
        assert got.dtype is kind and got.tolist() == (x * n.to(kind)).tolist()
    assert (fw.tensor([True, False, True]) * x).tolist() == [1.0, 0.0, 0.5]


def test_divisors_of_losses_of_16_bits_are_counted_exactly():
    """Of more numbers than 16 bits count up to: the gradient divides by their number."""
    x = fw.zeros(70_000, 2, dtype=fw.float16).log_softmax(1).detach().requires_grad_()
    fw.nn.functional.nll_loss(x, fw.zeros(70_000, dtype=fw.int64), reduction="mean").backward()
    assert x.grad[:, 0].max().item() < 0 and x.grad[:, 1].abs().max().item() == 0


@pytest.mark.parametrize("equation, shapes, sums", [
    ("i,j->ij", [(3,), (4,)], False), ("i,i->i", [(3,), (3,)], False), ("ij,k->k", [(3, 4), (3,)], False),
    ("...i,...j->...ij", [(2, 3), (2, 4)], False), ("ij,jk->ik", [(3, 1), (1, 2)], False),
    ("bi,bj->b", [(3, 4), (3, 2)], False), ("i,j,k->ijk", [(3,), (4,), (2,)], False),
    ("i,i->", [(3,), (3,)], True), ("ij,jk->ik", [(2, 3), (3, 2)], True),
    ("i,ij,jk->k", [(3,), (3, 4), (4, 2)], True)])
def test_einsum_promotes_where_it_sums_no_products(equation, shapes, sums):
    fw.manual_seed(0)
    *some, last = [(fw.rand(shape) * 9).long() for shape in shapes]
    for dtype, want in [(fw.float32, fw.float32), (fw.float64, fw.float64), (fw.int32, fw.int64)]:
        if sums:
            with pytest.raises(DTypeError, match="einsum: .* is framework.int64 but .* convert one"):
                fw.einsum(equation, *some, last.to(dtype))
        else:
            got = fw.einsum(equation, *some, last.to(dtype))
            assert got.dtype is want and fw.equal(got, fw.einsum(equation, *some, last).to(want))


def test_gradients_of_einsum_are_of_the_operands_dtypes():
    x, y = fw.ones(2, requires_grad=True), fw.ones(3, dtype=fw.float64, requires_grad=True)
    fw.einsum("i,j->ij", x, y).sum().backward()
    assert x.grad.dtype is fw.float32 and x.grad.tolist() == [3.0, 3.0]
    assert y.grad.dtype is fw.float64 and y.grad.tolist() == [2.0, 2.0, 2.0]
