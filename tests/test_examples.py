"""Every example, run as a user runs it, with --quick: it ends with its metric, and it has learnt.

The thresholds are those that a wrong gradient misses; what a full run reaches is in examples/README.md.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
DATA = ROOT.parent / "shared" / "data"

# name: (arguments, pattern of the last line with the metric, what it has to be)
QUICK = {
    "cartpole": ("", r"mean episode ([\d.]+) steps", lambda n: n > 60),
    "dcgan": ("", r"kinds, ([\d.]+) from the nearest", lambda n: n < 4.5),
    "hypernetwork": ("", r"error ([\d.]+) on waves", lambda n: n < 0.3),
    "modular": ("", r"right ([\d.]+)%, one deeper", lambda n: n > 70),
    "ppo": ("", r"mean episode ([\d.]+) steps", lambda n: n > 60),
    "super_resolution": ("", r"([-\d.]+) dB above", lambda n: n > 0.1),
    "vit": ("--out {out}", r"test accuracy ([\d.]+)%", lambda n: n > 50),
    "transfer": ("--data {data}/hymenoptera", r"accuracy ([\d.]+)% on the photos", lambda n: n > 65),
    "custom_dataset": ("", r"test accuracy ([\d.]+)%", lambda n: n > 85),
    "custom_op": ("", r"loss ([\d.]+) for", lambda n: n < 0.1),
    "flow": ("", r"held-out ([-\d.]+) nats", lambda n: n < 1.5),
    "gpt": ("", r"held-out loss ([\d.]+) nats", lambda n: n < 3.2),
    "hessian": ("--out {out}", r"residue of the first ([\d.e+-]+)", lambda n: n < 1e-3),
    "maml": ("", r"after five steps ([\d.]+)", lambda n: n < 3.6),
    "neural_ode": ("", r"is off by ([\d.]+) on average", lambda n: n < 1.0),
    "scipy_optimizer": ("", r"loss ([\d.e+-]+) \(", lambda n: n < 5e-3),
    "sine_lbfgs": ("", r"test loss ([\d.]+) after", lambda n: n < 0.02),
    "sklearn_estimator": ("", r"accuracy ([\d.]+)% over", lambda n: n > 93),
    "tree_lstm": ("", r"test accuracy ([\d.]+)%", lambda n: n > 80),
    "unet": ("", r"intersection over union ([\d.]+)", lambda n: n > 0.4),
    "vae": ("--out {out}", r"held-out bound ([\d.]+) nats", lambda n: n < 29),
    "wgan_gp": ("", r"(\d) of 8 clouds", lambda n: n >= 6),
    "cifar_resnet": (
        "--data {data}/cifar10-subset --out {out}",
        r"test accuracy ([\d.]+)%",
        lambda n: n > 16,
    ),
    "names": ("--data {data}/names", r"test accuracy ([\d.]+)%", lambda n: n > 62),
    "translation": ("--data {data}/eng-fra/eng-fra.txt", r"next word right ([\d.]+)%", lambda n: n > 33),
}
# tested elsewhere: digits and its pictures, those of several processes, what shows interfaces
ELSEWHERE = {"digits", "pictures", "language_model", "hogwild", "data_parallel", "gpt_parallel", "array_api",
             "gcn"}
NEEDS = {"sklearn": "scikit-learn", "scipy": "SciPy", "PIL": "pillow"}


@pytest.mark.parametrize("name", QUICK)
def test_an_example_learns(name, tmp_path):
    arguments, pattern, good = QUICK[name]
    source = (EXAMPLES / f"{name}.py").read_text()
    for module, package in NEEDS.items():
        if re.search(rf"^(from|import) {module}\b", source, re.MULTILINE) and find_spec(module) is None:
            pytest.skip(f"the example needs {package}")
    if "{data}" in arguments and not DATA.is_dir():
        pytest.skip(f"the example needs data, which {DATA} would hold")
    arguments = arguments.format(data=DATA, out=tmp_path)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick", *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    last = done.stdout.strip().splitlines()[-1]
    found = re.search(pattern, last)
    assert found and good(float(found[1])), last


def test_every_example_is_tried_and_in_the_readme():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names - set(QUICK) <= ELSEWHERE and set(QUICK) <= names
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in sorted(names - {"pictures"}) if f"{name}.py" not in readme] == []
    long = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert {name: n for name, n in long.items() if n > 150} == {}
