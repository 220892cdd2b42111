"""Rows of ops/signal/fft.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError

from ..base import Sample, integers, normal, row

A, C, N = normal(3, 4), normal(3, 4, seed=1) + 1j * normal(3, 4, seed=2), integers(2, 3)


def _turned_norm(norm: str | None) -> str:
    return {"ortho": "ortho", "forward": "backward"}.get(norm or "", "forward")


def _mirrored(back: bool) -> Any:
    """NumPy's hfft and ihfft of several dimensions, which it has not."""
    def run(x: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
        if back:
            return np.conj(np.fft.rfftn(x, s, axes, _turned_norm(norm)))
        return np.fft.irfftn(np.conj(x), s, axes, _turned_norm(norm))
    return run


def _two(function: Any) -> Any:
    return lambda x, s=None, axes=(-2, -1), norm=None: function(x, s, axes, norm)


REFERENCES = {"hfftn": _mirrored(False), "ihfftn": _mirrored(True), "hfft2": _two(_mirrored(False)),
              "ihfft2": _two(_mirrored(True))}


def _row(name: str, inputs: tuple, *more: tuple[str, dict, dict]) -> None:
    """(label, our arguments, NumPy's), each on every input."""
    reference = REFERENCES.get(name) or getattr(np.fft, name)

    def sample(label: str, x: Any, ours: dict, theirs: dict) -> Sample:
        return Sample(f"{label}, {x.dtype} {x.shape}", lambda M, x: getattr(M.fft, name)(x, **ours), (x,),
                      lambda x: reference(x, **theirs))
    errors = [("list", lambda M: getattr(M.fft, name)([1.0]), TypeError, "list"),
              ("norm", lambda M: getattr(M.fft, name)(M.ones(2, 2), norm="x"), ValueError, "ortho"),
              ("half", lambda M: getattr(M.fft, name)(M.ones(2, 2, dtype=M.float16)), DTypeError, "float16"),
              ("dim", lambda M: getattr(M.fft, name)(M.ones(2, 2), dim=5), IndexError, "dim=5")]
    if name[0] == "r" or name.startswith("ih"):
        errors.append(("complex", lambda M: getattr(M.fft, name)(M.ones(2, 2) * 1j), DTypeError, "real"))
    row(name, *[sample(label, x, ours, theirs) for x in inputs for label, ours, theirs in
                (("plain", {}, {}), *more)], namespace="fft", errors=errors)


for _name, _x in (("fft", (A, C)), ("ifft", (A, C)), ("rfft", (A, A[:, :3])), ("irfft", (C, A)),
                  ("hfft", (C, A)), ("ihfft", (A, A[:, :3]))):
    _row(_name, _x, ("dim", {"dim": 0}, {"axis": 0}), ("n", {"n": 5}, {"n": 5}),
         ("ortho", {"norm": "ortho"}, {"norm": "ortho"}), ("short", {"n": 2, "norm": "forward"},
                                                           {"n": 2, "norm": "forward"}))
for _name, _x in (("fft2", (A,)), ("ifft2", (C,)), ("rfft2", (A,)), ("irfft2", (C,)), ("hfft2", (C,)),
                  ("ihfft2", (A,))):
    _row(_name, _x, ("dims", {"dim": (1, 0)}, {"axes": (1, 0)}), ("s", {"s": (2, 5)}, {"s": (2, 5)}))
for _name, _x in (("fftn", (C,)), ("ifftn", (A,)), ("rfftn", (A,)), ("irfftn", (C,)), ("hfftn", (C,)),
                  ("ihfftn", (A,))):
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
for _name in ("fftfreq", "rfftfreq"):
    def _frequencies(M: Any, n: int, d: float, name: str = _name) -> Any:
        return getattr(M.fft, name)(n, d, dtype=M.float64)

    def _numpys(n: int, d: float, name: str = _name) -> Any:
        return getattr(np.fft, name)(n, d)
    row(_name, *[Sample(f"{n} {d}", lambda M, n=n, d=d, f=_frequencies: f(M, n, d), (),
                        lambda n=n, d=d, f=_numpys: f(n, d)) for n, d in ((1, 1.0), (4, 0.5), (5, 2.0))],
        namespace="fft", errors=[("none", lambda M, f=_frequencies: f(M, 0, 1.0), ValueError, "n=0"),
                                 ("no step", lambda M, f=_frequencies: f(M, 4, 0.0), ValueError, "d=0.0")])
