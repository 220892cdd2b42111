"""A run in three processes, with a save and a load between them, is bitwise the run in one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import framework as fw
from framework.data import DataLoader, TensorDataset

ROOT = Path(__file__).resolve().parents[1]


def run(directory, stop, workers):
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            str(ROOT / "tests" / "resume_run.py"),
            str(directory),
            str(stop),
            str(workers),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_workers():
    try:
        DataLoader(TensorDataset(fw.ones(2)), num_workers=1)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that nobody stopped, without workers: every number of workers gives the same."""
    return run(tmp_path_factory.mktemp("whole"), 31, 0)


@pytest.mark.parametrize("workers", [0, 2, 4])
def test_three_segments_are_the_whole_run(tmp_path, whole, workers):
    if workers and not has_workers():
        pytest.skip("the loader has no worker processes here")
    for stop in (8, 19, 31):  # in the middle of epochs of 11 batches
        last = run(tmp_path, stop, workers)
    assert last == whole
    if workers == 0:  # the comparison can fail: one step more is another run
        assert run(tmp_path, 32, workers) != whole
