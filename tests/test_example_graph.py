"""``examples/gcn.py``: it learns, and its last line is its result."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_network_reads_topics_from_citations():
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "gcn.py"), "--quick"], capture_output=True,
                          text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    word, accuracy = done.stdout.splitlines()[-1].split()
    assert word == "accuracy" and float(accuracy) > 0.9
