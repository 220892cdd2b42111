"""Convolutions of the usual networks beside PyTorch's: ``python -m benchmarks.convolutions``.

Forward and both gradients of each layer, fastest of several, in milliseconds; ``--last``: images of two sizes
with channels last. Prints the rows that take more than 1.2 of PyTorch's time, and the geometric means.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import framework as fw

# channels, size, channels of the results, kernel, stride, padding, groups, dilation
RESNET = [(3, 224, 64, 7, 2, 3), (64, 56, 64, 3, 1, 1), (64, 56, 128, 3, 2, 1), (64, 56, 128, 1, 2, 0),
          (128, 28, 128, 3, 1, 1), (128, 28, 256, 3, 2, 1), (256, 14, 256, 3, 1, 1), (256, 14, 512, 3, 2, 1),
          (512, 7, 512, 3, 1, 1), (64, 56, 256, 1, 1, 0), (256, 56, 64, 1, 1, 0), (512, 28, 128, 1, 1, 0),
          (1024, 14, 256, 1, 1, 0), (256, 14, 1024, 1, 1, 0), (2048, 7, 512, 1, 1, 0),
          (1024, 14, 2048, 1, 2, 0)]
MOBILENET = [(32, 112, 32, 3, 1, 1, 32), (96, 112, 96, 3, 2, 1, 96), (144, 56, 144, 3, 1, 1, 144),
             (384, 14, 384, 3, 1, 1, 384), (960, 7, 960, 3, 1, 1, 960), (32, 112, 16, 1, 1, 0),
             (16, 112, 96, 1, 1, 0), (144, 56, 24, 1, 1, 0), (160, 7, 960, 1, 1, 0), (320, 7, 1280, 1, 1, 0),
             (240, 28, 240, 5, 2, 2, 240), (96, 56, 96, 7, 1, 3, 96), (32, 56, 32, 3, 1, 1, 4),
             (128, 28, 128, 3, 1, 1, 32)]
SMALL = [(3, 64, 64, 4, 2, 1), (64, 32, 128, 4, 2, 1), (256, 8, 512, 4, 2, 1), (512, 4, 1, 4, 1, 0),
         (256, 32, 512, 4, 1, 1), (64, 33, 32, 5, 1, 2), (1, 33, 64, 9, 1, 4), (32, 33, 3, 5, 1, 2),
         (1, 28, 16, 5, 1, 2), (16, 14, 32, 5, 1, 2), (1, 28, 32, 3, 1, 0), (32, 26, 64, 3, 1, 0),
         (3, 32, 6, 5, 1, 0), (6, 14, 16, 5, 1, 0)]
PATCHES = [(3, 224, 768, 16, 16, 0), (3, 224, 1024, 32, 32, 0), (256, 14, 1024, 7, 7, 0),
           (64, 56, 128, 2, 2, 0)]
TRANSPOSED = [(100, 1, 512, 4, 1, 0), (512, 4, 256, 4, 2, 1), (128, 16, 64, 4, 2, 1), (64, 32, 3, 4, 2, 1),
              (512, 16, 256, 2, 2, 0), (128, 64, 64, 2, 2, 0), (64, 28, 32, 3, 2, 1)]
LINES = [(1, 16000, 32, 10, 5, 0), (64, 400, 64, 3, 1, 2, 1, 2), (64, 400, 64, 3, 1, 16, 1, 16),
         (512, 100, 512, 3, 2, 1), (3, 1024, 64, 1, 1, 0), (128, 1024, 1024, 1, 1, 0),
         (80, 200, 256, 5, 1, 2), (25, 100, 25, 7, 1, 3)]
VOLUMES = [(3, 16, 32, 3, 1, 1), (32, 16, 64, 3, 1, 1), (64, 8, 64, 3, 1, 1), (16, 16, 32, 3, 2, 1),
           (256, 4, 256, 3, 1, 1)]
WAYS = ("forward", "images", "weights")


def layers(last: bool) -> Iterator[tuple[str, int, tuple]]:
    """(function, images, the rest of a row above)"""
    for images in (1, 4, 16):
        for row in (*RESNET, *MOBILENET, *SMALL, *PATCHES):
            yield "conv2d", images, row
        if not last:
            yield from (("conv_transpose2d", images, row) for row in TRANSPOSED)
            yield from (("conv1d", images, row) for row in LINES)
            yield from (("conv3d", images, row) for row in VOLUMES if images < 16)


def fastest(call: Callable) -> float:
    call()
    times, start = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - start < 0.05 and len(times) < 40):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
        if before - start > 0.5:
            break
    return min(times) * 1e3


def measured(lib: Any, name: str, images: int, row: tuple, last: bool) -> list[float]:
    """Milliseconds of each of WAYS."""
    channels, size, results, kernel, stride, padding, groups, dilation = (*row, 1, 1)[:8]
    dims, function = int(name[-2]), getattr(lib.nn.functional, name)
    turned = "transpose" in name
    x = lib.randn(images, channels, *[size] * dims)
    outer = (channels, results) if turned else (results, channels // groups)
    w = lib.randn(*outer, *[kernel] * dims) * 0.05
    if last:
        x, w = (a.contiguous(memory_format=lib.channels_last) for a in (x, w))
    x.requires_grad_()
    w.requires_grad_()
    settings = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation}
    y = function(x, w, None, **settings)
    g = lib.ones_like(y)
    return [fastest(lambda: function(x, w, None, **settings).detach()),
            fastest(lambda: lib.autograd.grad(y, x, g, retain_graph=True)),
            fastest(lambda: lib.autograd.grad(y, w, g, retain_graph=True))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--last", action="store_true")
    options = parser.parse_args()
    fw.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    ratios: list[list[float]] = []
    for name, images, row in layers(options.last):
        ours, theirs = (measured(lib, name, images, row, options.last) for lib in (fw, torch))
        ratios.append([a / b for a, b in zip(ours, theirs)])
        if max(ratios[-1]) > 1.2:
            print(name, images, row, *(f"{way} {a:.3f} ({b:.3f}) {a / b:.2f};"
                                       for way, a, b in zip(WAYS, ours, theirs)), flush=True)
    for way, one in zip(WAYS, zip(*ratios)):
        mean = math.exp(sum(map(math.log, one)) / len(one))
        print(f"{way}: {len(one)} layers, geometric mean {mean:.2f}, {sum(r > 1.2 for r in one)} above 1.2")


if __name__ == "__main__":
    main()
