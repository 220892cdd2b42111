"""Calls whose arguments were checked before: what is kept, and what is told apart."""

from typing import Any

import pytest

import framework as fw
from framework import _native
from framework.ops.record.planned import planned
from framework.seam import intercept

pytestmark = pytest.mark.skipif(not _native.module, reason="nothing is kept without the extension")


def counted() -> tuple[Any, list]:
    """A function that joins what it is given to a text, and the arguments it was prepared for."""
    seen: list = []

    def prepare(x: Any, *rest: Any) -> list:
        seen.append(rest)
        if rest == ("wrong",):
            raise ValueError("wrong")
        return [(fw.add, 1, {"other": 1}), (lambda y, *more: (y, *more), 1 + len(rest), {})]
    return planned(prepare), seen


def test_calls_of_one_kind_are_prepared_once() -> None:
    f, seen = counted()
    for start in range(3):
        x = fw.arange(start, start + 4)
        y, *rest = f(x, 2, (3, 4), None, "same")
        assert y.tolist() == (x + 1).tolist() and rest == [2, (3, 4), None, "same"]
    assert len(seen) == 1


@pytest.mark.parametrize("one, other", [
    (2, 2.0), (1, True), (0, False), (0.0, -0.0), ((1, 2), [1, 2]), ((1, (2,)), ((1, 2),)), ("a", "b"),
    (None, 0), ((), None), (2**63 - 1, -2**63), ("", None), ("abcdefgh", "abcdefgh\0")])
def test_kinds_of_arguments_are_told_apart(one: Any, other: Any) -> None:
    f, seen = counted()
    for value in (one, other, one, other):
        assert repr(f(fw.zeros(2), value)[1]) == repr(value)
    assert len(seen) == 2


def test_shapes_and_dtypes_are_told_apart() -> None:
    f, seen = counted()
    tensors = [fw.zeros(2, 3), fw.zeros(3, 2), fw.zeros(6), fw.zeros(2, 3, dtype=fw.float64),
               fw.zeros(2, 3, dtype=fw.int64), fw.zeros(2, 3, dtype=fw.bfloat16), fw.zeros(())]
    for x in tensors * 2:
        assert f(x)[0].dtype is x.dtype and f(x)[0].shape == x.shape
    assert len(seen) == len(tensors)
    for y in tensors * 2:  # further tensors count as well, and are handed on
        assert f(tensors[0], y)[1] is y
    assert len(seen) == 2 * len(tensors)


def test_a_list_is_what_it_holds() -> None:
    f, seen = counted()
    sizes = [1, 2]
    f(fw.zeros(2), sizes)
    sizes.append(3)
    assert f(fw.zeros(2), sizes)[1] == [1, 2, 3] and len(seen) == 2
    sizes.append(sizes)  # type: ignore[arg-type]
    assert f(fw.zeros(2), sizes)[1] is sizes


def test_wrong_calls_are_wrong_each_time() -> None:
    f, seen = counted()
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            f(fw.zeros(2), "wrong")
    assert len(seen) == 2
    with pytest.raises(TypeError):
        f()


def test_who_looks_on_sees_a_call_prepared() -> None:
    f, seen = counted()
    f(fw.zeros(2))
    names: list[str] = []

    def note(event: Any, proceed: Any) -> Any:
        names.append(event.op.name)
        return proceed(*event.inputs, **event.settings)
    for _ in range(2):
        with intercept(note):
            f(fw.zeros(2))
    assert names.count("add") == 2 and len(seen) == 3


def test_what_is_kept_stays_small_and_right() -> None:
    f, seen = counted()
    for number in [*range(1200), *range(1199, 1100, -1)]:
        assert f(fw.zeros(1), number)[1] == number
    assert len(seen) < 1250


def test_gradients_and_batches() -> None:
    x = fw.randn(2, 3, 8, 8, dtype=fw.float64, requires_grad=True)
    pool = fw.nn.functional.max_pool2d
    (g,) = fw.autograd.grad(pool(x, 2).sum(), x)
    (h,) = fw.autograd.grad(pool(x, 2, return_indices=True)[0].sum(), x)
    assert fw.equal(g, h)
    each = fw.func.vmap(lambda one: pool(one, 2, return_indices=True))(x.detach()[:, None])
    whole = pool(x.detach(), 2, return_indices=True)
    assert all(fw.equal(a[:, 0], b) for a, b in zip(each, whole))
