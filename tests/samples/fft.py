"""Rows of ops/fft.py."""

from typing import Any

import numpy as np

from .base import Sample, integers, normal, row

A, C, N = normal(3, 4), normal(3, 4, seed=1) + 1j * normal(3, 4, seed=2), integers(2, 3)


def _row(name: str, x: Any, *more: tuple[str, dict, dict]) -> None:
    """(label, our arguments, NumPy's)."""
    def sample(label: str, given: Any, ours: dict, theirs: dict) -> Sample:
        def ref(x: Any) -> Any:
            out = getattr(np.fft, name)(x, **theirs)
            return out
        return Sample(label, lambda M, x: getattr(M.fft, name)(x, **ours), (given,), ref, grad=False)
    row(name, sample("plain", x, {}, {}), *[sample(label, x, o, t) for label, o, t in more], namespace="fft",
        errors=[("list", lambda M: getattr(M.fft, name)([1.0]), TypeError, "list"),
                ("norm", lambda M: getattr(M.fft, name)(M.ones(2, 2), norm="x"), ValueError, "ortho"),
                ("grad", lambda M: getattr(M.fft, name)(M.ones(2, 2, requires_grad=True)), RuntimeError,
                 "detach")])


for _name, _x in (("fft", A), ("ifft", A), ("rfft", A), ("irfft", C)):
    _row(_name, _x, ("dim", {"dim": 0}, {"axis": 0}), ("n", {"n": 5}, {"n": 5}),
         ("ortho", {"norm": "ortho"}, {"norm": "ortho"}), ("short", {"n": 2, "norm": "forward"},
                                                           {"n": 2, "norm": "forward"}))
for _name, _x in (("fft2", A), ("ifft2", A), ("rfft2", A), ("irfft2", C)):
    _row(_name, _x, ("dims", {"dim": (1, 0)}, {"axes": (1, 0)}), ("s", {"s": (2, 5)}, {"s": (2, 5)}))
for _name, _x in (("fftn", C), ("ifftn", A), ("rfftn", A), ("irfftn", C)):
    _row(_name, _x, ("dim", {"dim": (0,)}, {"axes": (0,)}),
         ("s", {"s": (6,), "norm": "ortho"}, {"s": (6,), "axes": (1,), "norm": "ortho"}))
for _name in ("fftshift", "ifftshift"):
    def _call(M: Any, x: Any, name: str = _name) -> Any:
        return getattr(M.fft, name)(x)

    def _dim(M: Any, x: Any, name: str = _name) -> Any:
        return getattr(M.fft, name)(x, dim=0)
    _ref = getattr(np.fft, _name)
    row(_name, Sample("all", _call, (A,), _ref),
        Sample("dim", _dim, (A,), lambda x, f=_ref: f(x, axes=0)),
        Sample("int", _call, (N,), getattr(np.fft, _name)), namespace="fft",
        errors=[("dim", lambda M, f=_call: M.fft.fftshift(M.ones(2), dim=3), IndexError, "dim=3")])
