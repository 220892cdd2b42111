"""The example that trains two networks for programs in C and C++: those say what Python says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from framework import _native

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
LIBRARY = Path(getattr(_native.module, "__file__", None) or "none").with_name("libframework.so")


def said(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not LIBRARY.exists(), reason="libframework is not beside the extension")
@pytest.mark.skipif(not (DATA / "hymenoptera").exists(), reason="the photos and the text are not here")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("c++")), reason="no compilers")
def test_trained_networks_say_the_same_in_c_and_cpp(tmp_path):
    pytest.importorskip("PIL")
    text = said(sys.executable, ROOT / "examples" / "without_python.py", "--quick", "--out", tmp_path,
                "--photos", DATA / "hymenoptera", "--text", DATA / "text" / "tinyshakespeare.txt")
    here = re.findall(r"^photo: (\S+) (\S+)$", text, re.M)
    photo = [tmp_path / name for name in ("photos.fwk", "photo.ppm", "classes.txt")]
    there = said(tmp_path / "classify", *photo)
    lines = [line.split() for line in there.splitlines()]
    assert len(here) == 2
    assert [(name, float.fromhex(score)) for name, _, score in lines] == \
        [(name, float.fromhex(score)) for name, score in here]
    written = said(tmp_path / "generate", tmp_path / "letters.fwk", tmp_path / "letters.txt", "The ", 60, 32)
    assert re.search(r"^letters: (.*)$", text, re.M)[1] == repr(written[:-1])
