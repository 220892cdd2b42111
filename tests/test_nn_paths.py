"""The layers under PyTorch's paths, gradients of convolutions, what subclasses of its bases override."""

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import nn

# not offered: tracing and quantization have no counterpart here, DataParallel is distributed's
LEFT_OUT = {"_ConvTransposeMixin", "_LazyConvXdMixin", "_LazyProtocol",
            "LinearCrossEntropyOptions", "_AutoDefault", "_CircularPadNd", "_ReflectionPadNd",
            "_ReplicationPadNd", "_WrappedHook"}


def test_classes_stand_where_pytorch_has_them() -> None:
    pytest.importorskip("torch")
    for path in nn.modules._PATHS:
        theirs = importlib.import_module(f"torch.nn.modules.{path}")
        ours = importlib.import_module(f"framework.nn.modules.{path}")
        assert getattr(nn.modules, path) is ours
        names = {n for n, v in vars(theirs).items()
                 if inspect.isclass(v) and v.__module__ == theirs.__name__} - LEFT_OUT
        assert not [n for n in names if not hasattr(ours, n)], path
        for name in names & set(dir(nn)):
            assert getattr(ours, name) is getattr(nn, name)
    assert nn.modules.Conv2d is nn.Conv2d
    with pytest.raises(AttributeError):
        _ = nn.modules.nothing
    with pytest.raises(AttributeError):
        _ = nn.nothing


def test_bases() -> None:
    from framework.nn.modules.batchnorm import _BatchNorm, _NormBase
    from framework.nn.modules.conv import _ConvNd, _ConvTransposeNd
    from framework.nn.modules.loss import _Loss, _WeightedLoss
    from framework.nn.modules.pooling import _AvgPoolNd, _MaxPoolNd
    assert all(isinstance(m, _BatchNorm) for m in (
        nn.BatchNorm1d(1), nn.SyncBatchNorm(1), nn.LazyBatchNorm2d()))
    assert isinstance(nn.InstanceNorm2d(1), _NormBase) and not isinstance(nn.InstanceNorm2d(1), _BatchNorm)
    assert isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvTransposeNd)
    assert isinstance(nn.Conv3d(1, 1, 1), _ConvNd)
    assert isinstance(nn.NLLLoss(), _WeightedLoss) and isinstance(nn.MSELoss(), _Loss)
    assert isinstance(nn.MaxPool2d(1), _MaxPoolNd) and isinstance(nn.AvgPool1d(1), _AvgPoolNd)


def test_subclasses_of_the_bases() -> None:
    class AnyNorm(nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, input: Any) -> None:
            assert input.ndim == 6

    class Standardized(nn.Conv2d):
        def forward(self, input: Any) -> Any:
            w = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, w, self.bias)
    assert AnyNorm(2)(fw.ones(1, 2, 1, 2, 1, 1)).shape == (1, 2, 1, 2, 1, 1)
    layer = Standardized(1, 2, 3, padding=1, padding_mode="circular", bias=False)
    assert abs(layer(fw.ones(1, 1, 4, 4)).detach().numpy()).max() < 1e-6
    assert layer._reversed_padding_repeated_twice == [1, 1, 1, 1]


def test_helpers() -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = nn.modules.utils, torch.nn.modules.utils
    for f in ("_single", "_pair", "_triple", "_quadruple"):
        for value in (3, [1, 2], "ab"):
            assert getattr(ours, f)(value) == getattr(theirs, f)(value)
    assert ours._reverse_repeat_tuple((1, 2), 2) == theirs._reverse_repeat_tuple((1, 2), 2)
    assert ours._list_with_default([None, 3], [5, 6, 7]) == theirs._list_with_default([None, 3], [5, 6, 7])
    for M, utils in ((fw, ours), (torch, theirs)):
        state = M.nn.Sequential(M.nn.Sequential(M.nn.BatchNorm1d(1))).state_dict()
        utils.consume_prefix_in_state_dict_if_present(state, "0.")
        assert list(state)[0] == "0.weight" and sorted(state._metadata) == ["", "0"]
    with pytest.raises(ValueError):
        ours._list_with_default([None, 3], [5])


@pytest.mark.parametrize("n,size", [(1, (2, 4, 7)), (2, (2, 4, 6, 5)), (3, (1, 4, 4, 5, 4))])
def test_gradients_of_convolutions(n: int, size: tuple) -> None:
    torch = pytest.importorskip("torch")
    settings: dict[str, Any] = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=size), rng.normal(size=(6, 2, *[3] * n))
    g = rng.normal(size=getattr(torch.nn.functional, f"conv{n}d")(
        torch.tensor(x), torch.tensor(w), **settings).shape)
    for of, args in (("input", (size, w, g)), ("weight", (x, w.shape, g))):
        a, b = (getattr(M.nn.grad, f"conv{n}d_{of}")(
            *[M.tensor(v) if isinstance(v, np.ndarray) else v for v in args], **settings)
            for M in (fw, torch))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)
        assert not a.requires_grad
