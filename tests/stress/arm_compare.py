"""The output of library/example.c, from another processor, beside what Python computes here.

Lanes of vectors are added up in another order where there are more or fewer; what is printed is how far
the numbers are apart, in steps of the last bit. With ``--same`` Python runs on that processor, too: the bits
of example.c and of kernels.c must be those of Python.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from test_library import Numbers, calls_in_python  # noqa: E402

import framework.nn.functional as F  # noqa: E402


def network():
    """The operands of example.c."""
    numbers = Numbers()
    return [numbers(*shape) for shape in ((9, 50), (37, 50), (37,), (10, 37), (10,))]


def answers(x, w1, b1, w2, b2):
    return F.softmax(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), 1).numpy().ravel()


def compare_here(example, kernels) -> None:
    """Exits with an error where one bit differs."""
    _, *words = Path(example).read_text().split()
    apart = [] if [float.fromhex(w) for w in words] == answers(*network()).tolist() else ["example.c"]
    said = [line.split() for line in Path(kernels).read_text().splitlines()]
    wanted = list(calls_in_python())
    for (name, *words), (call, tensor) in zip(said, wanted, strict=True):
        read = float.fromhex if tensor.is_floating_point() else int
        if name != call or [read(w) for w in words] != tensor.numpy().ravel().tolist():
            apart.append(name)
    print(f"example.c and {len(said)} calls of kernels.c: " +
          (f"other bits than Python's: {', '.join(apart)}" if apart else "the bits of Python"))
    sys.exit(bool(apart))


def main() -> None:
    if sys.argv[1] == "--same":
        compare_here(*sys.argv[2:])
    instructions, *words = Path(sys.argv[1]).read_text().split()
    there = np.array([float.fromhex(w) for w in words], np.float32)
    operands = network()
    here = answers(*operands)
    steps = np.abs(here.view(np.int32) - there.view(np.int32))
    exact = answers(*(t.double() for t in operands))
    error = [float(np.abs(y / exact - 1).max()) for y in (here, there)]
    same = np.count_nonzero(steps == 0)
    print(f"{instructions}: {same} of {steps.size} numbers are the same bits, the others at most "
          f"{steps.max()} steps of the last bit apart; largest relative error here {error[0]:.2g}, "
          f"there {error[1]:.2g}")
    if steps.max() > 64:
        sys.exit("arm_compare.py: further apart than the order of sums explains")


if __name__ == "__main__":
    main()
