"""Kill random workers at random times: each time WorkerDied within 2 s, no wrong batch, the next epoch whole.

    python tests/stress/kill_workers.py --kills 200 [--start-method spawn] [--seed 0]
"""

import argparse
import multiprocessing
import os
import random
import signal
import threading
import time

from common import Samples, descriptors, finish, fw, until, whole

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]


def one(random_, loader, slowest):
    """One epoch with a kill in it; (how long the error took, what was wrong)."""
    it, killed = iter(loader), {}

    def kill():
        victims = multiprocessing.active_children()
        if victims:
            victim = random_.choice(victims)
            killed.update(pid=victim.pid, at=time.monotonic())
            os.kill(victim.pid, random_.choice(SIGNALS))

    timer = threading.Timer(random_.uniform(0, 0.15), kill)
    timer.start()
    try:
        for batch in it:
            if not whole(batch):
                return None, "a wrong batch"
        timer.join()
        return None, "" if not killed else "late"
    except fw.data.WorkerDied as error:
        took = time.monotonic() - killed["at"]
        if error.pid != killed["pid"]:
            return took, f"{error.pid} told, {killed['pid']} killed"
        return took, "" if took < slowest else f"took {took:.2f} s"
    finally:
        timer.cancel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--start-method", default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random_ = random.Random(options.seed)
    told, late, wrong, slowest = 0, 0, [], 0.0
    list(fw.data.DataLoader(Samples(4), 4, num_workers=1, multiprocessing_context=options.start_method))
    before = descriptors()  # with those of the helpers that the start method needs
    start = time.monotonic()
    while told + late < options.kills and len(wrong) < 5:
        loader = fw.data.DataLoader(Samples(), 4, num_workers=random_.choice([1, 2, 4]), shuffle=True,
                                    persistent_workers=random_.random() < 0.3,
                                    in_order=random_.random() < 0.7, timeout=20,
                                    multiprocessing_context=options.start_method)
        took, trouble = one(random_, loader, 2.0)
        if trouble == "late":  # the kill came after the last batch was there
            late += 1
        elif trouble:
            wrong.append(trouble)
        elif took is not None:
            told, slowest = told + 1, max(slowest, took)
            if told % 10 == 0 and sum(whole(b) * len(b[0]) for b in loader) != 400:
                wrong.append("the next epoch is not whole")
        del loader
        if until(lambda: not multiprocessing.active_children(), 2) is None:
            wrong.append("a worker is left")
    leaked = descriptors() - before
    finish(not wrong and leaked <= 0,
           f"kill_workers: {told} told, {late} after the last batch, slowest error {slowest:.2f} s, "
           f"{leaked} descriptors more, {time.monotonic() - start:.0f} s; {wrong or 'nothing wrong'}")


if __name__ == "__main__":
    main()
