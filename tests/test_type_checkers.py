"""What type checkers know: a user's program passes strictly, and every public name has a type."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROGRAM = TESTS / "typed_program.py"
NAMESPACES = ["framework", *(f"framework.{name}" for name in (
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "data", "autograd", "autograd.function", "autograd.graph", "autograd.functional",
    "cuda", "amp", "fft", "linalg", "special", "distributions", "sparse", "func", "jit", "onnx", "runtime",
    "models", "distributed", "profiler", "random", "testing", "compiler", "utils", "nested",
    "signal.windows", "ao.quantization"))]
# functions, whose results programs go on with
TYPED = ("fw.relu(x)", "fw.exp(x)", "fw.add(x, x)", "F.linear(x, x)", "fw.cat([x, x])", "x.sum()", "x[0]",
         "1 - x", "fw.linalg.norm(x)", "fw.fft.fft(x)", "fw.special.expit(x)", "x.abs().view(2)")


def strictly(path: Path) -> str:
    pytest.importorskip("mypy", reason="the checker is not installed")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-version", "3.12",
                           "--follow-imports", "silent", "--config-file", "", "--ignore-missing-imports",
                           "--cache-dir", str(path.parent / ".mypy_cache"), str(path)],
                          capture_output=True, text=True, cwd=TESTS.parent)
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_program_and_all_names_are_typed(tmp_path):
    lines = [f"import {namespace}" for namespace in NAMESPACES]
    for namespace in NAMESPACES:
        lines += [f"{namespace}.{name}" for name in dir(importlib.import_module(namespace))
                  if not name.startswith("_")]
    lines += ["x = fw.ones(2)", *(f"reveal_type({t})" for t in TYPED)]
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.read_text() + "\n".join(lines) + "\n")
    said = strictly(path)
    assert len(lines) > 1700 and "error" not in said, said
    assert said.count('Revealed type is "framework.tensor.Tensor"') == len(TYPED), said


def test_the_program_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("typed_program", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert program.train(tmp_path) > 0 and (tmp_path / "a.fw").exists()
