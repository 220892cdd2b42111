"""Training steps whose launches, waits and copies are counted by the stand-in for CuPy: networks narrow,
but as deep as those that they stand for.   python tests/device_steps.py [name ...]   prints the counts.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import framework as fw
from framework import nn

F = nn.functional
STEPS = {}


def step(function):
    """A function that makes (network, inputs, target, optimizer)."""
    STEPS[function.__name__] = function
    return function


def _images(n, c, s, classes):
    r = np.random.default_rng(1)
    return fw.tensor(r.standard_normal((n, c, s, s)).astype("f4")), fw.tensor(r.integers(0, classes, n))


def _sgd(net):
    return fw.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


@step
def mlp():
    "784-512-512-10, SGD"
    net = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    x, y = _images(8, 1, 28, 10)
    return net, (x.reshape(8, 784),), y, _sgd


def _conv_bn(i, o, k, s=1):
    return [nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o)]


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a = nn.Sequential(*_conv_bn(i, o, 3, stride), nn.ReLU(), *_conv_bn(o, o, 3))
        self.b = nn.Sequential(*([] if stride == 1 and i == o else _conv_bn(i, o, 1, stride)))

    def forward(self, x):
        return F.relu(self.a(x) + self.b(x))


@step
def resnet20():
    "ResNet-20, SGD"
    layers, c = [*_conv_bn(3, 4, 3), nn.ReLU()], 4
    for width, stride in ((4, 1), (8, 2), (16, 2)):
        for k in range(3):
            layers.append(Block(c, width, stride if k == 0 else 1))
            c = width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10))
    x, y = _images(2, 3, 16, 10)
    return net, (x,), y, _sgd


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        o = 4 * width
        first, second = _conv_bn(i, width, 1), _conv_bn(width, width, 3, stride)
        self.a = nn.Sequential(*first, nn.ReLU(), *second, nn.ReLU(), *_conv_bn(width, o, 1))
        self.b = nn.Sequential(*([] if stride == 1 and i == o else _conv_bn(i, o, 1, stride)))

    def forward(self, x):
        return F.relu(self.a(x) + self.b(x))


@step
def resnet50():
    "ResNet-50, SGD"
    layers, c = [*_conv_bn(3, 2, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 2
    for width, stride, blocks in ((2, 1, 3), (4, 2, 4), (8, 2, 6), (16, 2, 3)):
        for k in range(blocks):
            layers.append(Bottleneck(c, width, stride if k == 0 else 1))
            c = 4 * width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10))
    x, y = _images(2, 3, 32, 10)
    return net, (x,), y, _sgd


@step
def cnn():
    "convolutions, max-pooling, dropout, Adam"
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(288, 16),
        nn.ReLU(),
        nn.Linear(16, 10),
    )
    x, y = _images(2, 1, 16, 10)
    return net, (x,), y, lambda net: fw.optim.Adam(net.parameters(), lr=1e-4)


class Text(nn.Module):
    def __init__(self, v, d, h):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(v, d), nn.LSTM(d, h, 2, batch_first=True), nn.Linear(h, v)

    def forward(self, x):
        return self.o(self.r(self.e(x))[0]).flatten(0, 1)


@step
def lstm():
    "embedding, LSTM of 2 layers over 64 steps, Adam"
    r = np.random.default_rng(1)
    x, y = fw.tensor(r.integers(0, 20, (4, 64))), fw.tensor(r.integers(0, 20, 256))
    return Text(20, 8, 16), (x,), y, lambda net: fw.optim.Adam(net.parameters(), lr=1e-4)


class Attention(nn.Module):
    def __init__(self, d, heads, causal):
        super().__init__()
        self.d, self.heads, self.causal = d, heads, causal
        self.l1, self.l2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        parts = (
            p.view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for p in self.qkv(self.l1(x)).split(d, dim=2)
        )
        y = F.scaled_dot_product_attention(*parts, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.f2(F.gelu(self.f1(self.l2(x))))


class GPT(nn.Module):
    def __init__(self, d, heads, layers, t, v):
        super().__init__()
        self.te, self.pe = nn.Embedding(v, d), nn.Embedding(t, d)
        self.b = nn.ModuleList([Attention(d, heads, True) for _ in range(layers)])
        self.ln, self.h = nn.LayerNorm(d), nn.Linear(d, v, bias=False)

    def forward(self, i):
        x = self.te(i) + self.pe(fw.arange(i.shape[1], device=i.device))
        for block in self.b:
            x = block(x)
        return self.h(self.ln(x)).flatten(0, 1)


@step
def gpt():
    "GPT of 6 layers, AdamW"
    r = np.random.default_rng(1)
    x, y = fw.tensor(r.integers(0, 17, (2, 16))), fw.tensor(r.integers(0, 17, 32))
    return GPT(24, 2, 6, 16, 17), (x,), y, lambda net: fw.optim.AdamW(net.parameters(), lr=1e-4)


class ViT(nn.Module):
    def __init__(self, size, patch, d, heads, layers, classes):
        super().__init__()
        n = (size // patch) ** 2
        self.patches = nn.Conv2d(3, d, patch, patch)
        self.cls, self.pos = nn.Parameter(fw.zeros(1, 1, d)), nn.Parameter(fw.zeros(1, n + 1, d))
        self.b = nn.ModuleList([Attention(d, heads, False) for _ in range(layers)])
        self.ln, self.h = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = fw.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        for block in self.b:
            x = block(x)
        return self.h(self.ln(x[:, 0]))


@step
def vit():
    "ViT of 12 layers, AdamW"
    x, y = _images(2, 3, 16, 10)
    return ViT(16, 4, 12, 3, 12, 10), (x,), y, lambda net: fw.optim.AdamW(net.parameters(), lr=1e-4)


class Run:
    """One network on a device; ``step()`` is one training step, which reads nothing back."""

    def __init__(self, name, device):
        fw.manual_seed(0)
        net, inputs, target, make = STEPS[name]()
        self.net, self.target = net.to(device), target.to(device)
        self.inputs = [x.to(device) for x in inputs]
        self.optimizer = make(self.net)

    def step(self):
        """The loss, a tensor."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(*self.inputs), self.target)
        loss.backward()
        self.optimizer.step()
        return loss


def counted(name, steps=2):
    """(launches, waits, copies from the host) of a step that is not the first one."""
    from cupy import counts

    run = Run(name, "cuda")
    for _ in range(steps):
        run.step()
    counts.clear()
    run.step()
    return Counter(counts.launches), Counter(counts.waits), Counter(counts.copies)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent / "standin"))
    for one in sys.argv[1:] or STEPS:
        found = counted(one)
        print(one, *(f"{what} {sum(c.values())}" for what, c in zip(("launches", "waits", "copies"), found)))
        for what, c in zip(("launches", "waits", "copies"), found):
            print(f"  {what}:", *(f"\n    {n} {k}" for k, n in c.most_common(12)))
