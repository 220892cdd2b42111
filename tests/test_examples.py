"""Every example, run as a user runs it, with --quick: it ends with its metric, and it has learnt.

The thresholds are those that a wrong gradient misses, which tests/stress/broken_gradients.py shows; what a
full run reaches is in examples/README.md.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from benchmarks.examples import DATA, EXAMPLES, PROGRAMS, ROOT

# what the metric of the short run has to be
QUICK = {
    "cartpole": lambda n: n > 60,
    "dcgan": lambda n: n < 4.5,
    "hypernetwork": lambda n: n < 0.3,
    "modular": lambda n: n > 90,
    "ppo": lambda n: n > 60,
    "reinforce": lambda n: n > 50,
    "super_resolution": lambda n: n > 0.1,
    "vit": lambda n: n > 55,
    "transfer": lambda n: n > 70,
    "custom_dataset": lambda n: n > 85,
    "custom_op": lambda n: n < 0.1,
    "flow": lambda n: n < 1.2,
    "gpt": lambda n: n < 3.2,
    "hessian": lambda n: n < 1e-3,
    "language_model": lambda n: n < 3.9,
    "maml": lambda n: n < 3.6,
    "neural_ode": lambda n: n < 1.0,
    "scipy_optimizer": lambda n: n < 5e-3,
    "sine_lbfgs": lambda n: n < 0.003,
    "sklearn_estimator": lambda n: n > 93,
    "structures": lambda n: n > 82,
    "tree_lstm": lambda n: n > 80,
    "unet": lambda n: n > 0.4,
    "vae": lambda n: n < 27,
    "wgan_gp": lambda n: n > 30,
    "cifar_resnet": lambda n: n > 17.5,
    "names": lambda n: n > 66,
    "translation": lambda n: n > 33,
}
# where the short run is told by another number than the full one
PATTERNS = {"modular": r"right ([\d.]+)%, one deeper", "transfer": r"accuracy ([\d.]+)% on the photos"}
# tested elsewhere: digits and its pictures, those of several processes, what shows interfaces
ELSEWHERE = {"digits", "pictures", "hogwild", "data_parallel", "gpt_parallel", "array_api", "gcn",
             "without_python"}
NEEDS = {"sklearn": "scikit-learn", "scipy": "SciPy", "PIL": "pillow", "pictures": "pillow"}


def learnt(name, text):
    """(whether the last line says enough, that line)."""
    last = (text.strip().splitlines() or [""])[-1]
    found = re.search(PATTERNS.get(name, PROGRAMS[name].pattern), last)
    return found is not None and bool(QUICK[name](float(found[1]))), last


@pytest.mark.parametrize("name", QUICK)
def test_an_example_learns(name, tmp_path):
    source = (EXAMPLES / f"{name}.py").read_text()
    for module, package in NEEDS.items():
        needed = find_spec("PIL" if module == "pictures" else module)
        if re.search(rf"^(from|import) {module}\b", source, re.MULTILINE) and needed is None:
            pytest.skip(f"the example needs {package}")
    if "{data}" in PROGRAMS[name].arguments and not DATA.is_dir():
        pytest.skip(f"the example needs data, which {DATA} would hold")
    arguments = PROGRAMS[name].arguments.format(data=DATA, out=tmp_path)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick", *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    enough, last = learnt(name, done.stdout)
    assert enough, last


def test_every_example_is_tried_and_in_the_readme():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names - set(QUICK) <= ELSEWHERE and set(QUICK) <= names
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in sorted(names - {"pictures"}) if f"{name}.py" not in readme] == []
    assert set(QUICK) <= set(PROGRAMS) and [n for n in PROGRAMS if f"| [{n}.py]" not in readme] == []
    long = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert {name: n for name, n in long.items() if n > 150} == {}
