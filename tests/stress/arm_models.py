"""Models of tests/test_runtime.py, exported here and run by framework-run on another processor.

    python tests/stress/arm_models.py write FOLDER      models, inputs, and what Python computes here
    python tests/stress/arm_models.py compare FOLDER    beside what framework-run and the examples wrote
    python tests/stress/arm_models.py equal FOLDER      the same, where no bit may differ
"""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from test_runtime import (  # noqa: E402
    CASES,
    classified,
    exported,
    generated,
    said_classes,
    write_for_examples,
)

import framework as fw  # noqa: E402


def write(folder):
    for name in CASES:
        model, _ = exported(name, folder / f"{name}.fwk")
        fw.manual_seed(3)
        x = CASES[name][1]()
        made = model(x)
        np.save(folder / f"{name}.npy", x.numpy())
        for i, y in enumerate(made if isinstance(made, tuple) else [made]):
            np.save(folder / f"{name}-here{i}.npy", y.detach().numpy())
        if name == "cnn":
            best = classified(model, write_for_examples(folder))
        if name == "gpt":
            text = generated(model)
        print(name)
    (folder / "examples.json").write_text(json.dumps([best, text]))


def compare(folder, exact=False):
    far = []
    for path in sorted(folder.glob("*-here*.npy")):
        here, there = (np.load(p) for p in (path, path.with_name(path.name.replace("-here", "-there"))))
        if here.shape != there.shape or here.dtype != there.dtype:
            sys.exit(f"arm_models.py: {path.stem} is {there.dtype}{there.shape} there")
        kind, same = here.dtype, np.count_nonzero(here == there)
        here, there = here.astype(np.float64), there.astype(np.float64)
        apart = np.abs(here - there).max() / (np.abs(here).max() or 1)
        print(f"{path.stem.replace('-here', ' ')}: {same} of {here.size} numbers are the same bits, "
              f"the others at most {apart:.1e} of the largest apart")
        allowed = 0 if exact else {"float32": 1e-5, "float64": 1e-13}.get(kind.name, 0)
        if not apart <= allowed:
            far.append(path.stem)
    (classes, scores), text = json.loads((folder / "examples.json").read_text())
    there, found = said_classes((folder / "photo-there.txt").read_text())
    apart = np.abs(np.subtract(scores, found)).max() if classes == there else 1
    print(f"classify.c: the classes {there}, scores at most {apart:.1e} apart")
    said = (folder / "text-there.txt").read_text()
    print(f"generate.cpp: {said.strip()!r}, {'as here' if said == text else f'here {text.strip()!r}'}")
    if apart > (0 if exact else 1e-6) or said != text:
        far.append("the examples")
    if far:
        why = "not the same bits" if exact else "further apart than the order of sums explains"
        sys.exit(f"arm_models.py: {why}: {far}")


if __name__ == "__main__":
    todo = {"write": write, "compare": compare, "equal": partial(compare, exact=True)}
    todo[sys.argv[1]](Path(sys.argv[2]))
