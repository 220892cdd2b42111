"""Calls of sizes and dtypes that the table of operations has not, beside PyTorch.

    python -m benchmarks.shapes [TEXT] [--threads N] [--above RATIO]

``--ops`` takes every function at three sizes of one form: what is quick with rows of 4 numbers may be slow
with rows of 64, and a table of one dtype does not show what two of them cost. ``shapes.txt`` has lines of
calls as programs make them: ``what is made first :: the call``, where M is the module, F its functions, ``R``
makes random numbers, ``rg`` those that require grad, and ``G`` gives gradients. TEXT: only lines that hold
it. Each is the fastest of several calls, taken in turns; printed are those above a ratio (1), slowest first.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .ops import Case, Kind, Timed, summary, timed

FIRST = "R, G = M.rand, M.autograd.grad\nrg = lambda *shape: R(*shape, requires_grad=True)\n"
SECONDS, ROUNDS = 0.05, 5


def lines(text: str = "") -> list[str]:
    """The calls, or those that hold a text."""
    found = Path(__file__).with_name("shapes.txt").read_text().splitlines()
    return [line for line in found if line.strip() and line[0] != "#" and text in line]


def call_of(line: str, M: ModuleType) -> Callable[[], Any]:
    """The call of a line with a module's tensors, which always are the same numbers."""
    setup, _, call = f" {line}".rpartition(" :: ")
    names = {"M": M, "F": M.nn.functional, "nn": M.nn}
    M.manual_seed(0)
    exec(FIRST + setup.strip(), names)
    return eval(f"lambda: {call.strip()}", names)  # type: ignore[no-any-return]


def measured(ours: ModuleType, theirs: ModuleType, text: str = "") -> Iterator[Timed]:
    """Line by line. One above 0.95 is timed once more, both sides: it may have been the machine."""
    for line in lines(text):
        case = Case(Kind(line, "", "", "", ""), call_of(line, ours), call_of(line, theirs))
        found = [timed(case, ROUNDS, SECONDS)]
        if found[0].ratio > 0.95:
            found.append(timed(case, 2 * ROUNDS, 2 * SECONDS))
        yield Timed(case.kind, min(t.ours for t in found), min(t.theirs for t in found))


def main() -> None:
    """Print the rows above a ratio, and the summary."""
    parser = argparse.ArgumentParser("python -m benchmarks.shapes", description=__doc__.partition("\n")[0])
    parser.add_argument("text", nargs="?", default="", help="only lines that hold it")
    parser.add_argument("--threads", type=int, default=1, help="of both modules (1)")
    parser.add_argument("--above", type=float, default=1.0, metavar="RATIO", help="what is printed (1)")
    options = parser.parse_args()
    import torch

    import framework as fw
    import framework.nn.functional

    fw.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sorted(measured(fw, torch, options.text), key=lambda row: -row.ratio)
    print("| ratio | call | us | PyTorch, us |\n| --- | --- | --- | --- |")
    for row in found:
        if row.ratio > options.above:
            print(f"| {row.ratio:.2f} | `{row.kind.name}` | {row.ours * 1e6:.1f} | {row.theirs * 1e6:.1f} |")
    print(f"\n{summary(found)}")


if __name__ == "__main__":
    main()
