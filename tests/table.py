"""What the drivers of the sample table share: loading the rows, casting inputs, comparing results."""

import importlib
import pkgutil
from typing import Any

import numpy as np
import samples
from samples.base import TABLE, Row, Sample, complete

import framework as fw

BROKEN: dict[str, BaseException] = {}
for _module in pkgutil.walk_packages(samples.__path__, "samples."):
    try:
        importlib.import_module(_module.name)
    except Exception as error:  # reported by test_coverage, so that one bad file leaves the others tested
        BROKEN[_module.name] = error

complete()
ROWS: list[Row] = [TABLE[key] for key in sorted(TABLE)]
RTOL = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-9, "complex64": 2e-5, "complex128": 1e-9}
ATOL = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-5, "complex128": 1e-10}


def row_id(row: Row) -> str:
    """``nn.functional.relu`` for pytest's list."""
    return f"{row.namespace or 'method'}.{row.name}".removeprefix("framework.")


def is_floating(a: Any) -> bool:
    """Whether an input takes part in casts and derivatives."""
    return isinstance(a, (np.ndarray, np.generic)) and a.dtype in (np.float64, np.complex128)


def changes_inputs(row: Row) -> bool:
    """Whether the row is of a form that works in place."""
    return row.name.endswith("_") or row.name in ("__setitem__", "setitem")


def cast_inputs(sample: Sample, dtype: type) -> list[Any]:
    """Copies of the sample's arrays, the floating ones in ``dtype``, complex ones with parts of it."""
    inputs = [np.asarray(a) if isinstance(a, np.generic) else a for a in sample.inputs]
    return [np.array(a, as_wide(dtype, a)) if is_floating(a) else a.copy() if isinstance(a, np.ndarray) else a
            for a in inputs]


def as_wide(dtype: type, a: np.ndarray) -> type:
    """``dtype``, or the complex dtype with parts of it where the array is complex."""
    complex_of = {np.float64: np.complex128, np.float32: np.complex64, np.float16: np.complex64}
    return complex_of[dtype] if a.dtype.kind == "c" else dtype


def tensors(arrays: list[Any], grad: bool = False, device: str | None = None) -> list[Any]:
    """Tensors over the arrays (everything else as it is)."""
    out = []
    for a in arrays:
        if not isinstance(a, np.ndarray):
            out.append(a)
            continue
        t = fw.from_numpy(a)
        if device is not None:
            t = t.to(device)
        out.append(t.requires_grad_() if grad and a.dtype.kind in "fc" else t)
    return out


def torch_tensors(arrays: list[Any], grad: bool = False) -> list[Any]:
    """PyTorch tensors of copies of the arrays."""
    import torch
    out = []
    for a in arrays:
        if not isinstance(a, np.ndarray):
            out.append(a)
            continue
        t = torch.from_numpy(a.copy())
        out.append(t.requires_grad_() if grad and a.dtype.kind in "fc" else t)
    return out


def flat(out: Any) -> list[Any]:
    """The leaves of a result: tensors, arrays, numbers."""
    if isinstance(out, dict):
        return [leaf for value in out.values() for leaf in flat(value)]
    if isinstance(out, (tuple, list)):
        return [leaf for value in out for leaf in flat(value)]
    return [out]


def numpy_of(leaf: Any) -> np.ndarray:
    """A result's leaf as a NumPy array."""
    if isinstance(leaf, fw.Tensor):
        return leaf.detach().cpu().numpy()
    if hasattr(leaf, "resolve_conj"):
        return leaf.detach().resolve_conj().resolve_neg().numpy(force=True)  # ZeroTensors need force
    return np.asarray(leaf)


def floating_leaves(out: Any) -> list[Any]:
    """The tensors of a result that carry a gradient."""
    return [y for y in flat(out) if hasattr(y, "requires_grad") and y.requires_grad]


def assert_close(got: np.ndarray, want: np.ndarray, dtype: str, tol: float = 1.0, what: str = "") -> None:
    """Equal shape and, within the tolerance of ``dtype``, equal values."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, wanted {want.shape}"
    if want.dtype.kind in "fc" or got.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=RTOL[dtype] * tol, atol=ATOL[dtype] * tol,
                                   equal_nan=True, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def cotangents(leaves: list[Any], seed: int = 5) -> list[np.ndarray]:
    """Random gradients for the results, the same for both libraries."""
    rng = np.random.default_rng(seed)
    shapes = [(tuple(y.shape), y.is_complex()) for y in leaves]
    return [rng.normal(size=s) + (1j * rng.normal(size=s) if turned else 0.0) for s, turned in shapes]


def strided(a: Any, how: str) -> Any:
    """The same numbers in memory that is not contiguous: every second element, or transposed."""
    if not isinstance(a, np.ndarray) or not a.ndim:
        return a
    if how == "gaps":
        return np.repeat(a, 2, axis=-1)[..., ::2]
    return np.ascontiguousarray(a.T).T
