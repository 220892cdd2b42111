"""Lazy modules before and at their first call; the adaptive softmax; batch norm over several workers."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.errors import CheckpointError

LAZY: list[tuple[str, tuple, tuple]] = [("LazyLinear", (4,), (2, 3))]
for n, shape in ((1, (2, 3, 5)), (2, (2, 3, 5, 4)), (3, (2, 3, 3, 4, 3))):
    LAZY += [(f"LazyConv{n}d", (4, 2), shape), (f"LazyConvTranspose{n}d", (4, 2), shape),
             (f"LazyBatchNorm{n}d", (), shape), (f"LazyInstanceNorm{n}d", (), shape)]
each = pytest.mark.parametrize("name,args,shape", LAZY, ids=[case[0] for case in LAZY])


@each
def test_becomes_the_plain_layer(name: str, args: tuple, shape: tuple) -> None:
    layer = getattr(nn, name)(*args)
    plain = getattr(nn, name.removeprefix("Lazy"))
    if "InstanceNorm" in name:  # whose lazy form has other defaults, as in PyTorch
        args = (1e-5, 0.1, True, True)
    assert layer.has_uninitialized_params() and isinstance(layer, plain)
    assert list(layer.state_dict()) == list(plain(3, *args).state_dict())
    weights = list(layer.parameters())
    optimizer = fw.optim.SGD(weights, lr=0.1) if weights else None
    layer.double()
    y = layer(fw.ones(*shape, dtype=fw.float64))
    assert type(layer) is plain and y.dtype is fw.float64
    assert repr(layer) == repr(plain(3, *args)) and not hasattr(layer, "initialize_parameters")
    assert all(a is b and type(b) is nn.Parameter for a, b in zip(weights, layer.parameters()))
    if optimizer is not None:
        y.sum().backward()
        optimizer.step()
        assert all(p.grad.dtype is fw.float64 for p in weights)


@each
def test_copies_and_states(name: str, args: tuple, shape: tuple) -> None:
    def lazy() -> Any:
        return getattr(nn, name)(*args)
    fresh = lazy()
    for twin in (copy.deepcopy(fresh), pickle.loads(pickle.dumps(fresh))):
        assert type(twin) is type(fresh) and twin.has_uninitialized_params()
        twin(fw.ones(shape))
        assert fresh.has_uninitialized_params()
    other = lazy()
    other.load_state_dict(fresh.state_dict())  # nothing to load yet
    assert other.has_uninitialized_params()
    done = lazy()
    done(fw.ones(shape))
    state = done.state_dict()
    other.load_state_dict(state)
    assert not other.has_uninitialized_params()
    assert [v.tolist() for v in other.state_dict().values()] == [v.tolist() for v in state.values()]
    done.eval()
    np.testing.assert_array_equal(other.eval()(fw.ones(shape)).detach().numpy(),
                                  done(fw.ones(shape)).detach().numpy())
    assert repr(other) == repr(done)
    with pytest.raises(CheckpointError, match="not initialised in the checkpoint"):
        done.load_state_dict(fresh.state_dict())


@each
def test_as_torch(name: str, args: tuple, shape: tuple) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        theirs(torch.ones(shape))
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(ours(fw.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(),
                               rtol=1e-4, atol=1e-5)


def test_lazy_mistakes() -> None:
    with pytest.raises(ValueError, match="4 or 5|3 or 4 dimensions"):
        nn.LazyConv2d(4, 3)(fw.ones(2, 3))
    layer = nn.LazyConv2d(4, 3, groups=2)
    with pytest.raises(ValueError, match="multiples of groups"):
        layer(fw.ones(1, 3, 5, 5))
    assert layer.has_uninitialized_params() and layer.in_channels == 0
    with pytest.raises(ValueError, match=r"\(N, C, H, W\)"):
        nn.LazyBatchNorm2d()(fw.ones(2, 3))
    with pytest.raises(RuntimeError, match="materialize"):
        nn.utils.parameters_to_vector(nn.LazyLinear(3).parameters())

    class Forgetful(nn.LazyLinear):
        def initialize_parameters(self, input: Any) -> None:
            pass
    with pytest.raises(RuntimeError, match="left parameters"):
        Forgetful(2)(fw.ones(1, 2))
    nn.LazyLinear(3).reset_parameters()  # nothing to draw, nothing to raise


def test_adaptive_log_softmax() -> None:
    torch = pytest.importorskip("torch")
    for bias in (False, True):
        settings: tuple = (16, 30, [5, 12], 2.0, bias)
        ours, theirs = (M.nn.AdaptiveLogSoftmaxWithLoss(*settings) for M in (fw, torch))
        state = {k: v.numpy().copy() for k, v in theirs.state_dict().items()}
        assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in state.items()}
        ours.load_state_dict(state)
        assert repr(ours) == repr(theirs)
        x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
        y = np.array([0, 4, 5, 11, 12, 29, 3, 7])
        for a, t in ((x, y), (x[0], y[5]), (x[:2], y[:2])):
            p, q = fw.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
            mine, other = ours(p, fw.tensor(t)), theirs(q, torch.tensor(t))
            for m, o in zip(mine, other):
                np.testing.assert_allclose(m.detach().numpy(), o.detach().numpy(), rtol=1e-5, atol=1e-6)
            mine.loss.backward()
            other.loss.backward()
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-6)
        for (n, a), b in zip(ours.named_parameters(), theirs.parameters()):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=n)
        many = np.random.default_rng(1).normal(size=(50, 16)).astype(np.float32) * 4
        np.testing.assert_allclose(ours.log_prob(fw.tensor(many)).detach().numpy(),
                                   theirs.log_prob(torch.tensor(many)).detach().numpy(), rtol=1e-4, atol=1e-5)
        assert ours.predict(fw.tensor(many)).tolist() == theirs.predict(torch.tensor(many)).tolist()
    assert ours.log_prob(fw.tensor(x)).exp().sum(1).sub(1).abs().max().item() < 1e-5
    for cutoffs in ([], [5, 5], [12, 5], [0, 5], [5, 30]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 30, cutoffs)
    with pytest.raises(RuntimeError, match="from 0 to 29"):
        ours(fw.tensor(x), fw.full((8,), 30))
    with pytest.raises(ValueError, match="wanted input"):
        ours(fw.tensor(x), fw.tensor([1]))


def test_sync_batch_norm_over_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sum over workers, each half of a batch gets what BatchNorm gives the whole."""
    x = fw.randn(6, 3, 4, dtype=fw.float64, generator=fw.Generator().manual_seed(1)).requires_grad_()
    whole = nn.BatchNorm1d(3, dtype=fw.float64)
    with fw.no_grad():
        whole.weight.copy_(fw.tensor([1.0, 2.0, 3.0]))
    wanted = whole(x)
    (wanted ** 3).sum().backward()
    halves = (x.detach()[:2].requires_grad_(), x.detach()[2:].requires_grad_())
    layer = nn.SyncBatchNorm(3, dtype=fw.float64)
    layer.load_state_dict(whole.state_dict())
    layer.reset_running_stats()
    parts: list[Any] = []

    def all_reduce(t: Any, group: Any) -> Any:
        """The sums of the other worker, which is asked for the same step."""
        assert group == "all"
        y = halves[1]
        if len(parts) == 0:
            parts.append(t)
            return t + fw.cat([y.sum((0, 2)), fw.tensor([16.0], dtype=fw.float64)])
        mean = (parts[0][:3] + y.sum((0, 2))) / 24.0
        return t + ((y - mean.reshape(-1, 1)) ** 2).sum((0, 2))
    monkeypatch.setattr(nn.SyncBatchNorm, "all_reduce", staticmethod(all_reduce))
    layer.process_group = "all"
    y = layer(halves[0])
    np.testing.assert_allclose(y.detach().numpy(), wanted.detach().numpy()[:2], rtol=1e-10)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        np.testing.assert_allclose(getattr(layer, name).numpy(), getattr(whole, name).numpy(), rtol=1e-10)
    parts.clear()
    (layer(halves[0]) ** 3).sum().backward()  # this half's loss, through the statistics, into both halves
    assert halves[1].grad.abs().sum() > 0
    assert layer.eval()(halves[0]).shape == (2, 3, 4)


def test_convert_sync_batchnorm() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, affine=False),
                        nn.Sequential(nn.BatchNorm2d(2, momentum=None)).eval())
    weight, keys = net[2][0].weight, list(net.state_dict())
    x = fw.randn(2, 1, 3, 3)
    fw.manual_seed(0)
    wanted = copy.deepcopy(net)(x)
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net, "group")
    assert made is net and type(net[1]) is type(net[2][0]) is nn.SyncBatchNorm
    assert net[2][0].weight is weight and list(net.state_dict()) == keys and not net[2][0].training
    assert net[1].process_group == "group" and net[1].momentum == 0.1
    np.testing.assert_allclose(net(x).detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6)
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2))
    assert type(alone) is nn.SyncBatchNorm
    with pytest.raises(ValueError, match=r"\(N, C, ...\)"):
        alone(fw.ones(3))
