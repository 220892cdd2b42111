"""Batch norms folded into the layers before them."""

import copy

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.nn.utils import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)

LAYERS = {
    "1d": (lambda: nn.Conv1d(4, 6, 3), nn.BatchNorm1d, (2, 4, 9)),
    "2d, groups": (lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d, (2, 4, 7, 8)),
    "3d": (lambda: nn.Conv3d(4, 6, 2, stride=2), nn.BatchNorm3d, (2, 4, 4, 5, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), nn.BatchNorm2d, (2, 4, 5, 5)),
    "transposed, groups": (lambda: nn.ConvTranspose1d(4, 6, 3, groups=2, bias=False), nn.BatchNorm1d,
                           (2, 4, 9)),
    "linear": (lambda: nn.Linear(4, 6), nn.BatchNorm1d, (5, 4)),
    "linear without bias": (lambda: nn.Linear(4, 6, bias=False), nn.BatchNorm1d, (5, 4)),
}


def norm(kind, affine=True, channels=6):
    bn = kind(channels, affine=affine).double().eval()
    for t in (bn.running_mean, bn.weight, bn.bias):
        if t is not None:
            t.data.normal_()
    bn.running_var.uniform_(0.5, 2.0)
    return bn


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_fused_layers_do_the_same(name, affine):
    fw.manual_seed(0)
    make, kind, shape = LAYERS[name]
    layer, bn = make().double().eval(), norm(kind, affine)
    before = copy.deepcopy(layer.state_dict())
    if "linear" in name:
        fused = fuse_linear_bn_eval(layer, bn)
    else:
        fused = fuse_conv_bn_eval(layer, bn, "transposed" in name)
    x = fw.randn(*shape, dtype=fw.float64)
    found, wanted = fused(x).detach().numpy(), bn(layer(x)).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert type(fused) is type(layer) and not fused.training and fused.weight.requires_grad
    assert isinstance(fused.bias, nn.Parameter) and fused.weight.dtype is fw.float64
    for key, value in layer.state_dict().items():
        assert fw.equal(value, before[key])


def test_fused_weights_are_pytorchs():
    torch = pytest.importorskip("torch")
    fusion = pytest.importorskip("torch.nn.utils.fusion")
    draw = np.random.default_rng(0)
    w, (b, mean, gamma, beta) = draw.standard_normal((3, 2, 3, 3)), draw.standard_normal((4, 3))
    var = draw.uniform(0.5, 2, 3)
    for ours, theirs, weight in ((fuse_conv_bn_weights, fusion.fuse_conv_bn_weights, w),
                                 (fuse_linear_bn_weights, fusion.fuse_linear_bn_weights, w[:, :, 0, 0])):
        for bias in (b, None):
            def call(function, make, weight=weight, bias=bias):
                given = [None if a is None else make(a) for a in (weight, bias, mean, var)]
                return function(*given, 1e-5, make(gamma), make(beta))
            for found, wanted in zip(call(ours, fw.tensor), call(theirs, torch.tensor)):
                np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-12)


def test_what_cannot_be_fused():
    layer, bn = nn.Conv2d(4, 6, 3).eval(), nn.BatchNorm2d(6).eval()
    with pytest.raises(ValueError, match="eval"):
        fuse_conv_bn_eval(layer, nn.BatchNorm2d(6))
    with pytest.raises(ValueError, match="eval"):
        fuse_linear_bn_eval(nn.Linear(4, 6), bn)
    with pytest.raises(ValueError, match="running statistics"):
        fuse_conv_bn_eval(layer, nn.BatchNorm2d(6, track_running_stats=False).eval())
    with pytest.raises(ValueError, match="5 channels"):
        fuse_conv_bn_eval(layer, nn.BatchNorm2d(5).eval())
