"""A fork while another thread is inside a matrix product: no process hangs, products stay right."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")

PROGRAM = """
import os, threading
import numpy as np
import framework as fw

a = np.random.default_rng(0).normal(size=(500, 500))
want = a @ a
before = fw.get_num_threads()
stop = threading.Event()
wrong = []

def work():
    while not stop.is_set():
        if not np.allclose(a @ a, want):
            wrong.append(1)

threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.allclose(a @ a, want) and fw.get_num_threads() == before else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for t in threads:
    t.join()
assert not wrong and fw.get_num_threads() == before
print("done")
"""


def test_fork_during_products():
    """Without preparation OpenBLAS waits for its own busy threads for ever (mostly at the first fork)."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True,
                          timeout=120, cwd=Path(__file__).parent.parent)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
