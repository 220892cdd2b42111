"""Every method in place on few numbers, beside PyTorch: ``python -m benchmarks.in_place [--all]``.

The calls of ``--ops`` that work in place get a copy of their inputs first, which hides what they take
themselves. Here each method of Tensor whose name ends with an underscore is called again and again on one
tensor of 2x3 numbers, with a few kinds of arguments, where both libraries take them. Processor time of one
thread, the quickest of some rounds taken in turns; printed are those above 1, slowest ratio first, and the
calls that only PyTorch takes.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import framework as fw

FLOATS, WHOLE = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.5]], [[3, 2, 1], [1, 2, 5]]
ARGUMENTS: tuple[tuple[Any, ...], ...] = ((), (0.5,), (2,), (0, 1), (0.1, 0.9), ("like",), ("like", "like"))
OF_MEMORY = {"resize_", "set_", "share_memory_", "resize_as_", "sparse_resize_", "sparse_resize_and_clear_"}
GROWING = {"unsqueeze_"}  # a dimension with each call
CALLS = 2000


def _seconds(call: Callable, args: tuple) -> float:
    start = time.thread_time()
    for _ in range(CALLS):
        call(*args)
    return (time.thread_time() - start) / CALLS


def _side(M: Any, name: str, numbers: list, arguments: tuple) -> tuple[Callable, tuple] | None:
    """The method of a tensor and its arguments; None if it does not take them."""
    args = tuple([M.tensor(numbers) if a == "like" else a for a in arguments])
    call = getattr(M.tensor(numbers), name)
    try:
        call(*args)
    except Exception:  # whatever they say of such arguments
        return None
    return call, args


def measured(torch: Any, rounds: int = 7) -> tuple[list[tuple[float, str, float, float]], list[str]]:
    """(ratio, call, seconds of ours, of PyTorch) of every call that both take, slowest ratio first; the calls
    that only PyTorch takes."""
    found, refused = [], []
    names = [n for n in dir(fw.Tensor) if n.endswith("_") and n[0] != "_" and hasattr(torch.Tensor, n)]
    for name in names:
        if name in OF_MEMORY | GROWING:
            continue
        for numbers in (FLOATS, WHOLE):
            for arguments in ARGUMENTS:
                kind = "float" if numbers is FLOATS else "int"
                shown = f"{name}({', '.join(map(str, arguments))}) of {kind}"
                ours, theirs = (_side(M, name, numbers, arguments) for M in (fw, torch))
                if ours is None or theirs is None:
                    refused += [shown] if theirs is not None else []
                    continue
                best = [math.inf, math.inf]
                for _ in range(rounds):
                    for i, side in enumerate((ours, theirs)):
                        best[i] = min(best[i], _seconds(*side))
                found.append((best[0] / best[1], shown, *best))
    return sorted(found, reverse=True), refused


def main(all_of_them: bool = False) -> None:
    """Print the table and its summary."""
    import torch

    fw.set_num_threads(1)
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, refused = measured(torch)
    print("| ratio | call | us | PyTorch, us |\n| --- | --- | --- | --- |")
    for ratio, shown, ours, theirs in found:
        if all_of_them or ratio > 1:
            print(f"| {ratio:.2f} | `{shown}` | {ours * 1e6:.2f} | {theirs * 1e6:.2f} |")
    mean = math.exp(sum(math.log(r[0]) for r in found) / len(found))
    above = ", ".join(f"{sum(r[0] > most for r in found)} above {most:g}" for most in (1.0, 1.5, 2.0))
    print(f"\n{len(found)} calls, geometric mean {mean:.2f}, {above}")
    print(f"only PyTorch takes {len(refused)}: {', '.join(refused)}")


if __name__ == "__main__":
    main("--all" in sys.argv[1:])
