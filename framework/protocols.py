"""How Tensor answers NumPy and the array API standard: methods that other libraries look for.

Their tables are large and few programs meet them, so each is imported when it is first asked for.
"""

from typing import Any

from .doors import through
from .errors import LayoutError
from .ops.convert.cast import to
from .tensor import Tensor

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module ``framework.array_api``: the functions of the array API standard.

    Raises ValueError for a version that is not known; all known ones are parts of the newest.

    >>> fw.ones(1).__array_namespace__(api_version="2024.12").__name__
    'framework.array_api'
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"__array_namespace__: api_version {api_version!r} is not known; use one of "
                         f"{', '.join(VERSIONS)}")
    return through("array_api")


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device; itself if it is there. Streams are CuPy's current ones: only None.

    >>> fw.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError("to_device: stream must be None; choose a stream with CuPy's own context manager")
    return to(self, device=device)


def __array_ufunc__(self: Tensor, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    """NumPy's ufuncs on tensors: recorded, see ``framework.numpy_protocol``."""
    _load()
    return self.__array_ufunc__(ufunc, method, *inputs, **settings)


def __array_function__(self: Tensor, function: Any, types: Any, args: Any, settings: Any) -> Any:
    """NumPy's other functions on tensors: recorded, see ``framework.numpy_protocol``."""
    _load()
    return self.__array_function__(function, types, args, settings)


def _load() -> None:
    """Put the methods that know the tables in place of the two above, which only fetch them."""
    module = through("numpy_protocol")
    Tensor.__array_ufunc__ = module.array_ufunc  # type: ignore[method-assign]
    Tensor.__array_function__ = module.array_function  # type: ignore[method-assign]


@property  # type: ignore[misc]
def __cuda_array_interface__(self: Tensor) -> dict[str, Any]:
    """Where the elements lie on a GPU, for libraries that look for this: CuPy, Numba.

    Raises RuntimeError where grad is required.
    """
    try:
        array = self._array if self.is_cuda else None
    except LayoutError:  # a sparse tensor, which has no array
        array = None
    if array is None:
        raise AttributeError("__cuda_array_interface__: this tensor is not on a GPU, or not strided")
    if self.requires_grad:
        raise RuntimeError("__cuda_array_interface__: this tensor requires grad, and what others do to it is "
                           "not recorded; use x.detach()")
    found: dict[str, Any] = array.__cuda_array_interface__
    return found


for _method in (__array_namespace__, to_device, __array_ufunc__, __array_function__):
    setattr(Tensor, _method.__name__, _method)
Tensor.__cuda_array_interface__ = __cuda_array_interface__  # type: ignore[method-assign]
