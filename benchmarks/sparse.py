"""Sparse products beside SciPy and PyTorch, and a table of a million rows trained with sparse gradients.

    python benchmarks/sparse.py [--threads 2] [--size 4096] [--width 64] [--rows 1000000]

Medians of the times of a CSR matrix of 0.1, 1 and 10 % times a dense one, there and back, and of a step of an
embedding; its memory is the growth of the process over the table alone (the largest, as Linux tells it).
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)


def median(run, repeats=15):
    """The median time of a call in ms, after two that do not count."""
    run(), run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def both(M, matrix, dense):
    """(the product, the product and both gradients) as calls for a library with PyTorch's API."""
    parts = [M.from_numpy(a.astype(np.int64)) for a in (matrix.indptr, matrix.indices)]
    A = M.sparse_csr_tensor(*parts, M.from_numpy(matrix.data), matrix.shape)
    constant = M.from_numpy(dense)
    leaf = A.detach().clone().requires_grad_()
    trained = M.from_numpy(dense.copy()).requires_grad_()

    def step():
        leaf.grad = trained.grad = None
        M.mm(leaf, trained).sum().backward()
    return (lambda: M.mm(A, constant)), step


def products(options):
    import scipy.sparse
    import torch

    import framework as fw
    fw.set_num_threads(options.threads), torch.set_num_threads(options.threads)
    print(f"| {options.size}x{options.size} times {options.size}x{options.width}, float32 "
          f"| framework | PyTorch | SciPy |\n| --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(options.size, options.width)).astype(np.float32)
    for share in (0.001, 0.01, 0.1):
        matrix = scipy.sparse.random(options.size, options.size, share, "csr", np.float32, random_state=0)
        ours, theirs = both(fw, matrix, dense), both(torch, matrix, dense)
        found = [[median(run) for run in (a, b)] for a, b in zip(ours, theirs)]
        third = median(lambda: matrix @ dense)
        print(f"| {share:.1%}, product | {found[0][0]:.2f} ms | {found[0][1]:.2f} ms | {third:.2f} ms |")
        print(f"| {share:.1%}, there and back, both gradients | {found[1][0]:.2f} ms | {found[1][1]:.2f} ms "
              f"| - |", flush=True)


def peak():
    """The largest memory of this process so far, in MB, as Linux tells it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def embedding(options):
    """One library, optimizer and kind of gradient, in this process: time of a step, growth of memory."""
    import importlib
    library, name, sparse = options.embedding
    M = importlib.import_module(library)
    M.set_num_threads(options.threads)
    table = M.nn.Embedding(options.rows, 64, sparse=sparse == "sparse")
    optimizer = getattr(M.optim, name)(table.parameters(), lr=0.01)
    index = M.from_numpy(np.random.default_rng(0).integers(0, options.rows, 4096))
    Path("/proc/self/clear_refs").write_text("5")  # the largest is now
    before = peak()

    def step():
        optimizer.zero_grad()
        (table(index) ** 2).sum().backward()
        optimizer.step()
    took = median(step, 15 if sparse == "sparse" else 5)
    print(f"{took:.2f} ms, +{peak() - before:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--embedding", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.embedding:
        return embedding(options)
    products(options)
    print(f"\n| table of {options.rows} x 64, 4096 rows a step | framework | PyTorch |\n| --- | --- | --- |")
    for name, sparse in (("SGD", "sparse"), ("Adagrad", "sparse"), ("SparseAdam", "sparse"), ("SGD", "dense"),
                         ("Adam", "dense")):
        cells = []
        for library in ("framework", "torch"):
            command = [sys.executable, __file__, "--threads", str(options.threads),
                       "--rows", str(options.rows), "--embedding", library, name, sparse]
            done = subprocess.run(command, capture_output=True, text=True, check=True,
                                  env={**os.environ, "PYTHONPATH": str(ROOT)})
            cells.append(done.stdout.strip().splitlines()[-1])
        print(f"| {name}, {sparse} gradient | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
