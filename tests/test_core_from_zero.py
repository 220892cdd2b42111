"""docs/core-from-zero.md runs, learns what the library learns, and names files that exist."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

import framework as fw

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "core-from-zero.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run():
    """The names that the blocks of the page make, run one after the other."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        for block in BLOCKS:
            exec(block, names)
    names["shown"] = shown.getvalue()
    return names


def test_the_page_runs():
    lines = [line for block in BLOCKS for line in block.splitlines() if line.strip()]
    assert len(BLOCKS) == 7 and 100 <= len(lines) <= 180, len(lines)
    assert re.fullmatch(r"loss 0\.00\d\d\n", run()["shown"])


def test_its_gradients_are_those_of_the_library():
    names = run()
    rng = np.random.default_rng(1)
    x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
    own = [names["Tensor"](a).requires_grad_() for a in (x, w, b)]
    names["mean"](names["tanh"](own[0] @ own[1] + own[2]) * own[2]).backward()
    real = [fw.tensor(a, requires_grad=True) for a in (x, w, b)]
    (fw.tanh(real[0] @ real[1] + real[2]) * real[2]).mean().backward()
    for a, c in zip(own, real, strict=True):
        np.testing.assert_allclose(a.grad, c.grad.numpy(), rtol=1e-12)


def test_the_files_that_it_names_exist_and_define_what_it_says():
    for path in re.findall(r"`(framework/[\w/.]+?)/?`", PAGE):
        assert (ROOT / path).exists(), path
    for name, path in re.findall(r"`(\w+)` in\s+`(framework/[\w/.]+\.py)`", PAGE):
        made = re.search(rf"^(def {name}\b|{name} = |{name}_op = )", (ROOT / path).read_text(), re.M)
        assert made, f"{path} makes no {name}"
