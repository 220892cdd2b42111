"""Averages of models beside PyTorch's, batch norms brought up to date, and what goes wrong."""

import copy

import numpy as np
import pytest

import framework as fw
from framework.optim import swa_utils


def models(M, dtype):
    """Models with other values each, with a batch norm and a buffer of integers."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = M.nn.Sequential(M.nn.Linear(3, 4), M.nn.BatchNorm1d(4)).to(dtype)
        with M.no_grad():
            for p in (*model.parameters(), *model.buffers()):
                p.copy_(M.tensor(rng.normal(size=tuple(p.shape)) * 10))
        yield model


AVERAGES = {
    "mean": lambda u: {},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.75)},
    "swa": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "ema lists": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.75)},
    "swa lists": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "buffers": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.75), "use_buffers": True},
}


@pytest.mark.parametrize("name", AVERAGES)
def test_equals_pytorch(name):
    torch = pytest.importorskip("torch")
    ends = []
    for M, utils in ((fw, swa_utils), (torch, torch.optim.swa_utils)):
        averaged = None
        for model in models(M, M.float64):
            averaged = averaged or utils.AveragedModel(model, **AVERAGES[name](utils))
            averaged.update_parameters(model)
        ends.append({k: v.numpy() for k, v in averaged.state_dict().items()})
        assert averaged.training and averaged(M.ones(2, 3, dtype=M.float64)).shape == (2, 4)
    assert list(ends[0]) == list(ends[1]) and ends[0]["n_averaged"] == 5
    for key, value in ends[1].items():  # PyTorch's weight of lists is a float32
        np.testing.assert_allclose(ends[0][key], value, 1e-13 if "lists" not in name else 1e-6, err_msg=key)
        assert ends[0][key].dtype == value.dtype


def test_the_model_itself_is_not_touched():
    model = fw.nn.Linear(2, 1)
    before = model.weight.tolist()
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    with fw.no_grad():
        averaged.module.weight.fill_(3.0)
    assert model.weight.tolist() == before
    again = swa_utils.AveragedModel(model)
    again.load_state_dict(averaged.state_dict())
    assert again.n_averaged.item() == 1 and again.module.weight.tolist() == [[3.0, 3.0]]
    assert copy.deepcopy(averaged).n_averaged.item() == 1


def test_update_bn():
    model = fw.nn.Sequential(fw.nn.Dropout(0.5), fw.nn.BatchNorm1d(2, momentum=0.3)).eval()
    batches = [np.random.default_rng(i).normal(size=(8, 2)).astype("float32") for i in range(3)]
    model[0].p = 0.0
    swa_utils.update_bn([(fw.tensor(b), "label") for b in batches], model, device="cpu")
    np.testing.assert_allclose(model[1].running_mean.numpy(), np.mean(batches, (0, 1)), rtol=1e-5)
    np.testing.assert_allclose(model[1].running_var.numpy(), np.mean(np.var(batches, 1, ddof=1), 0),
                               rtol=1e-5)
    assert model[1].momentum == 0.3 and not model.training
    with pytest.raises(ZeroDivisionError):  # what fails leaves momentum and mode
        swa_utils.update_bn((1 / 0 for _ in range(1)), model)
    assert model[1].momentum == 0.3 and not model.training
    swa_utils.update_bn(None, fw.nn.Linear(1, 1))  # nothing to do, and nothing is read


@pytest.mark.parametrize("call, error, text", [
    (lambda m: swa_utils.get_ema_avg_fn(1.5), ValueError, r"decay=1.5 must be in \[0, 1\]"),
    (lambda m: swa_utils.get_ema_multi_avg_fn(-1), ValueError, "decay=-1"),
    (lambda m: swa_utils.AveragedModel(m, avg_fn=max, multi_avg_fn=max), AssertionError, "not both"),
    (lambda m: swa_utils.AveragedModel(m).update_parameters(fw.nn.Sequential()), ValueError, "zip"),
])
def test_wrong_use(call, error, text):
    with pytest.raises(error, match=text):
        call(fw.nn.Linear(1, 1))
