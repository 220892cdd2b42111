"""Small models for ``fuzz_models.sh`` to damage: ``python tests/stress/fuzz_models.py FOLDER``."""

import sys
from pathlib import Path

import framework as fw
from framework import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from test_runtime import CASES

CASES["squares"] = (lambda: nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                    lambda: fw.randn(2, 16, 6, 10), {"x": {0: "batch", 2: "h", 3: "w"}})
CASES["arrays"] = (lambda: Arrays(), lambda: fw.randn(2, 6), {"x": {0: "batch"}})


class Arrays(nn.Module):
    def forward(self, x):
        a = fw.cat([x, x[:, ::2]], 1).reshape(x.shape[0], 3, 3)
        b = fw.stack([a, a.transpose(1, 2)], 1) @ fw.ones(3, 1)
        return fw.where(b > 0, b.exp() * 2, -b), a.expand(2, *a.shape).permute(2, 0, 1, 3)


def main(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    fw.manual_seed(1)
    for name, (make, example, axes) in CASES.items():
        path = Path(folder) / f"{name}.fwk"
        fw.runtime.export(make().eval(), example(), path, input_names=["x"], dynamic_axes=axes)


if __name__ == "__main__":
    main(sys.argv[1])
