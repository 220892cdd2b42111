"""How a public function asks whether to choose its dtype: what ``amp`` puts here for a thread answers.

``public(autocast=...)`` says how an operation behaves in a block of autocast, as in PyTorch. "lower": in the
block's dtype (products, which sum up in float32 whatever they are given). "float32": in that (sums of many
small terms, and what has no short floating form). "widest": in that of its tensors' dtypes. Or a function of
the arguments that gives one of these: ``by_place`` where PyTorch's lists for CUDA and for the CPU differ.
A function that says nothing runs in the dtypes that it gets. Softmax, norms, sums and exponentials, which
the list for CUDA has and that for the CPU has not, ask by ``in_float32_on_a_gpu``, elementwise records where
they say so.
``tests/test_amp.py`` compares with PyTorch.

While no block was ever opened, a call pays for one test of a global; then for one look at its thread.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ... import _native
from ..._native import Local
from .entries import entered

Policy = str | Callable[..., str]

used = False  # whether a block was ever opened in this process


class _Thread(Local):
    """choose: ``choose(policy, function, args, settings)`` calls the function in the dtype that it chooses.
    None outside of blocks, and while an operation runs: what that calls is part of it."""

    choose: Callable | None = None


thread = _Thread()


def use() -> None:
    """A block is about to be opened."""
    global used
    used = True
    if hasattr(_native.module, "choose_from_here"):
        _native.module.choose_from_here(thread)


def choosing(function: Callable, policy: Policy) -> Callable:
    """``function``, choosing its dtype where its thread is in a block."""
    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        if used and (choose := thread.choose) is not None:
            return choose(policy, function, args, settings)
        return function(*args, **settings) if settings else function(*args)
    call.plain = function  # type: ignore[attr-defined]
    return entered(call, function)


def by_place(on_a_gpu: str, on_the_cpu: str = "as given") -> Policy:
    """The policy of a function by where its first tensor lies."""
    def policy(*args: Any, **settings: Any) -> str:
        for x in (*args, *settings.values()):
            if hasattr(x, "is_cuda"):
                return on_a_gpu if x.is_cuda else on_the_cpu
        return on_the_cpu
    return policy


def without_choosing(function: Callable) -> Callable:
    """The function inside of ``choosing``, to be called while ``used`` is false; any other function
    itself."""
    plain = getattr(function, "plain", None)  # ``wraps`` hands it on: only the outermost layer may go
    return plain if plain is not None and function.__wrapped__ is plain else function  # type: ignore


def recurrent(forward: Callable) -> Callable:
    """``forward`` of a recurrent layer or cell: its input has the weights' dtype until its record runs."""
    return choosing(forward, "recurrent")


def run_lowered(op: Any, *inputs: Any, **settings: Any) -> Any:
    """``op.run(...)``, in the dtype of the block where its thread is in one."""
    if used and (choose := thread.choose) is not None:
        return choose("lower", op.run, inputs, settings)
    return op.run(*inputs, **settings)


def _itself(x: Any) -> Any:
    return x


def _these(*xs: Any) -> tuple:
    return xs


def on_a_gpu(policy: str, *xs: Any) -> tuple:
    """Tensors of a GPU as a policy wants them in a block; to be asked for once ``used`` is true."""
    choose = thread.choose
    return xs if choose is None or not getattr(xs[0], "is_cuda", False) else choose(policy, _these, xs, {})


def in_float32_on_a_gpu(x: Any) -> Any:
    """A tensor of a GPU in float32 where its thread is in a block; to be asked for once ``used`` is true."""
    choose = thread.choose
    return x if choose is None else choose("float32 on a GPU", _itself, (x,), {})


def never(function: Callable) -> Callable:
    """A function that runs in the dtypes it gets, also in blocks: a form that works in place."""
    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        return as_given(function, *args, **settings) if used else function(*args, **settings)
    return entered(call, function)


def as_given(function: Callable, *args: Any, **settings: Any) -> Any:
    """``function(...)`` outside of blocks."""
    before, thread.choose = thread.choose, None
    try:
        return function(*args, **settings)
    finally:
        thread.choose = before
