"""``examples/hogwild.py`` as a user runs it, on a few digits made here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "hogwild.py"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="shared memory needs a POSIX system")


def run(*options):
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, options)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.write_bytes(header + array.tobytes())


@pytest.fixture
def digits(tmp_path):
    """Images in MNIST's files: class k is a bright row k of noise, so that learning shows."""
    draw = np.random.default_rng(0)
    for stem, count in (("train", 2000), ("t10k", 200)):
        labels = draw.integers(0, 10, count).astype(np.uint8)
        images = draw.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        images[np.arange(count), 2 * labels] += 150
        write_idx(tmp_path / f"{stem}-images-idx3-ubyte", images)
        write_idx(tmp_path / f"{stem}-labels-idx1-ubyte", labels)
    return tmp_path


def test_two_processes_train_one_model(digits):
    done = run(digits, "--epochs", 2)
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = re.findall(r"process (\d), epoch (\d)", done.stdout)  # unbuffered, lines may run together
    assert sorted(found) == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    assert float(re.search(r"test accuracy (\S+)%", done.stdout)[1]) >= 95


def test_it_says_what_it_needs(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 1 and "no train-images-idx3-ubyte" in done.stderr
    assert "Traceback" not in done.stderr
