"""Element types and PyTorch's promotion rules.

A ``DType`` is a name for a NumPy dtype. Promotion differs from NumPy's in two ways: an integer
never widens a float (``int64 + float32`` is ``float32``), and 0-dim tensors and Python scalars are
weak inside their category (bool < integer < float < complex).
"""

from typing import Any

import numpy as np

from .config import names, need
from .errors import DTypeError

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
_CATEGORY = {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOAT, "c": COMPLEX}


# NumPy's letters for floating and for inexact dtypes. "V" is its letter for bfloat16, which it does not bring
# itself; nothing else of that kind gets into a tensor.
FLOATING, INEXACT = "fV", "fcV"


class DType:
    """An element type, e.g. ``framework.float32``; ``numpy`` is the NumPy dtype behind it."""

    __slots__ = ("name", "numpy", "category", "itemsize")

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "bfloat16":
            self.category, self.itemsize = FLOAT, 2
            return  # its NumPy dtype is fetched when it is first asked for
        self.numpy = np.dtype(name)
        self.category = _CATEGORY[self.numpy.kind]
        self.itemsize = self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether it is floating (complex is not)."""
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether it is complex."""
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether it has negative numbers."""
        return self.numpy.kind not in "bu"

    def to_real(self) -> "DType":
        """The dtype of the real part: float32 of complex64; itself unless complex.

        >>> fw.complex64.to_real()
        framework.float32
        """
        return {complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> "DType":
        """The complex dtype whose parts are of this one: complex64 of float32; itself if complex.

        >>> fw.float64.to_complex()
        framework.complex128
        """
        return _COMPLEX_OF.get(self, self)

    @property
    def __numpy_dtype__(self) -> np.dtype:
        """So that NumPy (2.4 or later) takes ``dtype=x.dtype``."""
        return self.numpy

    def __getattr__(self, name: str) -> Any:
        global rounded, plain
        if name != "numpy":
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        rounded = self.numpy = np.dtype(need("ml_dtypes", "lowprecision", f"dtype {self.name}").bfloat16)
        BY_NUMPY[self.numpy] = self
        plain = False
        return self.numpy

    def __repr__(self) -> str:
        return f"{names.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name if self.name != "bool" else "bool_"


float16 = DType("float16")
float32 = DType("float32")
float64 = DType("float64")
int8 = DType("int8")
int16 = DType("int16")
int32 = DType("int32")
int64 = DType("int64")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = DType("uint32")
uint64 = DType("uint64")
bool_ = DType("bool")
complex64 = DType("complex64")
complex128 = DType("complex128")

ALL = (float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_, complex64,
       complex128)
BY_NUMPY: dict[np.dtype, DType] = {d.numpy: d for d in ALL}
rounded: np.dtype | None = None  # NumPy's dtype of bfloat16, once it is in use
plain = True  # whether neither bfloat16 nor CuPy is in use: then every kernel is NumPy's own
bfloat16 = DType("bfloat16")  # from an optional package, so not one of ALL, nor yet in BY_NUMPY
BY_NAME: dict[str, DType] = {d.name: d for d in (*ALL, bfloat16)}
_COMPLEX_OF = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}

_default = float32


def set_default_dtype(dtype: Any) -> None:
    """Set the floating dtype that Python floats, and integers that must become floats, take.

    >>> fw.set_default_dtype(fw.float64); fw.tensor([1.5]).dtype
    framework.float64
    >>> fw.set_default_dtype(fw.float32)
    """
    global _default
    dtype = as_dtype(dtype)
    if not dtype.is_floating_point:
        raise DTypeError(f"set_default_dtype: wanted a floating dtype, got {dtype}")
    _default = dtype


def get_default_dtype() -> DType:
    """The floating dtype of new tensors made from Python floats.

    >>> fw.get_default_dtype()
    framework.float32
    """
    return _default


def as_dtype(spec: Any) -> DType:
    """A ``DType`` from a ``DType``, a NumPy dtype or scalar type, or Python's bool, int, float."""
    if type(spec) is DType:
        return spec
    if spec is float:
        return _default
    if spec is complex:
        return _COMPLEX_OF[_default]
    try:
        found = (None if spec is None else bfloat16 if isinstance(spec, str) and spec == "bfloat16"
                 else of_numpy(np.dtype(spec)))
    except TypeError:
        found = None
    return found or _unknown(spec)


def of_numpy(dtype: np.dtype) -> DType | None:
    """The ``DType`` of a NumPy dtype; None where there is none."""
    if dtype.kind == "V" and dtype.name == "bfloat16":
        return BY_NUMPY.get(bfloat16.numpy)
    return BY_NUMPY.get(dtype)


def _unknown(spec: Any) -> DType:
    names = ", ".join(BY_NAME)
    raise DTypeError(f"dtype {spec!r} is not supported; choose one of: {names}") from None


def promote_types(a: DType, b: DType) -> DType:
    """The dtype of a result of two tensors that both have dimensions.

    >>> fw.promote_types(fw.int64, fw.float16)
    framework.float16
    """
    a, b = as_dtype(a), as_dtype(b)
    if a is b:
        return a
    low, high = (a, b) if a.category <= b.category else (b, a)
    if low.category <= INTEGER < high.category:
        return high
    if {low, high} == {float16, bfloat16}:
        return float32
    found = BY_NUMPY[np.promote_types(low.numpy, high.numpy)]
    if found.category > high.category:  # NumPy makes float64 of uint64 and a signed integer
        raise DTypeError(f"{a} and {b} have no common integer dtype; convert one, e.g. x.to(framework.int64)")
    return found


def can_cast(source: DType, to: DType) -> bool:
    """Whether a result of dtype ``source`` may be written into a tensor of dtype ``to``.

    >>> fw.can_cast(fw.float32, fw.int64), fw.can_cast(fw.int64, fw.float32)
    (False, True)
    """
    return as_dtype(source).category <= as_dtype(to).category


def scalar_dtype(value: Any) -> DType:
    """The dtype a Python (or NumPy) scalar takes when nothing else decides.

    >>> scalar_dtype(3), scalar_dtype(2.5)
    (framework.int64, framework.float32)
    """
    if isinstance(value, np.generic):
        return as_dtype(value.dtype)
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _COMPLEX_OF[_default]
    raise DTypeError(f"expected a number, got {type(value).__name__}: {value!r}")


def combine(groups: tuple[list[DType], list[DType], list[DType]]) -> DType:
    """Promote across strength: (tensors with dimensions, 0-dim tensors, scalars), strongest first."""
    result: DType | None = None
    for group in groups:
        here: DType | None = None
        for dtype in group:
            here = dtype if here is None else promote_types(here, dtype)
        if here is None:
            continue
        if result is None:
            result = here
        elif here.category > result.category:
            weak_complex = here.is_complex and result.is_floating_point
            result = _COMPLEX_OF[result] if weak_complex else promote_types(result, here)
    if result is None:
        raise DTypeError("a result dtype needs at least one operand")
    return result


class finfo:
    """Limits of a floating dtype: ``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``, ``bits``.

    >>> fw.finfo(fw.float32).bits
    32
    """

    def __init__(self, dtype: Any = None) -> None:
        dtype = as_dtype(_default if dtype is None else dtype)
        if dtype.category < FLOAT:
            raise DTypeError(f"finfo: wanted a floating dtype, got {dtype}; use iinfo for integers")
        module: Any = np if dtype is not bfloat16 else need("ml_dtypes", "lowprecision", "finfo")
        info = module.finfo(dtype.numpy)
        self.dtype, self.bits, self.eps = dtype.name, info.bits, float(info.eps)
        self.max, self.min = float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: ``max``, ``min``, ``bits``.

    >>> fw.iinfo(fw.int8).max
    127
    """

    def __init__(self, dtype: DType) -> None:
        dtype = as_dtype(dtype)
        if dtype.category != INTEGER:
            raise DTypeError(f"iinfo: wanted an integer dtype, got {dtype}")
        info = np.iinfo(dtype.numpy)
        self.dtype, self.bits, self.max, self.min = dtype.name, info.bits, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
