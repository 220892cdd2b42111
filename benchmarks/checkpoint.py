"""Saving and loading 500 MB of tensors: seconds and extra memory, against safetensors.numpy and torch.save.

    python benchmarks/checkpoint.py [--megabytes 500] [--rounds 5] [--directory DIR]

Rounds of the programs alternate, each load in a fresh process; medians. "extra" is the peak of resident
memory above that before the call, less the tensors that a load returns. Files are in the page cache when
they are loaded, as they are after a save; a save ends with fsync in all rows (safetensors and torch.save
do not sync by themselves: their files are synced and the time is theirs too), and is compared with writing
the same bytes by one write and fsync.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TENSORS = 40


def memory(field):
    """A field of /proc/self/status in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def measured(action):
    """(seconds, peak memory above the start, result)."""
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.perf_counter()
    result = action()
    return time.perf_counter() - start, memory("VmHWM") - before, result


def synced(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def arrays(megabytes):
    import numpy as np
    n = megabytes * 10 ** 6 // TENSORS // 4
    base = np.random.default_rng(0).standard_normal((TENSORS, n), dtype=np.float32)
    return {f"layer{i}.weight": base[i].copy() for i in range(TENSORS)}


def framework(data, path):
    import framework as fw
    tensors = {k: fw.from_numpy(v) for k, v in data.items()}
    return (lambda: fw.save(tensors, path)), (lambda: fw.load(path))


def framework_mmap(data, path):
    import framework as fw
    save, _ = framework(data, path)
    return save, (lambda: fw.load(path, mmap=True))


def strided(data, path):
    import framework as fw
    tensors = {k: fw.from_numpy(v.reshape(1000, -1)).t() for k, v in data.items()}
    return (lambda: fw.save(tensors, path)), (lambda: fw.load(path))


def safetensors(data, path):
    from safetensors.numpy import load_file, save_file

    def save():
        save_file(data, path)
        synced(path)
    return save, (lambda: load_file(path))


def torch(data, path):
    import torch
    tensors = {k: torch.from_numpy(v) for k, v in data.items()}

    def save():
        torch.save(tensors, path)
        synced(path)
    return save, (lambda: torch.load(path))


def raw(data, path):
    import numpy as np

    def save():
        with open(path, "wb") as file:
            for array in data.values():
                file.write(array)
            os.fsync(file.fileno())
    return save, (lambda: np.fromfile(path, np.uint8))


CASES = {
    "framework": framework,
    "framework, mmap=True": framework_mmap,
    "framework, transposed tensors": strided,
    "safetensors.numpy": safetensors,
    "torch.save": torch,
    "one write and fsync": raw,
}


def one(case, action, path, megabytes):
    """In a process of its own: one save or one load of one program."""
    data = arrays(megabytes) if action == "save" else {}
    save, load = CASES[case](data, path)
    seconds, peak, result = measured(save if action == "save" else load)
    mapped = "mmap" in case
    size = 0 if action == "save" or mapped else megabytes * 10 ** 6
    print(json.dumps([seconds, peak - size]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--directory", default=None, help="where the files are written (default: the system's)"
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.one, args.megabytes)
        return
    found = {(case, action): [] for case in CASES for action in ("save", "load")}
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        for _ in range(args.rounds):
            for case in CASES:
                path = os.path.join(folder, "file")
                for action in ("save", "load"):
                    done = subprocess.run(
                        [
                            sys.executable,
                            __file__,
                            "--megabytes",
                            str(args.megabytes),
                            "--one",
                            case,
                            action,
                            path,
                        ],
                        capture_output=True,
                        text=True,
                        env={**os.environ, "PYTHONPATH": str(ROOT)},
                    )
                    if done.returncode == 0:
                        found[case, action].append(json.loads(done.stdout))
                os.path.exists(path) and os.unlink(path)
    print(f"{args.megabytes} MB in {TENSORS} tensors, medians of {args.rounds} rounds\n")
    print(f"{'':32}{'save s':>9}{'extra MB':>10}{'load s':>9}{'extra MB':>10}")
    for case in CASES:
        row = [statistics.median(values) if values else float("nan") for action in ("save", "load")
               for values in ([r[0] for r in found[case, action]], [r[1] / 1e6 for r in found[case, action]])]
        print(f"{case:32}{row[0]:9.3f}{row[1]:10.1f}{row[2]:9.3f}{row[3]:10.1f}")


if __name__ == "__main__":
    main()
