"""ruff and mypy are clean."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("tool, arguments", [("ruff", ["check", "."]), ("mypy", [])])
def test_clean(tool, arguments):
    pytest.importorskip(tool, reason=f"{tool} is not installed (the dev extra brings it)")
    done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
