"""The examples of several processes: the same model from every number of ranks, also over a restart."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import framework as fw

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = str(ROOT / "examples" / "data_parallel.py")
EPOCHS = 3

needs_digits = pytest.mark.skipif(find_spec("sklearn") is None, reason="the example needs scikit-learn")


def run(out, n, *options, launcher=(), **more):
    command = [sys.executable, "-m", "framework.distributed.run", "-n", str(n), *launcher, SCRIPT]
    done = subprocess.run([*command, "--out", str(out), "--epochs", str(EPOCHS), *options], timeout=120,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), **more})
    assert done.returncode == 0, done.stderr
    model = fw.nn.Sequential(fw.nn.Linear(64, 128), fw.nn.ReLU(), fw.nn.Linear(128, 10))
    fw.io.Checkpointer(out / "checkpoints").resume(model=model)
    return done, [p.detach().numpy() for p in model.parameters()]


@needs_digits
def test_one_two_and_four_ranks_train_one_model(tmp_path):
    first, one = run(tmp_path / "1", 1)
    loss = re.findall(r"loss (\S+), test accuracy (\S+)%", first.stdout)
    assert len(loss) == EPOCHS and float(loss[-1][0]) < float(loss[0][0]) and float(loss[-1][1]) > 80
    for n, options in ((2, []), (4, ["--zero"])):
        done, many = run(tmp_path / str(n), n, *options)
        for a, b in zip(one, many):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
        assert re.findall(r"test accuracy (\S+)%", done.stdout)[-1] == loss[-1][1]


@needs_digits
def test_a_failed_run_goes_on_from_its_checkpoint_with_fewer_ranks(tmp_path):
    _, whole = run(tmp_path / "whole", 2, "--zero")
    done, again = run(tmp_path / "again", "1:2", "--zero", launcher=["--max-restarts", "1"], FAIL_AT="1,3,1")
    assert "RuntimeError: asked to fail here" in done.stderr
    assert "going on after epoch 1, with 1 ranks" in done.stdout
    for a, b in zip(whole, again):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_a_gpt_whose_optimizer_or_whole_state_is_divided():
    found = {}
    for options in ("--ranks 1", "--ranks 2", "--ranks 2 --fully-sharded"):
        command = [sys.executable, str(ROOT / "examples" / "gpt_parallel.py"), "--quick", *options.split()]
        done = subprocess.run(command, timeout=240, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        words = re.search(r"loss ([\d.]+) nats .* has (\d+) bytes of parameters and (\d+) of", done.stdout)
        found[options] = [float(word) for word in words.groups()]
    one, two, sharded = found.values()
    assert one[0] < 3.4 and two[0] == pytest.approx(one[0], abs=2e-3) == sharded[0]
    assert two[2] < 0.55 * one[2] and sharded[1] < 0.75 * one[1] and sharded[2] < 0.75 * one[2]
