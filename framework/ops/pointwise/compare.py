"""Comparisons, logic and bits. None has a derivative."""

from typing import Any

from ... import _native
from ...dtypes import bool_
from ...errors import ShapeError
from ...sparse_door import is_sparse, sparse
from ...tensor import Tensor
from ..language.elementwise import elementwise, reflected
from ..record.args import tensor_arg
from ..record.public import public
from .arithmetic import abs as abs_


def _compare(name: str, symbol: str, ufunc: str, dunder: str, alias: str,
             shown: str, complex: bool = False) -> Any:
    return elementwise(name, "x y", f"x {symbol} y", f"""Whether x {symbol} y, element by element.
    >>> fw.{name}(fw.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor({shown})
    """, ufunc=ufunc, result="bool", method=f"{dunder} {alias}", alias=alias, inplace=True,
        complex=complex, of_anything=symbol in ("==", "!="))


eq = _compare("eq", "==", "equal", "__eq__", "", "[False,  True, False]", True)
ne = _compare("ne", "!=", "not_equal", "__ne__", "not_equal", "[ True, False,  True]", True)
lt = _compare("lt", "<", "less", "__lt__", "less", "[ True, False, False]")
le = _compare("le", "<=", "less_equal", "__le__", "less_equal", "[ True,  True, False]")
gt = _compare("gt", ">", "greater", "__gt__", "greater", "[False, False,  True]")
ge = _compare("ge", ">=", "greater_equal", "__ge__", "greater_equal", "[False,  True,  True]")


def _logic(name: str, line: str, shown: str, inputs: str = "x y") -> Any:
    call = ("fw.tensor([True, True]), fw.tensor([True, False])" if " " in inputs
            else "fw.tensor([True, False])")
    given = inputs.replace(" ", ", ")
    return elementwise(name, inputs, f"{name}({given})", f"""{line}
    >>> fw.{name}({call})
    tensor({shown})
    """, ufunc=name, result="bool", inplace=True, complex=True,
        runtime=f"truth('{name.partition('_')[2]}', {given})")


logical_and = _logic("logical_and", "Whether both are true (not 0).", "[ True, False]")
logical_or = _logic("logical_or", "Whether one at least is true (not 0).", "[True, True]")
logical_xor = _logic("logical_xor", "Whether exactly one is true (not 0).", "[False,  True]")
logical_not = _logic("logical_not", "Whether it is false (0).", "[False,  True]", "x")

bitwise_and = elementwise("bitwise_and", "x y", "x & y", """Bits set in both; logical and for bools.
    >>> fw.bitwise_and(fw.tensor([6, 3]), 2)
    tensor([2, 2])
    """, ufunc="bitwise_and", result="integer", writes="iub", method="__and__ __rand__",
    runtime="truth('and', x, y)")
bitwise_or = elementwise("bitwise_or", "x y", "x | y", """Bits set in either; logical or for bools.
    >>> fw.bitwise_or(fw.tensor([4, 1]), 2)
    tensor([6, 3])
    """, ufunc="bitwise_or", result="integer", writes="iub", method="__or__ __ror__",
    runtime="truth('or', x, y)")
bitwise_xor = elementwise("bitwise_xor", "x y", "x ^ y", """Bits set in exactly one of the two.
    >>> fw.bitwise_xor(fw.tensor([6, 3]), 2)
    tensor([4, 1])
    """, ufunc="bitwise_xor", result="integer", writes="iub", method="__xor__ __rxor__",
    runtime="truth('xor', x, y)")
bitwise_not = elementwise("bitwise_not", "x", "~x", """Every bit flipped; logical not for bools.
    >>> fw.bitwise_not(fw.tensor([0, 5]))
    tensor([-1, -6])
    """, ufunc="invert", result="integer", writes="iub", method="__invert__",
    runtime="truth('not', x)")


def _test(name: str, ufunc: str, line: str, shown: str, complex: bool = True) -> Any:
    return elementwise(name, "x", f"{name}(x)", f"""{line}
    >>> fw.{name}(fw.tensor([1.0, float("inf"), float("nan")]))
    tensor({shown})
    """, ufunc=ufunc, result="bool", inplace=False, complex=complex)


isnan = _test("isnan", "isnan", "Whether the element is not a number.", "[False, False,  True]")
isinf = _test("isinf", "isinf", "Whether the element is inf or -inf.", "[False,  True, False]")
isfinite = _test("isfinite", "isfinite", "Whether the element is neither infinite nor nan.",
                 "[ True, False, False]")
signbit = _test("signbit", "signbit", "Whether the sign bit is set.", "[False, False, False]",
                complex=False)


@public(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """Whether ``|input - other| <= atol + rtol * |other|``; with ``equal_nan``, nan is close to nan.

    >>> fw.isclose(fw.tensor([1.0, 2.0]), fw.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    tensor_arg(input, "isclose"), tensor_arg(other, "isclose", "other")
    if input.dtype is bool_ and other.dtype is bool_:
        return eq(input, other)
    near: Any = abs_(input - other) <= atol + rtol * abs_(other)  # type: ignore[operator]
    close = (near & isfinite(other)) | eq(input, other)
    return close | (isnan(input) & isnan(other)) if equal_nan else close


@public(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> bool:
    """Whether every element is close; see ``isclose``.

    >>> fw.allclose(fw.ones(2), fw.ones(2) + 1e-9)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())  # type: ignore[attr-defined]


_equal = getattr(_native.module, "tensors_equal", lambda *args: NotImplemented)


@public(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> fw.equal(fw.tensor([1, 2]), fw.tensor([1, 2]))
    True
    """
    found = _equal(input, other)
    if found is not NotImplemented:
        return found
    tensor_arg(input, "equal"), tensor_arg(other, "equal", "other")
    if is_sparse(input) or is_sparse(other):
        return sparse().equal(input, other)
    return input.shape == other.shape and bool(eq(input, other).all())  # type: ignore[attr-defined]


@public(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0; ShapeError for any other number of elements.

    >>> fw.is_nonzero(fw.tensor([2.0]))
    True
    """
    if tensor_arg(input, "is_nonzero").numel() != 1:
        raise ShapeError(f"is_nonzero: wanted a tensor of one element, got shape {list(input.shape)}; use "
                         f".any() or .all()")
    return bool(input.item() != 0)


bitwise_left_shift = elementwise("bitwise_left_shift", "x y", "left_shift(x, y)",
    """The bits moved towards the high end: x * 2**y.
    >>> fw.bitwise_left_shift(fw.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """, ufunc="left_shift", result="integer", writes="iu", method="__lshift__")
bitwise_right_shift = elementwise("bitwise_right_shift", "x y", "right_shift(x, y)",
    """The bits moved towards the low end, the sign kept: floor(x / 2**y).
    >>> fw.bitwise_right_shift(fw.tensor([8, -3]), 1)
    tensor([ 4, -2])
    """, ufunc="right_shift", result="integer", writes="iu", method="__rshift__")
reflected(bitwise_left_shift, "rlshift", "<<")
reflected(bitwise_right_shift, "rrshift", ">>")
isposinf = elementwise("isposinf", "x", "isposinf(x)", """Whether the element is +inf.
    >>> fw.isposinf(fw.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False,  True, False])
    """, result="bool")
isneginf = elementwise("isneginf", "x", "isneginf(x)", """Whether the element is -inf.
    >>> fw.isneginf(fw.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False, False,  True])
    """, result="bool")
