"""The DataLoader beside PyTorch's: samples a second, time to the first batch, peak memory.

    python benchmarks/loader.py [--images DIR] [--rounds 5] [--workers 2]

Every measurement is a fresh process; the two libraries alternate, and the medians of the rounds and of
their ratios are printed. Memory is the proportional set size of the process and its workers together.
PyTorch is needed (the ``compare`` extra), and a directory of JPEGs in class folders for the pictures.

images       the same dataset written with pillow and NumPy: decode, random resized crop to 64x64, flip,
             normalise; only the library differs.
folder       the library's own way: here ``ImageFolder`` and ``data.transforms``; on PyTorch the same steps
             as torchvision does them (decode to RGB, crop, resize, flip, to tensor, normalise).
memory       TensorDataset of 60,000 rows of 784 floats, shuffled, batches of 128.
large        batches of 20 MB: 64 samples of 80,000 floats, each made by the dataset.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
COPIES, SIZE = 12, 64


def part(h: int, w: int) -> tuple[int, int, int, int]:
    """The place of a random resized crop: (top, left, height, width)."""
    for _ in range(10):
        area = h * w * random.uniform(0.08, 1.0)
        shape = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        width, height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < width <= w and 0 < height <= h:
            return random.randint(0, h - height), random.randint(0, w - width), height, width
    return 0, 0, h, w


class Pictures:
    """JPEGs, decoded and augmented with pillow and NumPy alone; the library makes the tensor."""

    def __init__(self, M: Any, folder: str) -> None:
        self.M = M
        self.paths = sorted(str(p) for p in Path(folder).rglob("*.jpg")) * COPIES

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        from PIL import Image
        with Image.open(self.paths[i]) as file:
            image = file.convert("RGB")
        top, left, h, w = part(image.height, image.width)
        image = image.resize((SIZE, SIZE), 2, box=(left, top, left + w, top + h))
        pixels = np.asarray(image)
        if random.random() < 0.5:
            pixels = pixels[:, ::-1]
        scaled = (pixels.astype(np.float32) / 255 - MEAN) / STD
        return self.M.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1))), i


class TorchFolder(Pictures):
    """The steps of the usual torchvision pipeline, one by one, with the tensor work done by PyTorch."""

    def __getitem__(self, i: int) -> Any:
        from PIL import Image
        with Image.open(self.paths[i]) as file:
            image = file.convert("RGB")
        top, left, h, w = part(image.height, image.width)
        image = image.crop((left, top, left + w, top + h)).resize((SIZE, SIZE), 2)
        if self.M.rand(1) < 0.5:
            image = image.transpose(0)
        x = self.M.from_numpy(np.array(image, np.uint8)).permute(2, 0, 1).contiguous().float().div(255)
        return x.sub_(self.M.from_numpy(MEAN[:, None, None])).div_(self.M.from_numpy(STD[:, None, None])), i


class Large:
    """Samples of 80,000 floats."""

    def __init__(self, M: Any) -> None:
        self.M = M

    def __len__(self) -> int:
        return 2048

    def __getitem__(self, i: int) -> Any:
        return self.M.from_numpy(np.full(80_000, i, np.float32)), i


def dataset(M: Any, workload: str, folder: str) -> tuple[Any, int]:
    """The dataset of a workload and its batch size."""
    if workload == "images":
        return Pictures(M, folder), 64
    if workload == "folder":
        if M.__name__ == "torch":
            return TorchFolder(M, folder), 64
        T = M.data.transforms
        data = M.data.ImageFolder(folder, T.Compose([
            T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]))
        return M.data.ConcatDataset([data] * COPIES), 64
    if workload == "memory":
        return M.utils.data.TensorDataset(M.zeros(60_000, 784), M.arange(60_000)), 128
    return Large(M), 64


def memory_of(pid: int) -> int:
    """Bytes of a process and its children, shared pages counted in part."""
    total = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total = next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
    except (OSError, StopIteration):
        return total
    return total + sum(memory_of(int(child)) for child in children)


def measure(module: str, workload: str, folder: str, workers: int) -> dict[str, float]:
    """One pass in this process, after a first one whose first batch is timed."""
    M = __import__(module)
    if module == "torch":
        import torch.utils.data  # noqa: F401 - PyTorch does not bind it by itself
    data, size = dataset(M, workload, folder)
    peak, done = [0], threading.Event()

    def watch() -> None:
        peak[0] = memory_of(os.getpid())
        while not done.wait(0.02):
            peak[0] = max(peak[0], memory_of(os.getpid()))

    loader = M.utils.data.DataLoader(data, batch_size=size, shuffle=True, num_workers=workers)
    start = time.perf_counter()
    batches = iter(loader)
    next(batches)
    first = time.perf_counter() - start
    for _ in batches:
        pass
    start, count = time.perf_counter(), 0
    for batch in loader:
        count += len(batch[0])
    rate = count / (time.perf_counter() - start)
    watcher = threading.Thread(target=watch)  # in a pass of its own: watching takes time
    watcher.start()
    for _ in loader:
        pass
    done.set()
    watcher.join()
    return {"rate": rate, "first": first, "peak": peak[0] / 2 ** 20}


def main() -> None:
    """Measure all workloads in turn and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", default=str(Path(__file__).parents[2] / "shared/data/hymenoptera/train"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--workloads", nargs="+", default=["images", "folder", "memory", "large"])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measure(*args.child, args.images, args.workers)))
        return
    print(f"| {args.workers} workers | samples/s | PyTorch | ratio | first batch s | PyTorch | peak MB "
          "| PyTorch |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for workload in args.workloads:
        found: dict[str, list] = {"framework": [], "torch": []}
        for _ in range(args.rounds):
            for module, results in found.items():
                out = subprocess.run(
                    [sys.executable, __file__, "--child", module, workload, "--images", args.images,
                     "--workers", str(args.workers)], check=True, capture_output=True, text=True)
                results.append(json.loads(out.stdout.splitlines()[-1]))
        ours, theirs = found["framework"], found["torch"]
        middle = {key: (statistics.median(r[key] for r in ours), statistics.median(r[key] for r in theirs))
                  for key in ours[0]}
        ratios = sorted(a["rate"] / b["rate"] for a, b in zip(ours, theirs))
        print(f"| {workload} | {middle['rate'][0]:.0f} | {middle['rate'][1]:.0f} | "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | "
              f"{middle['first'][0]:.3f} | {middle['first'][1]:.3f} | {middle['peak'][0]:.0f} | "
              f"{middle['peak'][1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
