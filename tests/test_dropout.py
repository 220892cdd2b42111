"""Dropout's masks: how often, how scaled, whole channels, and the same in backward and for one seed."""

import numpy as np
import pytest

import framework as fw

F = fw.nn.functional


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_rate_and_scale(p):
    fw.manual_seed(3)
    y = F.dropout(fw.ones(200, 200), p).numpy()
    kept = y != 0
    np.testing.assert_allclose(y[kept], 1 / (1 - p), rtol=1e-6)
    assert abs(kept.mean() - (1 - p)) < 0.01


def test_backward_reuses_the_mask():
    x = fw.randn(20, 20, requires_grad=True)
    y = F.dropout(x, 0.4)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy() * x.detach().numpy(), y.detach().numpy(), rtol=1e-6)


def test_inplace_writes_into_the_input():
    x = fw.ones(50)
    y = F.dropout(x, 0.5, inplace=True)
    assert y is x and set(x.tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("name, shape", [("dropout1d", (30, 20, 3)), ("dropout1d", (20, 3)),
                                         ("dropout2d", (30, 20, 3, 2)), ("dropout3d", (30, 20, 2, 1, 2)),
                                         ("dropout3d", (20, 2, 1, 2))])
def test_whole_channels(name, shape):
    fw.manual_seed(0)
    y = getattr(F, name)(fw.ones(*shape), 0.5).numpy()
    channels = y.reshape(-1, int(np.prod(shape[-1:]))) if len(shape) == 2 else y.reshape(
        int(np.prod(shape[:2] if len(shape) != 4 or name != "dropout3d" else shape[:1])), -1)
    assert (channels == channels[:, :1]).all()
    assert {0.0, 2.0} == set(channels[:, 0].tolist())


def test_same_seed_same_mask():
    masks = []
    for _ in range(2):
        fw.manual_seed(7)
        masks.append(F.dropout(fw.ones(100), 0.5).numpy())
    assert (masks[0] == masks[1]).all()
    assert (masks[0] != F.dropout(fw.ones(100), 0.5).numpy()).any()


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(name):
    fw.manual_seed(1)
    y = getattr(F, name)(fw.randn(400, 400), 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02


def test_alpha_dropout_has_two_lines():
    """Dropped elements all have one value, kept ones lie on a line of slope a."""
    fw.manual_seed(1)
    x = fw.arange(1, 101).float()
    y = F.alpha_dropout(x, 0.5, training=True).numpy()
    a = (0.5 * (1 + 0.5 * 1.7580993408473766 ** 2)) ** -0.5
    b = a * 0.5 * 1.7580993408473766
    dropped = np.isclose(y, -a * 1.7580993408473766 + b, rtol=1e-5)
    assert 25 < dropped.sum() < 75
    np.testing.assert_allclose(y[~dropped], (a * x.numpy() + b)[~dropped], rtol=1e-5)


@pytest.mark.parametrize("dtype", [fw.float16, fw.float32, fw.float64])
def test_dtype_stays(dtype):
    assert F.dropout(fw.ones(4, dtype=dtype), 0.5).dtype is dtype
    assert F.alpha_dropout(fw.ones(4, dtype=dtype), 0.5, training=True).dtype is dtype


def test_dropout_of_other_dimensions_warns_as_pytorch():
    with pytest.warns(UserWarning, match="dropout2d: wanted an input of 3 or 4 dimensions"):
        y = F.dropout2d(fw.ones(50, 4), 0.5)
    assert set(y.flatten().tolist()) == {0.0, 2.0}
    with pytest.warns(UserWarning, match="samples and channels"):
        y = F.dropout3d(fw.ones(5, 40, 3), 0.5)
    assert (y.amax(2) == y.amin(2)).all()
    with pytest.raises(fw.errors.ShapeError, match="dropout1d"):
        F.dropout1d(fw.ones(2, 2, 2, 2), 0.5)
