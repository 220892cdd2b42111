"""The output of library/example.c, from another processor, beside what Python computes here.

Lanes of vectors are added up in another order where there are more or fewer; what is printed is how far
the numbers are apart, in steps of the last bit.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from test_library import Numbers  # noqa: E402

import framework.nn.functional as F  # noqa: E402


def main() -> None:
    instructions, *words = Path(sys.argv[1]).read_text().split()
    there = np.array([float.fromhex(w) for w in words], np.float32)
    numbers = Numbers()
    x, w1, b1, w2, b2 = (numbers(*shape) for shape in ((9, 50), (37, 50), (37,), (10, 37), (10,)))
    here = F.softmax(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), 1).numpy().ravel()
    steps = np.abs(here.view(np.int32) - there.view(np.int32))
    x, w1, b1, w2, b2 = (t.double() for t in (x, w1, b1, w2, b2))
    exact = F.softmax(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), 1).numpy().ravel()
    error = [float(np.abs(y / exact - 1).max()) for y in (here, there)]
    same = np.count_nonzero(steps == 0)
    print(f"{instructions}: {same} of {steps.size} numbers are the same bits, the others at most "
          f"{steps.max()} steps of the last bit apart; largest relative error here {error[0]:.2g}, "
          f"there {error[1]:.2g}")
    if steps.max() > 64:
        sys.exit("arm_compare.py: further apart than the order of sums explains")


if __name__ == "__main__":
    main()
