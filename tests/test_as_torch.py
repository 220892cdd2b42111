"""``framework.as_torch``: programs that import torch run as they are, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.as_torch import TorchVersion

ROOT = Path(__file__).parents[1]


def run(code, *options, cwd=None, program=None, check=True):
    """What a process prints that runs ``code`` under as_torch."""
    start = [sys.executable, "-m", "framework.as_torch", *(program or ["-c", code]), *options]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(start, capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout if check else done.stderr


def test_names_and_submodules_are_those_of_the_framework():
    out = run("""
import torch, framework, sys, importlib.metadata, importlib.util
import torch.nn as nn, torch.nn.functional as F, torch.optim.lr_scheduler as schedules
from torch import Tensor, nn as again
from torch.utils.data import DataLoader
from torch.optim.optimizer import Optimizer
assert nn is framework.nn is again and F is framework.nn.functional
assert schedules is framework.optim.lr_scheduler
assert DataLoader is framework.data.DataLoader and Optimizer is framework.optim.Optimizer
assert isinstance(torch.ones(2), torch.Tensor) and Tensor is framework.Tensor and torch.torch is torch
assert nn.__spec__.name == "framework.nn" and sys.modules["torch.nn"] is nn
assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.fft")
assert importlib.metadata.version("torch") == torch.__version__ >= "2.0"
assert {"nn", "relu", "float32"} <= {*dir(torch)}
namespace = {}
exec("from torch import *", namespace)
assert namespace["zeros"] is torch.zeros
print(torch.float32, torch.nn.Linear(2, 1))
""")
    assert out == "torch.float32 Linear(in_features=2, out_features=1, bias=True)\n"


def test_nothing_is_touched_without_it():
    code = """
import sys, framework, framework.as_torch
before = list(sys.meta_path)
try:
    import torch
    assert torch.Tensor is not framework.Tensor
except ImportError:
    pass
assert list(sys.meta_path) == before and str(framework.float32) == "framework.float32"
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=ROOT)


def test_install_and_uninstall():
    code = """
import sys
import framework.as_torch as as_torch, framework.nn
as_torch.install(); as_torch.install()
import torch, torch.nn
assert as_torch.is_installed() and str(torch.int64) == "torch.int64"
try:
    torch.nn.Lineer
except AttributeError as error:
    print(error)
as_torch.uninstall()
assert not as_torch.is_installed() and "torch" not in sys.modules
assert str(framework.int64) == "framework.int64"
try:
    framework.nn.Lineer
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == ("torch.nn.Lineer is not there: framework does not have it; "
                           "closest: torch.nn.Linear\nmodule 'framework.nn' has no attribute 'Lineer'\n")


def test_install_after_pytorch_is_refused():
    pytest.importorskip("torch")
    code = "import torch; import framework.as_torch as a; a.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "PyTorch is imported already" in done.stderr


@pytest.mark.parametrize("statement, message", [
    ("torch.optm", "torch.optm is not there: framework does not have it; closest: torch.optim"),
    ("torch.nn.functional.sofmax", "closest: torch.nn.functional.softmax"),
    ("torch.CrossEntropyLoss", "closest: torch.nn.CrossEntropyLoss"),
    ("from torch.nn import Lineer", "cannot import name 'Lineer'"),
    ("import torch._inductor", "torch._inductor is not there: nothing is compiled to C++ or Triton here"),
    ("import torch.nn.functionl", "closest: torch.nn.functional"),
    ("import torch.tensor", "torch.tensor is no module, import it from torch"),
])
def test_a_missing_name_says_so(statement, message):
    error = run(f"import torch, torch.nn.functional\n{statement}", check=False)
    assert message in error, error


def test_missing_names_can_be_asked_for():
    run("""
import torch
assert not hasattr(torch, "no_such_name") and getattr(torch.nn, "no_such_name", 5) == 5
try:
    import torch._inductor
except ImportError as error:
    assert error.name == "torch._inductor"
""")


def test_a_program_a_module_and_their_arguments(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.ones(3).sum().item()\n")
    (tmp_path / "program.py").write_text(
        "import sys, helper, torch\nif __name__ == '__main__': print(sys.argv[1:], helper.value, __file__)\n")
    out = run(None, "--lr", "1", program=[str(tmp_path / "program.py")])
    assert out == f"['--lr', '1'] 3.0 {tmp_path / 'program.py'}\n"
    out = run(None, "a", program=["-m", "program"], cwd=tmp_path)
    assert out.startswith("['a'] 3.0")
    assert "usage" in run(None, program=["-m"], check=False)


def test_processes_of_the_program_find_it_too(tmp_path):
    (tmp_path / "program.py").write_text("""
import multiprocessing, subprocess, sys
import torch
def total(n):
    import framework
    assert torch.Tensor is framework.Tensor
    return torch.ones(n).sum().item()
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(total, [3]))
    subprocess.run([sys.executable, "-c", "import torch.nn; print(torch.__version__)"], check=True)
""")
    out = run(None, program=[str(tmp_path / "program.py")])
    assert "[3.0]" in out and "+framework" in out


def test_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import torch\n")
    (tmp_path / "test_it.py").write_text(
        "import torch, framework\ndef test_it(): assert torch.Tensor is framework.Tensor\n")
    start = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
             "framework.as_torch.pytest_plugin", str(tmp_path)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(start, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout


def test_versions_compare():
    version = TorchVersion("2.13.0+framework")
    assert version > "2.9" and version >= (2, 13) and version < "3" and version == "2.13"
    assert version != "2.12" and version != None and version != 2  # noqa: E711
    assert version <= "2.13.1" and str(version).split("+")[0] == "2.13.0"
