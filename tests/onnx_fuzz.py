"""Damaged ONNX files: ``python tests/onnx_fuzz.py [count]``. Each gives a module or one of two errors,
nothing else.
"""

import io
import sys
import time
from collections import Counter

import numpy as np

import framework as fw
from framework import nn


def models():
    """Files to damage, as bytes."""
    lstm = nn.LSTM(4, 3)
    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(18, 3))
    for model, x in ((lstm, fw.randn(5, 2, 4)), (image, fw.randn(2, 1, 8, 8)),
                     (nn.TransformerEncoderLayer(4, 2, 8), fw.randn(3, 2, 4))):
        file = io.BytesIO()
        fw.onnx.export(model, x, file)
        yield file.getvalue()


def damaged(data, rng):
    """The file with bytes changed, left out, put in, doubled, or cut off."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        way, at = rng.integers(6), int(rng.integers(max(len(data), 1)))
        n = int(rng.integers(1, 9))
        if way == 0:
            data[at:at + 1] = bytes([int(rng.integers(256))])
        elif way == 1:
            data[at:at + 1] = bytes([(data[at] if at < len(data) else 0) ^ 1 << int(rng.integers(8))])
        elif way == 2:
            del data[at:at + n]
        elif way == 3:
            data[at:at] = rng.integers(0, 256, n).astype(np.uint8).tobytes()
        elif way == 4:
            data[at:at] = data[at:at + 4 * n]
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def attempt(data):
    """What becomes of a file: "loads", or the name of the error; anything unforeseen comes through."""
    try:
        fw.onnx.load(data)
    except (fw.errors.CheckpointError, fw.onnx.OnnxError) as error:
        assert str(error)
        return type(error).__name__
    return "loads"


def run(count, seed=0):
    """Counts of what became of ``count`` damaged files."""
    rng = np.random.default_rng(seed)
    files = list(models())
    return Counter(attempt(damaged(files[i % len(files)], rng)) for i in range(count))


if __name__ == "__main__":
    start = time.time()
    print(dict(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)), f"in {time.time() - start:.0f} s")
