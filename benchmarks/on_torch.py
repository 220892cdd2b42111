"""Run a program written for this package on PyTorch: the other half of `python -m benchmarks.examples`.

    python -m benchmarks.on_torch examples/vae.py --quick

Every `import framework...` of the program finds PyTorch's module of that name. What PyTorch has not (models,
metrics, small helpers of loops) is this package's own source, executed over PyTorch; data sets and
checkpoints, which lie deeper in this package, are replaced by the few lines below.
"""

import gzip
import importlib
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

SOURCE = Path(__file__).resolve().parents[1] / "framework"
# ours: PyTorch's; a package of ours whose further modules come from its source ends with "/"
NAMES = {
    "/": "torch", "nn": "torch.nn", "nn.functional": "torch.nn.functional", "nn.utils": "torch.nn.utils",
    "nn.utils.rnn": "torch.nn.utils.rnn", "optim": "torch.optim", "autograd": "torch.autograd",
    "func": "torch.func", "distributions": "torch.distributions", "tensor": "torch", "creation": "torch",
    "from_data": "torch",
    "random": "torch", "autograd.mode": "torch", "ops.shape.join": "torch", "backends.precision": "torch",
    "utils/": "torch.utils", "data": "torch.utils.data",
}


class Alias(ModuleType):
    """A module of this package's name with the names of PyTorch's."""

    def __init__(self, name: str, other: ModuleType, path: Path | None = None) -> None:
        super().__init__(name)
        self.__dict__["_other"] = other
        self.__path__ = [str(path)] if path else []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


class Checkpointer:
    """The newest state of everything that has one, written in PyTorch's way."""

    def __init__(self, directory: Any, **settings: Any) -> None:
        self.directory = Path(directory)

    def save(self, step: int, **parts: Any) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        state = {name: part.state_dict() if hasattr(part, "state_dict") else part
                 for name, part in parts.items() if not isinstance(part, torch.utils.data.DataLoader)}
        torch.save({"step": step, **state}, self.directory / "last.pt")


class CIFAR10(torch.utils.data.Dataset):
    """The binary files as uint8 images (3, 32, 32)."""

    def __init__(self, folder: str, train: bool, transform: Any) -> None:
        files = sorted(Path(folder).glob("data_batch_*.bin" if train else "test_batch.bin"))
        rows = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
        self.labels, self.images = rows[:, 0].tolist(), torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32))
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.images[i]), self.labels[i]


class MNIST:
    """The idx files as tensors."""

    def __init__(self, folder: str, train: bool) -> None:
        kind = "train" if train else "t10k"
        images, labels = (gzip.decompress(Path(folder, f"{kind}-{part}-ubyte.gz").read_bytes())
                          for part in ("images-idx3", "labels-idx1"))
        self.data = torch.frombuffer(bytearray(images[16:]), dtype=torch.uint8).reshape(-1, 28, 28)
        self.targets = torch.frombuffer(bytearray(labels[8:]), dtype=torch.uint8)


def compose(steps: list) -> Any:
    """One after the other."""
    def all_steps(x: torch.Tensor) -> torch.Tensor:
        for step in steps:
            x = step(x)
        return x
    return all_steps


def random_crop(size: int, padding: int) -> Any:
    """A piece of the image with zeros around it."""
    def crop(x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.pad(x, [padding] * 4)
        i, j = torch.randint(0, 2 * padding + 1, (2,)).tolist()
        return x[:, i:i + size, j:j + size]
    return crop


def normalize(mean: tuple, std: tuple) -> Any:
    """Each channel minus its mean, over its deviation."""
    mean, std = (torch.tensor(v)[:, None, None] for v in (mean, std))
    return lambda x: (x - mean) / std


TRANSFORMS = {
    "Compose": compose, "RandomCrop": random_crop, "Normalize": normalize,
    "RandomHorizontalFlip": lambda: lambda x: x.flip(2) if torch.rand(()) < 0.5 else x,
    "ConvertImageDtype": lambda dtype: lambda x: x.to(dtype) / 255,
}


def module(name: str, **contents: Any) -> ModuleType:
    """A module that holds just this, as sys.modules keeps it."""
    made = sys.modules["framework." + name] = ModuleType("framework." + name)
    vars(made).update(contents)
    return made


def install() -> None:
    """From here on, `framework` is PyTorch in this process; it must not have been imported."""
    if "framework" in sys.modules:
        raise RuntimeError("on_torch: framework is imported already")
    for name, other in NAMES.items():
        ours = ".".join(["framework", *filter(None, name.rstrip("/").split("."))])
        path = SOURCE.joinpath(*ours.split(".")[1:]) if name.endswith("/") else None
        sys.modules[ours] = Alias(ours, importlib.import_module(other), path)
    top = sys.modules["framework"]
    transforms = module("data.transforms", **TRANSFORMS)
    cifar = module("data.cifar", CIFAR10=CIFAR10)
    top.data = sys.modules["framework.data"]
    top.data.__dict__.update(transforms=transforms, cifar=cifar, MNIST=MNIST)
    module("config", names=None, need=None)
    module("config.listing", own=lambda *names: sorted)  # what dir() shows does not matter here
    top.io = module("io", Checkpointer=Checkpointer, load=torch.load, load_safetensors=None)
    vars(top).update(errors=importlib.import_module("framework.errors"), utils=sys.modules["framework.utils"])


if __name__ == "__main__":
    install()
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")
