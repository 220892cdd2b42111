"""Scaling the loss, so that small gradients of float16 do not become 0, and undoing it before the step."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..backends import array_module
from ..errors import kind_of
from ..ops.language.words import all_finite
from ..ops.record.rounded import is_rounded
from ..quiet import quietly
from ..seam import is_watched
from ..tensor import Tensor, bump, wrap
from . import cuda
from .mode import _known, is_autocast_available

# where an optimizer stands since the last update()
_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class _Optimizer:
    """stage of one optimizer; found: whether a gradient of it is inf or nan, None if there is no gradient.

    On a GPU found is a number there, for which nobody waits.
    """

    def __init__(self) -> None:
        self.stage = _READY
        self.found: Any = None


class GradScaler:
    """Multiplies the loss by a factor that it adapts, and leaves out steps whose gradients overflow.

    Per iteration: ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``; before
    ``step``, ``scaler.unscale_(optimizer)`` where gradients are to be looked at or clipped. ``update``
    multiplies the factor by ``backoff_factor`` if a gradient of any optimizer was inf or nan, and by
    ``growth_factor`` after ``growth_interval`` iterations in a row without one. The factor is a float32
    number. On a GPU it stays there, and so does what was found in the gradients: an iteration waits for
    nothing where the optimizer has a kernel (``get_scale`` and ``state_dict`` wait). With
    ``enabled=False`` nothing is scaled, and ``step`` is the optimizer's own. bfloat16 and float32 need no
    scaling.

    Micikevicius et al., "Mixed Precision Training" (arXiv:1710.03740).

    >>> w = fw.ones(2, requires_grad=True)
    >>> optimizer, scaler = fw.optim.SGD([w], lr=0.5), fw.amp.GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach(), scaler.get_scale()
    (tensor([0., 0.]), 65536.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = _known(device, "GradScaler"), bool(enabled)
        if self._enabled and not is_autocast_available(self._device):
            warnings.warn(
                "GradScaler: there is no autocast for 'cuda' here: there is no GPU, so the scaler is "
                "disabled; pass device='cpu'",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled and not growth_factor > 1.0:
            raise ValueError(f"GradScaler: growth_factor must be above 1, got {growth_factor}")
        if self._enabled and not backoff_factor < 1.0:
            raise ValueError(f"GradScaler: backoff_factor must be below 1, got {backoff_factor}")
        self._scale, self._tracker = _float32(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._used = False
        self._held: cuda.Held | None = None  # factor and count, once they are on a GPU
        self._optimizers: dict[int, _Optimizer] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor times the factor, or a list or tuple of them.

        >>> fw.amp.GradScaler("cpu", init_scale=4.0).scale(fw.ones(1))
        tensor([4.])
        """
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, Tensor):
            # a tensor without dimensions: a loss of float16 becomes float32, which holds the product
            array = outputs._array
            if self._held is None:
                self._held = cuda.held(array, self._scale, self._tracker)
            held = self._held if outputs.is_cuda else None
            factor = np.asarray(self.get_scale(), np.float32) if held is None else held.factor(array)
            return outputs * wrap(factor)  # type: ignore[operator]
        if not isinstance(outputs, Iterable) or isinstance(outputs, (str, bytes)):
            raise ValueError(
                f"GradScaler.scale: outputs must be a Tensor or several of them, got {kind_of(outputs)}"
            )
        parts = map(self.scale, outputs)
        return type(outputs)(parts) if isinstance(outputs, (list, tuple)) else parts  # type: ignore[call-arg]

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, in place, once an iteration.

        Raises RuntimeError for a second time or after ``step``, ValueError for gradients of float16:
        parameters are to be float32.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        own = self._of(optimizer)
        if own.stage is _UNSCALED:
            raise RuntimeError(
                "GradScaler.unscale_: called a second time for this optimizer since the last "
                "update(); call update() once an iteration"
            )
        if own.stage is _STEPPED:
            raise RuntimeError(
                "GradScaler.unscale_: called after step(); call it between backward() and step()"
            )
        gradients = [
            p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        if any(g._array.dtype == np.float16 for g in gradients):
            raise ValueError(
                "GradScaler.unscale_: a gradient is float16, and dividing it would lose what "
                "scaling saved; keep parameters in float32 and use autocast"
            )
        found = None
        if self._held is not None and gradients:
            found = self._held.unscale([g._array for g in gradients])
            for g in gradients if found is not None else ():
                bump(g, "unscale_")
        if found is None:
            inverse = _float32(1.0 / self.get_scale())
            finite = [_unscaled(g, inverse) for g in gradients]
            found = not all(finite) if finite else None
        own.found, own.stage = found, _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()`` with the gradients unscaled; left out if one of them is inf or nan.

        Gives what ``optimizer.step`` gives, None where it is left out. Raises RuntimeError for a closure,
        a second time since the last ``update``, or if the optimizer has no gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or any(map(callable, args)):
            raise RuntimeError(
                "GradScaler.step: a closure is not supported: its gradients would not be unscaled; "
                "compute the loss first, or use enabled=False"
            )
        self._check_used("step")
        own = self._of(optimizer)
        if own.stage is _STEPPED:
            raise RuntimeError(
                "GradScaler.step: called a second time for this optimizer since the last update()"
            )
        if own.stage is _READY:
            self.unscale_(optimizer)
        if own.found is None:
            raise RuntimeError(
                "GradScaler.step: no parameter of this optimizer has a gradient; call "
                "scale(loss).backward() first"
            )
        can_skip = getattr(optimizer, "can_skip", None)
        if not isinstance(own.found, bool) and can_skip is not None and can_skip():
            result = optimizer.step_unless(own.found, *args, **kwargs)
        else:
            result = None if own.found else optimizer.step(*args, **kwargs)
        own.stage = _STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the factor, or set it to ``new_scale``; ends the iteration.

        Raises RuntimeError where no gradient was looked at since the last time.
        """
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            self._set(_one_number(new_scale), self._now()[1])
        else:
            found = [own.found for own in self._optimizers.values() if own.found is not None]
            if not found:
                raise RuntimeError(
                    "GradScaler.update: no gradients were looked at since the last update(); "
                    "call step() or unscale_() first"
                )
            if self._held is not None and not any(isinstance(f, bool) for f in found):
                self._held.adapt(found, self._growth_factor, self._backoff_factor, self._growth_interval)
            else:
                self._set(*self._following(any(map(bool, found))))
        self._optimizers.clear()

    def _following(self, overflowed: bool) -> tuple[float, int]:
        """Factor and count of the next iteration."""
        scale, tracker = self._now()
        if overflowed:
            return _float32(scale * self._backoff_factor), 0
        if tracker + 1 != self._growth_interval:
            return scale, tracker + 1
        grown = _float32(scale * self._growth_factor)
        return grown if math.isfinite(grown) else scale, 0

    def _now(self) -> tuple[float, int]:
        """Factor and count, for which the host waits where they are on a GPU."""
        return (self._scale, self._tracker) if self._held is None else self._held.read()

    def _set(self, scale: float, tracker: int) -> None:
        """Have others; they stay on the GPU until the next loss only where a graph has them."""
        self._scale, self._tracker = scale, tracker
        if self._held is not None and self._held.stays:
            self._held.write(scale, tracker)
        else:
            self._held = None

    def _of(self, optimizer: Any) -> _Optimizer:
        return self._optimizers.setdefault(id(optimizer), _Optimizer())

    def _check_used(self, name: str) -> None:
        if not self._used:
            raise RuntimeError(
                f"GradScaler.{name}: called before scale(); the loss must be scaler.scale(loss)"
            )

    # -- settings and state ----------------------------------------------------------------------

    def get_scale(self) -> float:
        """The factor; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._now()[0]

    def get_growth_factor(self) -> float:
        """By what the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the factor grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the factor is multiplied after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the factor is multiplied after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many iterations without overflow the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many iterations without overflow the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What a resumed training needs; empty where scaling is off. To be saved after ``update``.

        >>> sorted(fw.amp.GradScaler("cpu").state_dict())
        ['_growth_tracker', 'backoff_factor', 'growth_factor', 'growth_interval', 'scale']
        """
        if not self._enabled:
            return {}
        scale, tracker = self._now()
        return {
            "scale": scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken.

        Raises RuntimeError for the empty one of a disabled scaler, KeyError for one that lacks an entry;
        nothing is changed then.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: the dict is empty: it was saved by a scaler with "
                "enabled=False; make this one so, too, or start anew"
            )
        missing = self.state_dict().keys() - state_dict.keys()
        if missing:
            raise KeyError(f"GradScaler.load_state_dict: the dict lacks {sorted(missing)}")
        self._set(_float32(state_dict["scale"]), int(state_dict["_growth_tracker"]))
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise RuntimeError("GradScaler: it can be pickled only between iterations, after update()")
        scale, tracker = self._now()
        return {**self.__dict__, "_scale": scale, "_tracker": tracker, "_held": None}


def _float32(x: Any) -> float:
    """A number rounded to float32; too large a one is inf."""
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def _one_number(new_scale: Any) -> float:
    if isinstance(new_scale, Tensor):
        if new_scale.numel() != 1 or new_scale.requires_grad:
            raise RuntimeError(
                f"GradScaler.update: new_scale must be a number or a tensor of one element that "
                f"requires no grad, got shape {list(new_scale.shape)}"
            )
        new_scale = new_scale.item()
    return _float32(new_scale)


def _unscaled(gradient: Tensor, inverse: float) -> bool:
    """Multiply in place; whether all elements were finite."""
    g, xp = gradient._array, array_module(gradient._array)

    def run(write: bool) -> bool:
        finite = (xp is np and g.dtype.char in "fd" and all_finite(g)) or bool(xp.isfinite(g).all())
        if not write:
            pass
        elif is_rounded(g):
            g[...] = (g.astype(np.float32) * np.float32(inverse)).astype(g.dtype)
        else:
            xp.multiply(g, inverse, out=g)
        return finite

    if is_watched():
        finite = quietly(run, False)
        with no_grad():
            gradient.mul_(inverse)  # type: ignore[attr-defined]
        return finite
    finite = quietly(run, True)
    bump(gradient, "unscale_")
    return finite
