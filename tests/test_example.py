"""``examples/digits.py`` as a user runs it: it learns, resumes exactly after Ctrl-C, and fails clearly."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import framework as fw

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "digits.py"
EPOCHS, BATCH, IMAGES = 4, 64, 1437

pytestmark = pytest.mark.skipif(find_spec("PIL") is None, reason="the example needs pillow")


def command(out, *options):
    return [sys.executable, str(SCRIPT), "--out", str(out), *options]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(out, *options):
    return subprocess.run(command(out, *options), env=environment(), capture_output=True, text=True,
                          timeout=120)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder and the finished process of a run that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole")
    return out, run(out, "--epochs", str(EPOCHS), "--batch-size", str(BATCH))


def differences(a, b, path="checkpoint"):
    """Where two loaded checkpoints are not the same, bit by bit."""
    if type(a) is not type(b):
        return [f"{path}: {type(a).__name__}, {type(b).__name__}"]
    if isinstance(a, dict):
        if set(a) != set(b):
            return [f"{path}: the keys {list(a)}, {list(b)}"]
        return [d for k in a for d in differences(a[k], b[k], f"{path}[{k!r}]")]
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return [f"{path}: {len(a)} items, {len(b)}"]
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")]
    if isinstance(a, fw.Tensor):
        a, b = ((x.dtype, x.shape, x.numpy().tobytes()) for x in (a, b))
    return [] if a == b else [f"{path}: differs"]


def tensors(x):
    """How many tensors a loaded checkpoint holds."""
    if isinstance(x, (dict, list, tuple)):
        return sum(tensors(v) for v in (x.values() if isinstance(x, dict) else x))
    return int(isinstance(x, fw.Tensor))


def latest(out):
    """What the newest checkpoint of a run holds."""
    return fw.load(fw.io.Checkpointer(out / "checkpoints").latest)


def test_it_is_short():
    assert len(SCRIPT.read_text().splitlines()) <= 150


def test_learns_in_a_few_epochs(whole):
    out, done = whole
    assert done.returncode == 0, done.stderr
    found = re.search(r"test accuracy ([\d.]+)% on 360 images", done.stdout)
    assert found and float(found[1]) > 90, done.stdout
    run_state = latest(out)["parts"]["run"]
    assert run_state["epoch"] == EPOCHS == len(run_state["losses"])
    assert run_state["losses"][-1] < run_state["losses"][0] / 3


def test_pictures(whole):
    from PIL import Image
    for name, size in (("digits.png", (12 * 64, 8 * 76)), ("curves.png", (800, 320))):
        with Image.open(whole[0] / name) as picture:
            picture.load()
            assert picture.size == size
            assert len(picture.getcolors(1 << 20)) > 3  # something is drawn


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to another process")
def test_interrupted_and_resumed_is_the_same_run(whole, tmp_path):
    """Ctrl-C in the middle of epoch 2, then --resume: the last checkpoint equals the whole run's."""
    options = ("--epochs", str(EPOCHS), "--batch-size", str(BATCH))
    log = tmp_path / "stderr"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command(tmp_path, *options), env=environment(), stderr=stderr,
                                   stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not re.search(r"epoch 2/4:[^\r]*\b[1-9]\d*/23", log.read_text(errors="replace")):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert re.search(r"interrupted; go on with: python .*digits\.py .*--resume$", output.strip())
    stopped = latest(tmp_path)["parts"]["run"]
    assert 1 <= stopped["epoch"] < EPOCHS and 0 < stopped["seen"] <= IMAGES

    done = run(tmp_path, *options, "--resume")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == whole[1].stdout.splitlines()[-1]  # the accuracy
    a, b = latest(whole[0]), latest(tmp_path)
    for state in (a, b):  # the program draws from this package's generators only
        state["random"] = state["random"]["framework"]
    assert tensors(a) == tensors(b) > 30
    assert differences(a, b) == []


@pytest.mark.parametrize("options, words", [
    (["--mnist", "nowhere"], ["nowhere"]),
    (["--resume"], ["no checkpoint in", "without --resume"]),
    (["--device", "gpu"], ["'gpu'", "'cuda'"]),
], ids=["mnist", "resume", "device"])
def test_mistakes_are_answered_in_one_line(options, words, tmp_path):
    fails_clearly(run(tmp_path, *options), words)


@pytest.mark.skipif(find_spec("cupy") is not None, reason="for machines without CuPy")
def test_cuda_without_cupy(tmp_path):
    fails_clearly(run(tmp_path, "--device", "cuda"), ["'cuda'", "cupy", "pip install"])


def fails_clearly(done, words):
    assert done.returncode == 1
    assert done.stdout == ""
    message = done.stderr.strip()
    assert message.startswith("digits.py: ") and "Traceback" not in message
    assert all(word in message for word in words), message
