"""Random programs, plain and compiled: ``python tests/stress/compile_programs.py [how many] [first number]``.

Prints how many went by plans, and the numbers of those that differ; exits 1 if there are any.
"""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import compile_random

import framework as fw
from framework.jit import backward, plans

many = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
fw.set_num_threads(1)
warnings.simplefilter("ignore")
count = {"plans": 0, "steps": 0}
plain_run, plain_step = backward.Plan.run, plans.step


def run(self, *args):
    count["plans"] += 1
    return plain_run(self, *args)


def step(optimizer):
    count["steps"] += 1
    return plain_step(optimizer)


backward.Plan.run, plans.step = run, step
start, bad = time.perf_counter(), []
for number in range(first, first + many):
    if compile_random.differs(number):
        bad.append(number)
print(f"{many} programs from {first}: {count['plans']} backward passes by plans, {count['steps']} steps in "
      f"compiled functions, {len(bad)} programs differ {bad[:20]} ({time.perf_counter() - start:.0f} s)")
sys.exit(bool(bad))
