"""Every row of the sample table on a GPU in each dtype, beside the CPU (tests/device_dtypes.py).

    python tests/stress/cuda_dtypes.py [--dtypes float16 bfloat16] [--rows index_add ...]

On the real CuPy where there is a device, else on the stand-in for it, which refuses what CuPy refuses.
"""

import argparse
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def use_standin() -> None:
    """Let ``import cupy`` find the stand-in, unless there is a device."""
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
    except Exception:
        for name in [n for n in sys.modules if n.partition(".")[0] in ("cupy", "cupyx")]:
            del sys.modules[name]
        sys.path.insert(0, str(TESTS / "standin"))


def main() -> int:
    """Print each difference, and how many samples were looked at."""
    sys.path.insert(0, str(TESTS))
    use_standin()
    from device_dtypes import DTYPES, difference
    from table import ROWS, row_id
    from test_cuda import On

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", default=DTYPES)
    parser.add_argument("--rows", nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    looked = bad = 0
    for row in ROWS:
        for dtype in args.dtypes if not args.rows or row.name in args.rows else ():
            for sample in row.samples:
                looked += 1
                if problem := difference(row, sample, dtype, On):
                    bad += 1
                    print(f"{row_id(row)} [{sample.label}] {dtype}: {problem}", flush=True)
    print(f"{looked} samples, {bad} differ")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
