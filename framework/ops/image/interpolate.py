"""Images in another size: nearest, linear, cubic and area interpolation."""

import math
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record import autocast
from ..record.args import floating, ntuple, tensor_arg
from ..record.planned import Step, planned, writes_graphs
from ..record.public import public
from ..record.whole import Whole
from .resample import Plan, resample

_MODES = {"nearest": ("nearest", (1, 2, 3)), "nearest-exact": ("nearest-exact", (1, 2, 3)),
          "area": ("area", (1, 2, 3)), "linear": ("linear", (1,)), "bilinear": ("linear", (2,)),
          "trilinear": ("linear", (3,)), "bicubic": ("cubic", (2,))}


@public("nn.functional", op=resample, deferred=True)
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """The image resized to ``size`` or by ``scale_factor``; it is (n, c, sizes...) with 1 to 3.

    mode: "nearest", "nearest-exact", "area" for any, "linear" for 1, "bilinear" and "bicubic" for 2,
    "trilinear" for 3 sizes. align_corners: the corner elements' centres stay at the corners (linear
    kinds and bicubic). antialias ("bilinear" and "bicubic"): where the image shrinks, an output is made
    of all inputs that it covers, not of its nearest only.
    Raises ShapeError or ValueError for what does not fit.

    >>> fw.nn.functional.interpolate(fw.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if autocast.used and mode != "area":
        input = autocast.in_float32_on_a_gpu(tensor_arg(input, "interpolate"))
    return _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


@planned
def _interpolate(input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None,
                 recompute: bool | None, antialias: bool) -> list[Step]:
    d = tensor_arg(input, "interpolate").ndim - 2
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias=True goes with mode='bilinear' or 'bicubic', got {mode!r}")
    kind, takes = _MODES[mode]
    if d not in takes:
        sizes = " or ".join(str(t + 2) for t in takes)
        raise ShapeError(f"interpolate: mode={mode!r} wants input of {sizes} dimensions (n, c, sizes...), "
                         f"got shape {list(input.shape)}")
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ValueError(f"interpolate: align_corners does not apply to mode={mode!r}")
    if kind in ("linear", "cubic", "area"):
        floating(input, "interpolate")
    out, steps = _target(input, d, size, scale_factor, recompute)
    if out == input.shape[2:] and all(step == 1.0 for step in steps):
        return []
    kind += "-smooth" if antialias else "-corners" if align_corners else ""
    if align_corners:
        steps = tuple([(n - 1) / (m - 1) if m > 1 else 0.0 for n, m in zip(input.shape[2:], out)])
    plans = tuple([Plan(kind, n, m, step) for n, m, step in zip(input.shape[2:], out, steps)])
    if writes_graphs():
        return [(_whole, 1, {"size": size, "scale_factor": scale_factor, "mode": mode, "out": out,
                             "align_corners": align_corners, "recompute": recompute, "antialias": antialias,
                             "plans": plans})]
    return _passes(plans)


def _passes(plans: tuple) -> list[Step]:
    """A step for each dimension whose size changes."""
    return [(resample.run, 1, {"dim": 2 + i, "plan": plan, "back": False})
            for i, plan in enumerate(plans) if plan.size != plan.out or plan.step != 1.0]


def _resized(input: Tensor, *, plans: tuple, **given: Any) -> Tensor:
    for run, _, settings in _passes(plans):
        input = run(input, **settings)
    return input


_whole = Whole("interpolate", "x", _resized,
               onnx="interpolated(x, size, scale_factor, mode, align_corners, recompute, antialias, out)",
               runtime="interpolated(x, scale_factor, plans)")


def _target(x: Tensor, d: int, size: Any, scale: Any, recompute: bool | None) -> tuple[tuple, tuple]:
    """The sizes asked for, and how many input elements make one output element."""
    if (size is None) == (scale is None):
        raise ValueError(f"interpolate: give either size or scale_factor, got size={size!r} and "
                         f"scale_factor={scale!r}")
    spatial = x.shape[2:]
    if size is not None:
        out = ntuple(size, d, "interpolate", "size")
        steps = tuple(n / max(m, 1) for n, m in zip(spatial, out))
    else:
        scales = tuple(scale) if isinstance(scale, (tuple, list)) else (scale,) * d
        if len(scales) != d:
            raise ValueError(f"interpolate: scale_factor must be a number or {d} of them, got {scale!r}")
        out = tuple(math.floor(n * s) for n, s in zip(spatial, scales))
        steps = tuple(n / max(m, 1) if recompute else 1 / s for n, m, s in zip(spatial, out, scales))
    if min(out) < 1 or min(spatial) < 1:
        raise ShapeError(f"interpolate: cannot resize {list(spatial)} to {list(out)}; sizes must be at "
                         f"least 1")
    return out, steps
