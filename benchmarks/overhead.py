"""Overhead per recorded op, beside PyTorch in the same run, and the time to import.

    python benchmarks/overhead.py [further options of python -m benchmarks]

Additions on 10x20 numbers with a graph, forward and backward, and a few more small things.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])    # the repository instead of this folder

from benchmarks.__main__ import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["--only", "overhead", "import", *sys.argv[1:]]))
