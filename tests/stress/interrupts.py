"""Ctrl-C at random times: one traceback, exit by SIGINT, no worker left.

The signal goes to the whole process group, as from a terminal.

    python tests/stress/interrupts.py --interrupts 100 [--start-method spawn] [--seed 0]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from common import Samples, alive, children, finish, fw, until


def victim(method, workers, persistent):
    """The process that is interrupted."""
    loader = fw.data.DataLoader(Samples(n=40, seconds=0.002), 4, num_workers=workers, shuffle=True,
                                multiprocessing_context=method if workers else None,
                                persistent_workers=persistent and workers > 0)
    print("begun", flush=True)
    while True:
        for n, _ in enumerate(loader):
            if n == 5:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interrupts", type=int, default=100)
    parser.add_argument("--start-method", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victim", nargs=2, type=int)
    options = parser.parse_args()
    if options.victim:
        victim(options.start_method, options.victim[0], bool(options.victim[1]))
    random_, wrong, slowest = random.Random(options.seed), [], 0.0
    method = ["--start-method", options.start_method] if options.start_method else []
    for _ in range(options.interrupts):
        process = subprocess.Popen([sys.executable, __file__, *method, "--victim",
                                    str(random_.choice([0, 1, 2, 4])), str(random_.randrange(2))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        process.stdout.readline()
        time.sleep(random_.uniform(0, 0.4))
        workers = children(process.pid)
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        try:
            errors = process.communicate(timeout=10)[1].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            errors = process.communicate()[1].decode()
            wrong.append(f"does not end: {errors[-300:]}")
            continue
        slowest = max(slowest, time.monotonic() - start)
        count = errors.count("Traceback (most recent call last)")
        if process.returncode != -signal.SIGINT or count != 1 or "Exception ignored" in errors:
            wrong.append(f"exit {process.returncode}, {count} tracebacks: {errors[-1500:]}")
        if until(lambda: not any(map(alive, workers)), 5) is None:
            wrong.append("a worker is left")
    finish(not wrong,
           f"interrupts: {options.interrupts}, each with one traceback and exit by SIGINT, the slowest end "
           f"{slowest:.2f} s; {len(wrong)} wrong" + "".join(f"\n{w}" for w in wrong[:3]))


if __name__ == "__main__":
    main()
