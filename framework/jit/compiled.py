"""``framework.compile``: a function whose backward passes and optimizer steps run as plans, with eager's
results.

Python runs on every call, so nothing of it is baked in: branches on values, globals, clocks, prints,
exceptions are where they stand. What a compiled call saves is what the framework would find out again each
time (see ``docs/compile.md``).
"""

import functools
import os
from collections.abc import Callable
from copy import deepcopy
from time import perf_counter
from typing import Any

from .. import _native
from ..autograd.mode import state
from ..nn import Module
from .plans import Plans
from .trial import PLAIN, PUT_OFF

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("framework", "inductor", "eager", "aot_eager")


def is_compiling() -> bool:
    """Whether a compiled function is running in this thread.

    >>> fw.compiler.is_compiling()
    False
    >>> fw.compile(fw.compiler.is_compiling)()
    True
    """
    return state.compiled is not None


class _Called:
    """Without the native side: every call is Python's."""

    _served = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)  # type: ignore[attr-defined]

    def _straight(self, now: Any) -> None:
        pass

    def _put_off(self, now: Any, parts: tuple) -> None:
        pass


# calls ``_call``, or does the same quickly
_Base: Any = getattr(_native.module, "CompiledCall", _Called)
if _Base is not _Called:
    _native.module.set_up_compiled(state)


class CompiledFunction(_Base):
    """What ``compile`` makes of a function: called like it, with its name, and ``explain()``."""

    def __init__(self, fn: Callable, settings: dict[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._settings = fn, settings
        self._plans = Plans(strict=settings["strict"])

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if state.compiled is not None:  # inside another compiled function, whose plans serve
            return self._fn(*args, **kwargs)
        plans = self._plans
        now = state.compiled = plans.now
        now.calls += 1
        try:
            if now.direct:  # nothing is put off any more
                self._straight(now)
                return self._fn(*args, **kwargs)
            if plans.trial is not None and (way := plans.trial.way(plans.calls)) is not None:
                return self._timed(way, args, kwargs)
            session = plans.session()
            if session is not None:
                result = session.call(self._fn, args, kwargs)
                if plans.trial is None and (parts := session.ready()) is not None:
                    self._put_off(plans, parts)
                return result
            return self._fn(*args, **kwargs)
        finally:
            state.compiled = None

    def _timed(self, way: int, args: tuple, kwargs: dict) -> Any:
        """A call whose time tells whether this way pays; see ``trial.py``."""
        plans = self._plans
        trial: Any = plans.trial
        start = perf_counter()
        session = plans.session() if way == PUT_OFF else None
        if way == PLAIN:
            state.compiled = plans.plain
        result = self._fn(*args, **kwargs) if session is None else session.call(self._fn, args, kwargs)
        trial.add(way, perf_counter() - start)
        plans.settle_way()
        return result

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """As a method: bound to the object."""
        me: Any = self
        return me if owner is None else functools.partial(me, owner)

    def explain(self) -> str:
        """What was planned, how often a plan served, and why not where it did not."""
        return f"compiled {getattr(self._fn, '__qualname__', self._fn)}\n{self._plans.explain(self._served)}"

    def __reduce__(self) -> tuple:
        return CompiledFunction, (self._fn, self._settings)

    def __deepcopy__(self, memo: dict) -> "CompiledFunction":
        return CompiledFunction(deepcopy(self._fn, memo), self._settings)

    def __repr__(self) -> str:
        return f"<compiled {self._fn!r}>"


class OptimizedModule(Module):
    """What ``compile`` makes of a module: its calls are compiled, all else is the module's (``_orig_mod``).

    As in PyTorch, names in its ``state_dict`` begin with ``_orig_mod.``; save that of the module itself.
    """

    def __init__(self, module: Module, settings: dict[str, Any]) -> None:
        super().__init__()
        self._orig_mod = module
        d = self.__dict__
        del d["training"]  # that of the module is meant
        d["_settings"], d["_compiled"] = settings, CompiledFunction(module.__call__, settings)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._compiled(*args, **kwargs)

    def explain(self) -> str:
        """What was planned, how often a plan served, and why not where it did not."""
        return self._compiled.explain()

    def __getattr__(self, name: str) -> Any:
        inside = self.__dict__.get("_modules", {}).get("_orig_mod")
        return super().__getattr__(name) if inside is None else getattr(inside, name)

    def __setattr__(self, name: str, value: Any) -> None:
        inside = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inside is None or name in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(inside, name, value)

    def __getitem__(self, key: Any) -> Any:
        inside: Any = self._orig_mod
        return inside[key]

    def __deepcopy__(self, memo: dict) -> "OptimizedModule":
        memo[id(self)] = copy = OptimizedModule(deepcopy(self._orig_mod, memo), self._settings)
        return copy

    def __reduce__(self) -> tuple:
        return OptimizedModule, (self._orig_mod, self._settings)


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "framework",
            mode: str | None = None, options: dict | None = None, disable: bool = False,
            strict: bool = False) -> Any:
    """The function or module with compiled calls, which give what plain calls give, bit for bit.

    model: a function, method or Module; without it, a decorator. strict: raise where a backward or a step
    cannot be planned, instead of running it as it is; ``fullgraph=True`` says the same. disable: give
    ``model`` back. Python runs on every call, so there is nothing to specialise: ``dynamic`` and ``options``
    change nothing, and every ``mode`` and the ``backend`` "inductor" mean the one compiler that is here;
    ``backend="eager"`` (and "aot_eager") runs things as they are. A backend that is a function, which
    PyTorch would hand a graph, is refused: ``fw.jit.trace`` gives one. ``FRAMEWORK_COMPILE=off`` in the
    environment switches compilation off.

    Raises TypeError for what cannot be called, ValueError for a mode or backend that PyTorch does not have
    either. See ``docs/compile.md``.

    >>> @fw.compile
    ... def step(w, x):
    ...     loss = (w * x).sum().square()
    ...     loss.backward()
    ...     return loss
    >>> w = fw.ones(2, requires_grad=True)
    >>> step(w, fw.tensor([1.0, 2.0]))
    tensor(9., grad_fn=<square>)
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                 options=options, disable=disable, strict=strict)
    if not callable(model):
        raise TypeError(f"compile: wanted a function or module, got {type(model).__name__}")
    if mode not in (None, *MODES):
        raise ValueError(f"compile: mode must be one of {', '.join(MODES)}; got {mode!r}")
    if callable(backend):
        raise TypeError("compile: a backend of one's own is handed graphs by PyTorch; here Python runs on "
                        "every call and there is none. framework.jit.trace gives the graph of one run")
    if backend not in BACKENDS:
        raise ValueError(f"compile: backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    if disable or backend in BACKENDS[2:] or os.environ.get("FRAMEWORK_COMPILE", "").lower() in ("off", "0"):
        return model
    settings = {"strict": bool(strict or fullgraph)}
    if isinstance(model, OptimizedModule):
        return model
    kind: Any = OptimizedModule if isinstance(model, Module) else CompiledFunction
    return kind(model, settings)


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Callable:
    """The function, which runs uncompiled also inside compiled ones. Without one, a decorator.

    >>> @fw.compiler.disable
    ... def plain():
    ...     return fw.compiler.is_compiling()
    >>> fw.compile(plain)()
    False
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        before, state.compiled = state.compiled, None
        try:
            return fn(*args, **kwargs)
        finally:
            state.compiled = before
    return uncompiled


def script(obj: Any, *args: Any, **settings: Any) -> Any:
    """Compile: a function is what ``framework.compile`` makes of it, a module is compiled in place, a class
    is itself.

    The other arguments of PyTorch are taken and change nothing; there is no TorchScript, Python runs on
    every call.

    >>> fw.jit.script(lambda x: x + 1)(fw.zeros(1))
    tensor([1.])
    """
    if isinstance(obj, Module):
        if not isinstance(obj.forward, CompiledFunction):
            obj.compile()
        return obj
    return obj if isinstance(obj, type) or not callable(obj) else compile(obj)
