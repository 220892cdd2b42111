"""Programs as people write them for PyTorch, run under ``framework.as_torch`` as they are."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_as_torch import ROOT, run

PROGRAMS = sorted((Path(__file__).parent / "torch_programs").glob("*.py"))
ALL = """
import runpy, sys
sys.argv = ["program"]
for path in {paths}:
    print("==", path)
    runpy.run_path(path, run_name="__main__")
"""


def test_programs_run(tmp_path):
    assert len(PROGRAMS) >= 8
    out = run(ALL.format(paths=[str(p) for p in PROGRAMS]), cwd=tmp_path)
    parts = {Path(p.split("\n", 1)[0].strip()).stem: p for p in out.split("==")[1:]}
    assert set(parts) == {p.stem for p in PROGRAMS}
    losses = [float(line) for line in parts["gpt"].split("\n")[1:4]]
    assert losses[2] < losses[0] < 4.0  # it learns
    assert parts["custom_function"].count("True") >= 3  # gradcheck, a second derivative, recording is on
    assert "torch.Size([2, 3])" in parts["questions"] and "['2', '13']" in parts["questions"]


@pytest.mark.parametrize("program", ["gan", "custom_function"])
def test_the_same_programs_run_on_pytorch(program, tmp_path):
    pytest.importorskip("torch")
    path = ROOT / "tests" / "torch_programs" / f"{program}.py"
    subprocess.run([sys.executable, "-W", "ignore", str(path)], check=True, cwd=tmp_path, capture_output=True)
