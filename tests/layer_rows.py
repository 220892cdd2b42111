"""One row (or more) per layer: how to make it, inputs, and what it must compute.

``make(M)`` gets a module with PyTorch's API (framework or torch). ``reference(F, p, *x)`` gets
``framework.nn.functional``, the layer's state as tensors and the inputs as tensors, and gives the
expected tensor or array; ``numpy_row`` rows get NumPy arrays and no F.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LayerRow:
    """See the module docstring.

    grad: compare gradients with torch; of the first ``trained`` inputs (-1: all). train: the mode it
    runs in. torch: whether torch has it. same_text: whether its repr is torch's.
    """

    name: str
    make: Callable[[Any], Any]
    inputs: tuple[np.ndarray, ...]
    reference: Callable[..., Any]
    label: str = ""
    grad: bool = True
    trained: int = -1
    train: bool = True
    torch: bool = True
    same_text: bool = True
    numpy: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


ROWS: list[LayerRow] = []


def row(name: str, make: Callable[[Any], Any], inputs: Any, reference: Callable[..., Any],
        **options: Any) -> None:
    """Add a row; one input may stand without a tuple."""
    ROWS.append(LayerRow(name, make, inputs if isinstance(inputs, tuple) else (inputs,), reference,
                         **options))


def numpy_row(name: str, make: Callable[[Any], Any], inputs: Any, reference: Callable[..., Any],
              **options: Any) -> None:
    """A row whose reference is ``reference(p, *arrays)`` in NumPy (float64)."""
    row(name, make, inputs, reference, numpy=True, **options)


def data(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float32 numbers, none near 0."""
    x = np.random.default_rng(seed + sum(shape)).normal(size=shape)
    return (x + 0.05 * np.sign(x)).astype(np.float32)


def unit(*shape: int, seed: int = 0) -> np.ndarray:
    """Uniform float32 numbers in [0.1, 0.9)."""
    return np.random.default_rng(seed + sum(shape)).uniform(0.1, 0.9, shape).astype(np.float32)


def signs(*shape: int, seed: int = 0) -> np.ndarray:
    """-1 and 1."""
    return np.where(data(*shape, seed=seed + 5) > 0, 1, -1).astype(np.float32)


def classes(*shape: int, n: int = 3) -> np.ndarray:
    """Class numbers below n."""
    return np.random.default_rng(sum(shape)).integers(0, n, shape)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of the standard library."""
    return np.vectorize(math.erf, otypes=[float])(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def softmax(x: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def capped(table: np.ndarray, most: float) -> np.ndarray:
    sizes = np.linalg.norm(table, axis=1, keepdims=True)
    return np.where(sizes > most, table * (most / (sizes + 1e-7)), table)


def normed(x: np.ndarray, dims: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)


# -- linear, containers ------------------------------------------------------------------------------

numpy_row("Identity", lambda M: M.nn.Identity(3, a=1), data(2, 3), lambda p, x: x)
numpy_row("Linear", lambda M: M.nn.Linear(3, 4), data(5, 3),
          lambda p, x: x @ p["weight"].T + p["bias"])
numpy_row("Linear", lambda M: M.nn.Linear(3, 4, bias=False), data(2, 5, 3),
          lambda p, x: x @ p["weight"].T, label="no bias")
numpy_row("Bilinear", lambda M: M.nn.Bilinear(3, 4, 2), (data(5, 3), data(5, 4)),
          lambda p, a, b: np.einsum("bi,kij,bj->bk", a, p["weight"], b) + p["bias"])
numpy_row("Sequential", lambda M: M.nn.Sequential(M.nn.Linear(3, 4), M.nn.ReLU()), data(5, 3),
          lambda p, x: np.maximum(x @ p["0.weight"].T + p["0.bias"], 0))

# -- convolutions and pooling ------------------------------------------------------------------------

row("Conv1d", lambda M: M.nn.Conv1d(2, 4, 3, stride=2, padding=1), data(2, 2, 7),
    lambda F, p, x: F.conv1d(x, p["weight"], p["bias"], 2, 1))
row("Conv1d", lambda M: M.nn.Conv1d(2, 4, 3, padding="same", dilation=2), data(2, 2, 7),
    lambda F, p, x: F.conv1d(x, p["weight"], p["bias"], 1, 2, 2), label="same")
row("Conv2d", lambda M: M.nn.Conv2d(4, 6, (3, 2), padding=(1, 0), groups=2, bias=False),
    data(2, 4, 5, 4), lambda F, p, x: F.conv2d(x, p["weight"], None, 1, (1, 0), 1, 2))
for mode in ("reflect", "replicate", "circular"):
    row("Conv2d", lambda M, mode=mode: M.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode),
        data(2, 2, 5, 4), lambda F, p, x, mode=mode: F.conv2d(F.pad(x, (2, 2, 1, 1), mode=mode),
                                                              p["weight"], p["bias"]), label=mode)
row("Conv3d", lambda M: M.nn.Conv3d(2, 3, 2, padding=1), data(1, 2, 3, 3, 3),
    lambda F, p, x: F.conv3d(x, p["weight"], p["bias"], 1, 1))
row("ConvTranspose1d", lambda M: M.nn.ConvTranspose1d(2, 4, 3, stride=2, padding=1, output_padding=1),
    data(2, 2, 5), lambda F, p, x: F.conv_transpose1d(x, p["weight"], p["bias"], 2, 1, 1))
row("ConvTranspose2d", lambda M: M.nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), data(2, 4, 3, 4),
    lambda F, p, x: F.conv_transpose2d(x, p["weight"], p["bias"], 2, 0, 0, 2))
numpy_row("MaxPool1d", lambda M: M.nn.MaxPool1d(2), data(2, 3, 6),
          lambda p, x: x.reshape(2, 3, 3, 2).max(-1))
numpy_row("MaxPool2d", lambda M: M.nn.MaxPool2d(2), data(2, 3, 4, 6),
          lambda p, x: x.reshape(2, 3, 2, 2, 3, 2).max((3, 5)))
row("MaxPool2d", lambda M: M.nn.MaxPool2d((3, 2), stride=2, padding=1, ceil_mode=True), data(2, 3, 5, 6),
    lambda F, p, x: F.max_pool2d(x, (3, 2), 2, 1, ceil_mode=True), label="settings")
numpy_row("AvgPool1d", lambda M: M.nn.AvgPool1d(2), data(2, 3, 6),
          lambda p, x: x.reshape(2, 3, 3, 2).mean(-1))
numpy_row("AvgPool2d", lambda M: M.nn.AvgPool2d(2), data(2, 3, 4, 6),
          lambda p, x: x.reshape(2, 3, 2, 2, 3, 2).mean((3, 5)))
numpy_row("AdaptiveAvgPool1d", lambda M: M.nn.AdaptiveAvgPool1d(3), data(2, 3, 6),
          lambda p, x: x.reshape(2, 3, 3, 2).mean(-1))
numpy_row("AdaptiveAvgPool2d", lambda M: M.nn.AdaptiveAvgPool2d((1, 1)), data(2, 3, 4, 5),
          lambda p, x: x.mean((2, 3), keepdims=True))
numpy_row("AdaptiveMaxPool1d", lambda M: M.nn.AdaptiveMaxPool1d(3), data(2, 3, 6),
          lambda p, x: x.reshape(2, 3, 3, 2).max(-1))
numpy_row("AdaptiveMaxPool2d", lambda M: M.nn.AdaptiveMaxPool2d(1), data(2, 3, 4, 5),
          lambda p, x: x.max((2, 3), keepdims=True))



def seen(layer: Any, M: Any, *shape: int) -> Any:
    """A lazy layer that has got an input."""
    layer(M.ones(shape))
    return layer


row("LazyLinear", lambda M: seen(M.nn.LazyLinear(4), M, 2, 3), data(5, 3),
    lambda F, p, x: F.linear(x, p["weight"], p["bias"]))
for n, shape in ((1, (2, 2, 6)), (2, (1, 2, 4, 5)), (3, (1, 2, 3, 3, 4))):
    row(f"LazyConv{n}d", lambda M, n=n, shape=shape: seen(
        getattr(M.nn, f"LazyConv{n}d")(4, 2, padding=1, bias=n != 2), M, *shape), data(*shape),
        lambda F, p, x, n=n: getattr(F, f"conv{n}d")(x, p["weight"], p.get("bias"), 1, 1))
    row(f"LazyConvTranspose{n}d", lambda M, n=n, shape=shape: seen(
        getattr(M.nn, f"LazyConvTranspose{n}d")(4, 2, 2, groups=2), M, *shape), data(*shape),
        lambda F, p, x, n=n: getattr(F, f"conv_transpose{n}d")(x, p["weight"], p["bias"], 2, groups=2))
    row(f"LazyBatchNorm{n}d", lambda M, n=n, shape=shape: seen(
        getattr(M.nn, f"LazyBatchNorm{n}d")(), M, *shape), data(*shape),
        lambda F, p, x: F.batch_norm(x, None, None, p["weight"], p["bias"], True))
    row(f"LazyInstanceNorm{n}d", lambda M, n=n, shape=shape: seen(
        getattr(M.nn, f"LazyInstanceNorm{n}d")(affine=n != 1), M, *shape), data(*shape),
        lambda F, p, x: F.instance_norm(x, weight=p.get("weight"), bias=p.get("bias")))
row("ConvTranspose3d", lambda M: M.nn.ConvTranspose3d(2, 3, 2, stride=2), data(1, 2, 2, 3, 2),
    lambda F, p, x: F.conv_transpose3d(x, p["weight"], p["bias"], 2))
numpy_row("MaxPool3d", lambda M: M.nn.MaxPool3d(2), data(1, 2, 2, 4, 2),
          lambda p, x: x.reshape(1, 2, 1, 2, 2, 2, 1, 2).max((3, 5, 7)))
numpy_row("AvgPool3d", lambda M: M.nn.AvgPool3d(2), data(1, 2, 2, 4, 2),
          lambda p, x: x.reshape(1, 2, 1, 2, 2, 2, 1, 2).mean((3, 5, 7)))
numpy_row("AdaptiveMaxPool3d", lambda M: M.nn.AdaptiveMaxPool3d(1), data(1, 2, 2, 4, 2),
          lambda p, x: x.max((2, 3, 4), keepdims=True))
for n, shape in ((1, (2, 3, 6)), (2, (2, 3, 4, 2)), (3, (1, 2, 2, 4, 2))):
    row(f"LPPool{n}d", lambda M, n=n: getattr(M.nn, f"LPPool{n}d")(3, 2), unit(*shape),
        lambda F, p, x, n=n: (getattr(F, f"avg_pool{n}d")(x ** 3, 2) * 2 ** n) ** (1 / 3))
    numpy_row(f"MaxUnpool{n}d", lambda M, n=n: getattr(M.nn, f"MaxUnpool{n}d")(2),
              (data(2, *[1] * n), np.array([0, 2 ** n - 1]).reshape(2, *[1] * n)),
              lambda p, x, i, n=n: (np.eye(2 ** n)[i.reshape(2).astype(int)] * x.reshape(2, 1)).reshape(
                  2, *[2] * n))
numpy_row("AdaptiveAvgPool3d", lambda M: M.nn.AdaptiveAvgPool3d(1), data(1, 2, 2, 4, 2),
          lambda p, x: x.mean((2, 3, 4), keepdims=True))

PLACES = {2: np.array([[[0.1, 0.9], [0.5, 0.3]]]), 3: np.array([[[0.1, 0.9, 0.4], [0.5, 0.3, 0.8]]])}
for n, shape in ((2, (1, 2, 5, 6)), (3, (1, 2, 5, 6, 7))):
    row(f"FractionalMaxPool{n}d", lambda M, n=n: getattr(M.nn, f"FractionalMaxPool{n}d")(
        2, output_size=3, _random_samples=M.tensor(PLACES[n].astype(np.float32))), data(*shape),
        lambda F, p, x, n=n: getattr(F, f"fractional_max_pool{n}d")(
            x, 2, output_size=3, _random_samples=p["_random_samples"]))

# -- normalisation, dropout, embedding ---------------------------------------------------------------

for rank, shape in ((1, (6, 3)), (1, (4, 3, 5)), (2, (2, 3, 4, 2)), (3, (2, 3, 2, 2, 2))):
    numpy_row(f"BatchNorm{rank}d", lambda M, rank=rank: getattr(M.nn, f"BatchNorm{rank}d")(3),
              data(*shape), lambda p, x: normed(x, (0, *range(2, x.ndim))), label=f"{len(shape)}-dim")
numpy_row("BatchNorm1d", lambda M: M.nn.BatchNorm1d(3), data(6, 3), lambda p, x: x / math.sqrt(1 + 1e-5),
          train=False, label="eval")
numpy_row("BatchNorm2d", lambda M: M.nn.BatchNorm2d(3, momentum=None, affine=False), data(2, 3, 4, 2),
          lambda p, x: normed(x, (0, 2, 3)), label="mean of batches")
numpy_row("BatchNorm2d", lambda M: M.nn.BatchNorm2d(3, track_running_stats=False), data(2, 3, 4, 2),
          lambda p, x: normed(x, (0, 2, 3)), train=False, label="untracked")
numpy_row("InstanceNorm1d", lambda M: M.nn.InstanceNorm1d(3), data(2, 3, 5), lambda p, x: normed(x, (2,)))
numpy_row("InstanceNorm2d", lambda M: M.nn.InstanceNorm2d(3, affine=True), data(2, 3, 4, 2),
          lambda p, x: normed(x, (2, 3)))
numpy_row("InstanceNorm2d", lambda M: M.nn.InstanceNorm2d(3, track_running_stats=True),
          data(2, 3, 4, 2), lambda p, x: normed(x, (2, 3)), label="tracked")
numpy_row("InstanceNorm3d", lambda M: M.nn.InstanceNorm3d(3), data(2, 3, 2, 2, 2),
          lambda p, x: normed(x, (2, 3, 4)))
numpy_row("InstanceNorm1d", lambda M: M.nn.InstanceNorm1d(3), data(3, 5), lambda p, x: normed(x, (1,)),
          label="no batch")
numpy_row("LayerNorm", lambda M: M.nn.LayerNorm([3, 4]), data(5, 3, 4), lambda p, x: normed(x, (1, 2)))
numpy_row("LayerNorm", lambda M: M.nn.LayerNorm(4, bias=False), data(5, 3, 4),
          lambda p, x: normed(x, (2,)), label="no bias")
numpy_row("GroupNorm", lambda M: M.nn.GroupNorm(2, 4), data(3, 4, 5),
          lambda p, x: normed(x.reshape(3, 2, 10), (2,)).reshape(3, 4, 5))
numpy_row("RMSNorm", lambda M: M.nn.RMSNorm(4), data(5, 4),
          lambda p, x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 2.0 ** -23))
row("LocalResponseNorm", lambda M: M.nn.LocalResponseNorm(3, 0.5, 0.6, 2.0), data(2, 4, 3),
    lambda F, p, x: x / (2 + 0.5 * F.avg_pool1d((x * x).mT, 3, 1, 1).mT) ** 0.6)
row("CrossMapLRN2d", lambda M: M.nn.CrossMapLRN2d(3, 0.5, 0.6, 2.0), data(2, 4, 3, 2),
    lambda F, p, x: F.local_response_norm(x, 3, 0.5, 0.6, 2.0),
    torch=False)  # PyTorch 2.13 never takes the first channel out of the running sum; Torch 7 did
numpy_row("SyncBatchNorm", lambda M: M.nn.SyncBatchNorm(3), data(2, 3, 4, 2),
          lambda p, x: normed(x, (0, 2, 3)), torch=False)  # PyTorch's is for GPUs only
for name, shape in (("Dropout", (2, 3)), ("Dropout1d", (2, 3, 4)), ("Dropout2d", (2, 3, 4, 2)),
                    ("Dropout3d", (2, 3, 2, 2, 2)), ("AlphaDropout", (2, 3)),
                    ("FeatureAlphaDropout", (2, 3, 2))):
    numpy_row(name, lambda M, name=name: getattr(M.nn, name)(0.3), data(*shape), lambda p, x: x,
              train=False)
numpy_row("Embedding", lambda M: M.nn.Embedding(5, 3), classes(2, 4, n=5),
          lambda p, x: p["weight"][x.astype(int)])
numpy_row("Embedding", lambda M: M.nn.Embedding(5, 3, padding_idx=-1), classes(2, 4, n=5),
          lambda p, x: p["weight"][x.astype(int)], label="padding")

for mode in ("sum", "mean", "max"):
    numpy_row("EmbeddingBag", lambda M, mode=mode: M.nn.EmbeddingBag(5, 3, mode=mode), classes(2, 4, n=5),
              lambda p, x, mode=mode: getattr(p["weight"][x.astype(int)], mode)(1), label=mode,
              grad=mode != "max")  # of equal elements PyTorch gives the gradient to the first
numpy_row("EmbeddingBag", lambda M: M.nn.EmbeddingBag(5, 3, 1.5, mode="sum", padding_idx=-1),
          (np.array([0, 1, 4, 2]), np.array([0, 3])), lambda p, x, i: np.stack(
              [capped(p["weight"], 1.5)[:2].sum(0), capped(p["weight"], 1.5)[2]]), label="settings")

# -- activations -------------------------------------------------------------------------------------

HALF = np.sqrt(2.0)
ACTIVATIONS: dict[str, tuple[tuple, Callable]] = {
    "ReLU": ((), lambda x: np.maximum(x, 0)),
    "ReLU6": ((), lambda x: np.clip(x, 0, 6)),
    "SELU": ((), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "SiLU": ((), lambda x: x * sigmoid(x)),
    "Mish": ((), lambda x: x * np.tanh(softplus(x))),
    "Hardswish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "Hardsigmoid": ((), lambda x: np.clip(x + 3, 0, 6) / 6),
    "ELU": ((1.5,), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "CELU": ((1.5,), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x / 1.5))),
    "LeakyReLU": ((0.1,), lambda x: np.where(x > 0, x, 0.1 * x)),
    "PReLU": ((), lambda x: np.where(x > 0, x, 0.25 * x)),
    "GELU": ((), lambda x: x * (1 + erf(x / HALF)) / 2),
    "Hardtanh": ((-0.7, 0.6), lambda x: np.clip(x, -0.7, 0.6)),
    "Hardshrink": ((0.4,), lambda x: np.where(np.abs(x) > 0.4, x, 0)),
    "Softshrink": ((0.4,), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.4, 0)),
    "Tanhshrink": ((), lambda x: x - np.tanh(x)),
    "Softplus": ((2.0, 20.0), lambda x: softplus(2 * x) / 2),
    "Softsign": ((), lambda x: x / (1 + np.abs(x))),
    "Sigmoid": ((), sigmoid),
    "Tanh": ((), np.tanh),
    "LogSigmoid": ((), lambda x: -softplus(-x)),
    "Threshold": ((0.1, 20.0), lambda x: np.where(x > 0.1, x, 20.0)),
    "GLU": ((1,), lambda x: x[:, :2] * sigmoid(x[:, 2:])),
    "Softmax": ((1,), lambda x: softmax(x, 1)),
    "LogSoftmax": ((1,), lambda x: np.log(softmax(x, 1))),
    "Softmin": ((1,), lambda x: softmax(-x, 1)),
}
for name, (args, function) in ACTIVATIONS.items():
    numpy_row(name, lambda M, name=name, args=args: getattr(M.nn, name)(*args), data(3, 4),
              lambda p, x, function=function: function(x))
numpy_row("GELU", lambda M: M.nn.GELU("tanh"), data(3, 4), label="tanh", reference=lambda p, x:
          x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2)
numpy_row("PReLU", lambda M: M.nn.PReLU(4), data(3, 4, 2), lambda p, x: np.where(x > 0, x, 0.25 * x),
          label="channels")
numpy_row("RReLU", lambda M: M.nn.RReLU(0.2, 0.4), data(3, 4), lambda p, x: np.where(x > 0, x, 0.3 * x),
          train=False)
numpy_row("RReLU", lambda M: M.nn.RReLU(0.25, 0.25, True), data(3, 4),
          lambda p, x: np.where(x > 0, x, 0.25 * x), label="inplace", grad=False)
numpy_row("Softmax2d", lambda M: M.nn.Softmax2d(), data(2, 3, 2, 2), lambda p, x: softmax(x, 1))
for name, function in (
        *((n, ACTIVATIONS[n][1]) for n in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish",
                                           "Hardsigmoid")),
        ("ELU", lambda x: np.where(x > 0, x, np.expm1(x))),
        ("CELU", lambda x: np.where(x > 0, x, np.expm1(x))),
        ("LeakyReLU", lambda x: np.where(x > 0, x, 0.01 * x))):
    numpy_row(name, lambda M, name=name: getattr(M.nn, name)(inplace=True), data(3, 4),
              lambda p, x, function=function: function(x), label="inplace", grad=False)

# -- moving elements ---------------------------------------------------------------------------------

numpy_row("Flatten", lambda M: M.nn.Flatten(), data(2, 3, 4), lambda p, x: x.reshape(2, 12))
numpy_row("Unflatten", lambda M: M.nn.Unflatten(1, (3, 4)), data(2, 12), lambda p, x: x.reshape(2, 3, 4))
for n, shape in ((1, (2, 3, 4)), (2, (1, 2, 3, 4)), (3, (1, 2, 3, 3, 4))):
    width = [(0, 0)] * 2 + [(1, 1)] * n
    numpy_row(f"ZeroPad{n}d", lambda M, n=n: getattr(M.nn, f"ZeroPad{n}d")(1), data(*shape),
              lambda p, x, width=width: np.pad(x, width))
    numpy_row(f"ConstantPad{n}d", lambda M, n=n: getattr(M.nn, f"ConstantPad{n}d")(1, 3.5), data(*shape),
              lambda p, x, width=width: np.pad(x, width, constant_values=3.5))
    for name, mode in (("Reflection", "reflect"), ("Replication", "edge"), ("Circular", "wrap")):
        numpy_row(f"{name}Pad{n}d", lambda M, layer=f"{name}Pad{n}d": getattr(M.nn, layer)(1), data(*shape),
                  lambda p, x, width=width, mode=mode: np.pad(x, width, mode=mode))
numpy_row("ChannelShuffle", lambda M: M.nn.ChannelShuffle(2), data(2, 6, 3),
          lambda p, x: x[:, [0, 3, 1, 4, 2, 5]])
numpy_row("PixelShuffle", lambda M: M.nn.PixelShuffle(2), data(2, 4, 2, 3), lambda p, x:
          x.reshape(2, 1, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 4, 6))
numpy_row("PixelUnshuffle", lambda M: M.nn.PixelUnshuffle(2), data(2, 1, 4, 6), lambda p, x:
          x.reshape(2, 1, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 4, 2, 3))
row("Unfold", lambda M: M.nn.Unfold((2, 3), stride=2, padding=1), data(2, 2, 4, 5),
    lambda F, p, x: F.unfold(x, (2, 3), padding=1, stride=2))
row("Fold", lambda M: M.nn.Fold((4, 5), (2, 3), padding=1), data(1, 6, 25),
    lambda F, p, x: F.fold(x, (4, 5), (2, 3), padding=1))
numpy_row("Upsample", lambda M: M.nn.Upsample(scale_factor=2), data(1, 2, 3, 4),
          lambda p, x: x.repeat(2, 2).repeat(2, 3))
row("Upsample", lambda M: M.nn.Upsample(size=(4, 5), mode="bilinear", align_corners=True),
    data(1, 2, 3, 4), lambda F, p, x: F.interpolate(x, (4, 5), mode="bilinear", align_corners=True),
    label="bilinear")

numpy_row("UpsamplingNearest2d", lambda M: M.nn.UpsamplingNearest2d(scale_factor=2), data(1, 2, 3, 4),
          lambda p, x: x.repeat(2, 2).repeat(2, 3))
row("UpsamplingBilinear2d", lambda M: M.nn.UpsamplingBilinear2d((4, 5)), data(1, 2, 3, 4),
    lambda F, p, x: F.interpolate(x, (4, 5), mode="bilinear", align_corners=True))

# -- losses ------------------------------------------------------------------------------------------

X, Y = data(4, 3), data(4, 3, seed=9)
PROBABLE = softmax(data(4, 3, seed=2), 1)
LOSSES: dict[str, tuple[dict, tuple, Callable]] = {
    "MSELoss": ({}, (X, Y), lambda x, y: (x - y) ** 2),
    "L1Loss": ({}, (X, Y), lambda x, y: np.abs(x - y)),
    "SmoothL1Loss": ({"beta": 0.7}, (X, Y), lambda x, y: np.where(
        np.abs(x - y) < 0.7, (x - y) ** 2 / 1.4, np.abs(x - y) - 0.35)),
    "HuberLoss": ({"delta": 0.7}, (X, Y), lambda x, y: np.where(
        np.abs(x - y) < 0.7, (x - y) ** 2 / 2, 0.7 * (np.abs(x - y) - 0.35))),
    "CrossEntropyLoss": ({}, (X, classes(4)), lambda x, y: -np.log(
        softmax(x, 1)[np.arange(4), y.astype(int)])),
    "NLLLoss": ({}, (X, classes(4)), lambda x, y: -x[np.arange(4), y.astype(int)]),
    "BCELoss": ({}, (unit(4, 3), unit(4, 3, seed=3)), lambda x, y: -(
        y * np.log(x) + (1 - y) * np.log(1 - x))),
    "BCEWithLogitsLoss": ({}, (X, unit(4, 3)), lambda x, y: softplus(x) - x * y),
    "KLDivLoss": ({}, (X, PROBABLE), lambda x, y: y * (np.log(y) - x)),
    "CosineEmbeddingLoss": ({"margin": 0.1}, (X, Y, signs(4)), lambda a, b, y: np.where(
        y > 0, 1 - cosine(a, b), np.maximum(cosine(a, b) - 0.1, 0))),
    "MarginRankingLoss": ({"margin": 0.3}, (X, Y, signs(4, 3)), lambda a, b, y: np.maximum(
        -y * (a - b) + 0.3, 0)),
    "HingeEmbeddingLoss": ({}, (X, signs(4, 3)), lambda x, y: np.where(y > 0, x, np.maximum(1 - x, 0))),
    "TripletMarginLoss": ({}, (X, Y, data(4, 3, seed=4)), lambda a, b, c: np.maximum(
        distance(a, b) - distance(a, c) + 1, 0)),
    "SoftMarginLoss": ({}, (X, signs(4, 3)), lambda x, y: softplus(-x * y)),
    "MultiMarginLoss": ({"p": 2, "margin": 0.7}, (X, classes(4)), lambda x, y: (
        np.maximum(0.7 - x[np.arange(4), y.astype(int)][:, None] + x, 0) ** 2
        * (np.arange(3) != y[:, None])).mean(1)),
    "MultiLabelMarginLoss": ({}, (X, np.array([[1, -1, 0], [2, 0, -1], [-1, 1, 1], [0, 1, 2]])),
                             lambda x, y: multilabel_margin(x)),
    "MultiLabelSoftMarginLoss": ({}, (X, (unit(4, 3) > 0.5).astype(np.float32)),
                                 lambda x, y: (softplus(x) - x * y).mean(1)),
    "TripletMarginWithDistanceLoss": ({"margin": 0.7, "swap": True}, (X, Y, data(4, 3, seed=4)),
                                      lambda a, b, c: np.maximum(distance(a, b) - np.minimum(
                                          distance(a, c), distance(b, c)) + 0.7, 0)),
    "PoissonNLLLoss": ({}, (X, unit(4, 3)), lambda x, y: np.exp(x) - x * y),
    "GaussianNLLLoss": ({}, (X, Y, unit(4, 3)), lambda x, y, v: (np.log(v) + (x - y) ** 2 / v) / 2),
}


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


def distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt(((a - b + 1e-6) ** 2).sum(1))


def multilabel_margin(x: np.ndarray) -> np.ndarray:
    """For the targets {1}, {2, 0}, {} and {0, 1, 2}."""
    def gap(row: int, target: int, other: int) -> float:
        return max(0.0, 1 - x[row, target] + x[row, other]) / 3
    return np.array([gap(0, 1, 0) + gap(0, 1, 2), gap(1, 2, 1) + gap(1, 0, 1), 0.0, 0.0])


REDUCE: dict[str, Callable] = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}
for name, (settings, arrays, function) in LOSSES.items():
    for how, reduce in REDUCE.items():
        numpy_row(name, lambda M, name=name, settings=settings, how=how: getattr(M.nn, name)(
            **settings, reduction=how), arrays,
            lambda p, *x, function=function, reduce=reduce: reduce(function(*x)), label=how,
            trained=1 if "SoftMarginLoss" in name else -1)
row("CrossEntropyLoss", lambda M: M.nn.CrossEntropyLoss(
    M.tensor([1.0, 2.0, 0.5]), ignore_index=1, label_smoothing=0.1), (X, classes(4)),
    lambda F, p, x, y: F.cross_entropy(x, y, weight=p["weight"], ignore_index=1, label_smoothing=0.1),
    label="settings")
row("BCEWithLogitsLoss", lambda M: M.nn.BCEWithLogitsLoss(pos_weight=M.tensor([1.0, 2.0, 0.5])),
    (X, unit(4, 3)), lambda F, p, x, y: F.binary_cross_entropy_with_logits(
        x, y, pos_weight=p["pos_weight"]), label="settings")
numpy_row("CosineSimilarity", lambda M: M.nn.CosineSimilarity(), (X, Y), lambda p, a, b: cosine(a, b))
numpy_row("PairwiseDistance", lambda M: M.nn.PairwiseDistance(), (X, Y), lambda p, a, b: distance(a, b))
row("CTCLoss", lambda M: M.nn.CTCLoss(), (np.log(softmax(data(4, 2, 3), 2)).astype(np.float32),
                                          np.array([[1, 2], [2, 0]]), np.array([4, 3]), np.array([2, 1])),
    lambda F, p, *x: F.ctc_loss(*x), grad=False)  # PyTorch's gradient is that behind a log_softmax
row("MultiMarginLoss", lambda M: M.nn.MultiMarginLoss(weight=M.tensor([1.0, 2.0, 0.5])), (X, classes(4)),
    lambda F, p, x, y: F.multi_margin_loss(x, y, weight=p["weight"]), label="weight")

for label, target in (("classes", classes(4, n=3)), ("probabilities", PROBABLE)):
    numpy_row("LinearCrossEntropyLoss", lambda M: M.nn.LinearCrossEntropyLoss(5, 3, bias=True),
              (data(4, 5), target), lambda p, x, y: -(
                  np.log(softmax(x @ p["linear.weight"].T + p["linear.bias"], 1))
                  * (y if y.ndim == 2 else np.eye(3)[y.astype(int)])).sum(1).mean(), label=label, trained=1,
              same_text=False)  # PyTorch's has options for chunks

# -- recurrent cells ---------------------------------------------------------------------------------


def gru_step(p: dict, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    (ar, az, an), (br, bz, bn) = [np.split(v @ p[f"weight_{k}"].T + p[f"bias_{k}"], 3, axis=1)
                                  for k, v in (("ih", x), ("hh", h))]
    z = sigmoid(az + bz)
    return (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * h


numpy_row("RNNCell", lambda M: M.nn.RNNCell(3, 4), (data(5, 3), data(5, 4)),
          lambda p, x, h: np.tanh(x @ p["weight_ih"].T + p["bias_ih"] + h @ p["weight_hh"].T + p["bias_hh"]))
numpy_row("RNNCell", lambda M: M.nn.RNNCell(3, 4, bias=False, nonlinearity="relu"), data(5, 3),
          lambda p, x: np.maximum(x @ p["weight_ih"].T, 0), label="relu")
numpy_row("GRUCell", lambda M: M.nn.GRUCell(3, 4), (data(5, 3), data(5, 4)), gru_step)

# -- transformers ------------------------------------------------------------------------------------


def attended(p: dict, q: np.ndarray, k: np.ndarray, heads: int, mask: Any = 0.0) -> np.ndarray:
    """Attention of (length, batch, features) with the parameters of ``MultiheadAttention``."""
    ws, bs = np.split(p["in_proj_weight"], 3), np.split(p["in_proj_bias"], 3)
    q, k, v = ((x @ w.T + b).reshape(*x.shape[:2], heads, -1).transpose(1, 2, 0, 3)
               for x, w, b in zip((q, k, k), ws, bs))
    weights = softmax(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1]) + mask, -1)
    y = (weights @ v).transpose(2, 0, 1, 3).reshape(q.shape[2], q.shape[0], -1)
    return y @ p["out_proj.weight"].T + p["out_proj.bias"]


def exact_gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def below(p: dict, name: str) -> dict:
    return {k.removeprefix(f"{name}."): v for k, v in p.items() if k.startswith(f"{name}.")}


def layer_normed(p: dict, x: np.ndarray) -> np.ndarray:
    return normed(x, (-1,)) * p["weight"] + p["bias"]


def coder(p: dict, x: np.ndarray, memory: Any = None, first: bool = False, mask: Any = 0.0,
          act: Callable = lambda x: np.maximum(x, 0)) -> np.ndarray:
    """An encoder layer, or a decoder layer where there is a memory; two heads."""
    blocks = [lambda x: attended(below(p, "self_attn"), x, x, 2, mask),
              lambda x: (act(x @ p["linear1.weight"].T + p["linear1.bias"]) @ p["linear2.weight"].T
                         + p["linear2.bias"])]
    if memory is not None:
        blocks.insert(1, lambda x: attended(below(p, "multihead_attn"), x, memory, 2))
    for i, block in enumerate(blocks):
        norm = below(p, f"norm{i + 1}")
        x = x + block(layer_normed(norm, x)) if first else layer_normed(norm, x + block(x))
    return x


def stack(p: dict, x: np.ndarray, memory: Any = None, mask: Any = 0.0) -> np.ndarray:
    for i in range(2):
        x = coder(below(p, f"layers.{i}"), x, memory, mask=mask)
    return layer_normed(below(p, "norm"), x) if "norm.weight" in p else x


SMALL = {"dim_feedforward": 6, "dropout": 0.0}
SRC, TGT = data(5, 3, 4), data(2, 3, 4, seed=1)
ABOVE = np.triu(np.full((5, 5), -np.inf, np.float32), 1)
numpy_row("TransformerEncoderLayer", lambda M: M.nn.TransformerEncoderLayer(4, 2, **SMALL), SRC, coder,
          same_text=False)
numpy_row("TransformerEncoderLayer", lambda M: M.nn.TransformerEncoderLayer(
              4, 2, batch_first=True, norm_first=True, activation="gelu", **SMALL),
          SRC.transpose(1, 0, 2).copy(),
          lambda p, x: coder(p, x.transpose(1, 0, 2), first=True, act=exact_gelu).transpose(1, 0, 2),
          label="settings",
          same_text=False)
numpy_row("TransformerDecoderLayer", lambda M: M.nn.TransformerDecoderLayer(4, 2, **SMALL), (TGT, SRC), coder,
          same_text=False)
numpy_row("TransformerEncoder", lambda M: M.nn.TransformerEncoder(
              M.nn.TransformerEncoderLayer(4, 2, **SMALL), 2), (SRC, ABOVE),
          lambda p, x, mask: stack(p, x, mask=mask), trained=1, same_text=False)
numpy_row("TransformerDecoder", lambda M: M.nn.TransformerDecoder(
              M.nn.TransformerDecoderLayer(4, 2, **SMALL), 2, M.nn.LayerNorm(4)), (TGT, SRC), stack,
          same_text=False)
numpy_row("Transformer", lambda M: M.nn.Transformer(4, 2, 2, 2, **SMALL), (SRC, TGT),
          lambda p, x, y: stack(below(p, "decoder"), y, stack(below(p, "encoder"), x)), same_text=False)
