"""Every collective with every dtype, size and reduction on 1 to 4 ranks against NumPy, to the bit.

    python tests/stress/collectives.py                     # shm
    python tests/stress/collectives.py --backend mpi       # under the mpiexec beside this Python
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT

PROGRAM = """
import sys
import framework as fw, framework.distributed as dist
import test_distributed as tests
dist.init_process_group(sys.argv[1], timeout=300)
r, n = dist.get_rank(), dist.get_world_size()
tests.table(r, n, tests.DTYPES)
if n > 2:
    tests.together(r, n)
if n > 1 and sys.argv[1] == "shm":
    tests.long(r, n, None)
    tests.long(r, n, False)
if r == 0:
    print("right:", len(tests.DTYPES), "dtypes x", len(tests.SIZES), "sizes on", n, "ranks")
dist.destroy_process_group()
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=("shm", "mpi"), default="shm")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4])
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "program.py")
        program.write_text(PROGRAM)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
        for n in options.ranks:
            start = time.monotonic()
            done = subprocess.run([sys.executable, "-m", "framework.distributed.run", "--backend",
                                   options.backend, "-n", str(n), str(program), options.backend],
                                  capture_output=True, text=True, timeout=900, env=env)
            if done.returncode or "right:" not in done.stdout:
                wrong += 1
                print(f"{options.backend}, {n} ranks: exit code {done.returncode}\n{done.stderr[-3000:]}")
            else:
                said = done.stdout[done.stdout.index("right:"):].strip()
                print(f"{options.backend}, {said}, {time.monotonic() - start:.0f} s", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
