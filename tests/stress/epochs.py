"""Many epochs: descriptors, threads, children and memory stay flat.

    python tests/stress/epochs.py --epochs 50 [--threads]
"""

import argparse
import gc
import multiprocessing
import threading

from common import Samples, descriptors, finish, fw, resident, shared_files, whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--threads", action="store_true")
    options = parser.parse_args()
    kind = "thread" if options.threads else "process"
    kept = fw.data.DataLoader(Samples(200, 0), 8, num_workers=2, persistent_workers=True, worker_type=kind)
    fresh = fw.data.DataLoader(Samples(200, 0), 8, num_workers=2, shuffle=True, worker_type=kind)
    before, rows, good = shared_files(), [], True
    for epoch in range(options.epochs):
        for loader in (kept, fresh):
            for n, batch in enumerate(loader):
                good = good and whole(batch)
                if epoch % 5 == 4 and n == 10:
                    break
        batch = None
        gc.collect()
        rows.append((descriptors(), threading.active_count(), len(multiprocessing.active_children()),
                     resident()))
    first, last = rows[min(5, len(rows) - 1)], rows[-1]
    flat = all(b <= a for a, b in zip(first[:3], last[:3])) and last[3] - first[3] < 8
    finish(good and flat and shared_files() == before,
           f"epochs: {options.epochs}, {kind} workers; descriptors {first[0]} to {last[0]}, threads "
           f"{first[1]} to {last[1]}, children {first[2]} to {last[2]}, resident {first[3]:.1f} "
           f"to {last[3]:.1f} MB")


if __name__ == "__main__":
    main()
