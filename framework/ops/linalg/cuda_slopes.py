"""The middle of the gradients of factors on GPUs (``slopes.cu``), each by one launch instead of some ten."""

from pathlib import Path
from typing import Any

from ...backends import cuda, device_code, device_launcher

_SOURCE = device_code.source(Path(__file__).with_name("slopes.cu"), dtypes="fd")


def _launched(name: str, like: Any, given: tuple, *settings: Any) -> Any:
    """What a kernel makes in the shape of ``like`` (*, n, n); NotImplemented but for arrays of a GPU."""
    there = [a for a in (like, *given) if a is not None]
    char = device_code.char_of(*there) if all(map(device_code.is_device_array, there)) else ""
    if char not in ("f", "d") or not like.size:
        return NotImplemented
    module = cuda.cupy()
    with like.device:
        out = device_launcher.empty(like.shape, like.dtype)
        arrays = [a if a is None else module.ascontiguousarray(a) for a in given]
        _SOURCE.kernel(name, char)(
            (device_code.blocks(out.size),), (device_code.THREADS,),
            (out, *arrays, out.shape[-1], out.size, *settings))
    return out


def mirrored(x: Any, y: Any, factor: float) -> Any:
    """The lower triangles of ``factor * (x - y)``, mirrored above the diagonal; x or y may be None."""
    return _launched("mirrored", y if x is None else x, (x, y), factor)


def singular_middle(like: Any, gs: Any, a: Any, b: Any, s: Any) -> Any:
    """What stands between U and Vh in the gradient of a singular value decomposition."""
    return _launched("singular_middle", like, (gs, a, b, s))


def eigen_middle(gl: Any, inner: Any, values: Any) -> Any:
    """What stands between V and its transpose in the gradient of eigenvectors."""
    return _launched("eigen_middle", inner, (gl, inner, values))
