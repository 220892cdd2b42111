"""Random programs, plain and compiled: ``python tests/stress/compile_programs.py [how many] [first number]``.

Of four kinds: whatever comes (``compile_random.py``), sequences that repeat, so that operations are put
off and run as plans with their backward (``compile_deferred.py``), such with what changes in place and with
state (``compile_stateful.py``), and tensors of all kinds with all that may happen to them
(``compile_mixed.py``). Prints how much went by plans, and the numbers of those that differ; exits 1 if there
are any.
"""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import compile_deferred
import compile_mixed
import compile_random
import compile_stateful

import framework as fw
from framework.jit import backward, deferral, plans

many = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
fw.set_num_threads(1)
warnings.simplefilter("ignore")
plans.PLAIN_CALLS = 0  # all calls of a program are looked at
plans.Trial = lambda: None  # and none are tried in another way
count = {"backward passes by plans": 0, "steps": 0, "sequences as plans": 0, "with backward": 0}


def counted(home, name, what):
    plain = getattr(home, name)

    def run(*args):
        count[what] += 1
        return plain(*args)
    setattr(home, name, run)


counted(backward.Plan, "run", "backward passes by plans")
counted(plans.Plans, "step", "steps")
counted(deferral.Session, "_weigh", "sequences as plans")
counted(deferral.BackwardPlan, "run", "with backward")
start, bad = time.perf_counter(), []
for number in range(first, first + many):
    for kind in (compile_random, compile_deferred, compile_mixed, compile_stateful):
        if kind.differs(number):
            bad.append((kind.__name__, number))
    if number % 5000 == 4999:
        print(f"{number + 1}: {len(bad)} differ, {time.perf_counter() - start:.0f} s", flush=True)
calls = fw._native.module.deferred_calls() if plans.possible() else 0
print(f"{many} programs of each kind from {first}: {', '.join(f'{n} {what}' for what, n in count.items())}, "
      f"{calls} calls put off, {len(bad)} programs differ {bad[:20]} ({time.perf_counter() - start:.0f} s)")
sys.exit(bool(bad))
