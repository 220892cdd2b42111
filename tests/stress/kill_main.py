"""Kill the main process at random times: within 5 s no worker is left, and /dev/shm is as before.

    python tests/stress/kill_main.py --kills 50 [--start-method spawn] [--seed 0]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from common import Samples, alive, children, finish, fw, shared_files, until


def victim(method, workers, persistent):
    """The process that is killed: epochs without end."""
    loader = fw.data.DataLoader(Samples(seconds=0.003), 4, num_workers=workers, shuffle=True,
                                multiprocessing_context=method, persistent_workers=persistent)
    print("begun", flush=True)
    while True:
        for _ in loader:
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--start-method", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victim", nargs=2, type=int)
    options = parser.parse_args()
    if options.victim:
        victim(options.start_method, options.victim[0], bool(options.victim[1]))
    random_, before, wrong, slowest, seen = random.Random(options.seed), shared_files(), [], 0.0, 0
    method = ["--start-method", options.start_method] if options.start_method else []
    for _ in range(options.kills):
        process = subprocess.Popen([sys.executable, __file__, *method, "--victim",
                                    str(random_.choice([1, 2, 4, 8])), str(random_.randrange(2))],
                                   stdout=subprocess.PIPE, start_new_session=True)
        if process.stdout.readline() != b"begun\n":
            wrong.append(f"the process ended by itself with {process.wait()}")
            process.stdout.close()
            continue
        time.sleep(random_.uniform(0, 0.5))
        workers = children(process.pid)
        workers += [w for p in workers for w in children(p)]
        seen += len(workers)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        took = until(lambda: not any(map(alive, workers)), 5)
        if took is None:
            wrong.append(f"{sum(map(alive, workers))} workers left")
        slowest = max(slowest, took or 0.0)
    more = shared_files() - before
    finish(not wrong and not more,
           f"kill_main: {options.kills} kills with {seen} workers, the last worker gone after at most "
           f"{slowest:.2f} s, {len(more)} new names in /dev/shm; {wrong or 'nothing wrong'}")


if __name__ == "__main__":
    main()
