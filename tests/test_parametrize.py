"""nn.utils.parametrize, parametrizations, the old norms by hooks, pruning, skip_init, beside PyTorch's."""

import copy
import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import nn

torch = pytest.importorskip("torch")
P = nn.utils.parametrize
X = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def layers(*shape: int) -> list[Any]:
    """The same Linear in both."""
    rng = np.random.default_rng(sum(shape))
    values = {"weight": rng.normal(size=shape[::-1]).astype(np.float32),
              "bias": rng.normal(size=shape[1]).astype(np.float32)}
    made = []
    for M in (fw, torch):
        layer = M.nn.Linear(*shape)
        layer.load_state_dict({k: M.tensor(v) for k, v in values.items()})
        made.append(layer)
    return made


def near(a: Any, b: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=atol)


def same_steps(ours: Any, theirs: Any, x: np.ndarray, steps: int = 4) -> None:
    """Training moves both alike, and their states agree."""
    opts = [M.optim.SGD(m.parameters(), lr=0.1) for M, m in ((fw, ours), (torch, theirs))]
    for _ in range(steps):
        for M, m, opt in ((fw, ours, opts[0]), (torch, theirs, opts[1])):
            opt.zero_grad()
            (m(M.tensor(x)) ** 2).mean().backward()
            opt.step()
    a, b = ours.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    for k in a:
        np.testing.assert_allclose(a[k].numpy(), b[k].numpy(), rtol=1e-3, atol=1e-4, err_msg=k)


class Plus(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1

    def right_inverse(self, x: Any) -> Any:
        return x - 1


class Double(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2


def test_register_assign_remove() -> None:
    layer = nn.Linear(2, 2)
    start, weight = layer.weight.detach().clone(), layer.weight
    assert P.register_parametrization(layer, "weight", Plus()) is layer
    near(layer.weight, start)
    assert layer.parametrizations.weight.original is weight and isinstance(layer, nn.Linear)
    assert type(layer).__name__ == "ParametrizedLinear" and P.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    P.register_parametrization(layer, "weight", Double())
    near(layer.weight, start * 2)
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = fw.ones(2, 2)
    P.register_parametrization(layer, "bias", Plus())
    layer.bias = fw.tensor([5.0, 6.0])
    assert layer.bias.tolist() == [5.0, 6.0] and layer.parametrizations.bias.original.tolist() == [4.0, 5.0]
    with P.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    assert P.is_parametrized(layer, "bias") and not P.is_parametrized(layer, "other")
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        near(twin.weight, layer.weight)
        assert P.is_parametrized(twin) and twin.parametrizations.weight.original is not weight
        P.remove_parametrizations(twin, "bias")
    y = layer(fw.ones(1, 2)).sum()
    y.backward()
    assert weight.grad.tolist() == [[2.0, 2.0]] * 2
    P.remove_parametrizations(layer, "weight")
    near(layer.weight, start * 2)
    assert layer.weight is weight and P.is_parametrized(layer)
    P.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert layer.bias.tolist() == [4.0, 5.0] and type(layer) is nn.Linear and not P.is_parametrized(layer)
    assert not hasattr(layer, "parametrizations") and sorted(layer.state_dict()) == ["bias", "weight"]


def test_parametrize_buffers_and_mistakes() -> None:
    norm = nn.BatchNorm1d(2)
    P.register_parametrization(norm, "running_mean", Plus())
    assert isinstance(norm.parametrizations.running_mean.original, fw.Tensor)
    assert norm.running_mean.tolist() == [0.0, 0.0]
    P.remove_parametrizations(norm, "running_mean")
    assert "running_mean" in norm._buffers

    class Shrink(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:1]
    layer = nn.Linear(2, 2)
    for call in (lambda: P.register_parametrization(layer, "nothing", Plus()),
                 lambda: P.register_parametrization(layer, "weight", Shrink()),
                 lambda: P.remove_parametrizations(layer, "weight")):
        with pytest.raises(ValueError):
            call()
    assert type(layer) is nn.Linear and layer.weight.shape == (2, 2)
    P.register_parametrization(layer, "weight", Shrink(), unsafe=True)
    assert layer.weight.shape == (1, 2)
    other = nn.Linear(2, 2)
    source = P.register_parametrization(nn.Linear(2, 2), "weight", Plus())
    P.transfer_parametrizations_and_params(source, other)
    near(other.weight, source.weight)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [False, True])
def test_weight_norm(dim: int | None, old: bool) -> None:
    ours, theirs = layers(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for M, layer in ((fw, ours), (torch, theirs)):
            home = M.nn.utils if old else M.nn.utils.parametrizations
            assert home.weight_norm(layer, dim=dim) is layer
    near(ours.weight, theirs.weight)
    same_steps(ours, theirs, X)
    if old:
        for M, layer in ((fw, ours), (torch, theirs)):
            M.nn.utils.remove_weight_norm(layer)
        assert list(ours.state_dict()) == list(theirs.state_dict()) and not ours._forward_pre_hooks
        near(ours.weight, theirs.weight)
        with pytest.raises(ValueError, match="no weight_norm"):
            nn.utils.remove_weight_norm(ours)


@pytest.mark.parametrize("old", [False, True])
def test_spectral_norm(old: bool) -> None:
    ours, theirs = layers(4, 3)
    for M, layer in ((fw, ours), (torch, theirs)):
        (M.nn.utils if old else M.nn.utils.parametrizations).spectral_norm(layer, n_power_iterations=2)
    ours.load_state_dict({k: v.numpy().copy() for k, v in theirs.state_dict().items()})
    same_steps(ours, theirs, X)
    near(ours.eval()(fw.tensor(X)), theirs.eval()(torch.tensor(X)))
    if old:
        for M, layer in ((fw, ours), (torch, theirs)):
            M.nn.utils.remove_spectral_norm(layer)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        near(ours.weight, theirs.weight)
    else:
        top = nn.utils.parametrizations.spectral_norm(nn.ConvTranspose2d(4, 5, 3)).weight
        assert abs(fw.linalg.matrix_norm(top.transpose(0, 1).flatten(1), 2).item() - 1) < 0.2
        with pytest.raises(ValueError, match="positive"):
            nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


@pytest.mark.parametrize("shape", [(4, 4), (4, 3), (3, 4)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape: tuple, kind: str, trivial: bool) -> None:
    ours, theirs = layers(*shape)
    for M, layer in ((fw, ours), (torch, theirs)):
        M.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial) \
            if trivial or kind == "householder" else None
    if not P.is_parametrized(ours):
        return
    w = ours.weight.detach().numpy()
    gram = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
    if trivial:
        near(ours.weight, theirs.weight, atol=1e-4)
    ours.load_state_dict({k: v.numpy().copy() for k, v in theirs.state_dict().items()})
    near(ours.weight, theirs.weight, atol=1e-4)
    same_steps(ours, theirs, np.random.default_rng(3).normal(size=(5, shape[0])).astype(np.float32), 3)
    wanted = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0][:shape[1], :shape[0]]
    if shape[0] == 4 or shape[1] == 4:
        ours.weight = fw.tensor(wanted.astype(np.float32))
        np.testing.assert_allclose(ours.weight.detach().numpy(), wanted, atol=1e-5)


def pruned(M: Any, layer: Any, name: str) -> Any:
    prune = importlib.import_module(f"{M.__name__}.nn.utils.prune")
    with M.no_grad():
        mask = M.tensor((W > 0).astype(np.float32))
    {"l1": lambda: prune.l1_unstructured(layer, "weight", 0.3),
     "l1 count": lambda: prune.l1_unstructured(layer, "weight", 5),
     "ln": lambda: prune.ln_structured(layer, "weight", 1, 2, 0),
     "ln fraction": lambda: prune.ln_structured(layer, "weight", 0.5, 1, 1),
     "mask": lambda: prune.custom_from_mask(layer, "weight", mask),
     "identity": lambda: prune.identity(layer, "weight"),
     "scores": lambda: prune.l1_unstructured(layer, "weight", 4, importance_scores=M.tensor(W)),
     "twice": lambda: (prune.l1_unstructured(layer, "weight", 0.3),
                       prune.ln_structured(layer, "weight", 1, 2, 1),
                       prune.l1_unstructured(layer, "weight", 0.5)),
     "global": lambda: prune.global_unstructured([(layer, "weight"), (layer, "bias")], prune.L1Unstructured,
                                                 amount=0.4)}[name]()
    return prune


@pytest.mark.parametrize("name", ["l1", "l1 count", "ln", "ln fraction", "mask", "identity", "scores",
"twice",
                                  "global"])
def test_pruning(name: str) -> None:
    ours, theirs = layers(4, 3)
    mine, other = pruned(fw, ours, name), pruned(torch, theirs, name)
    assert mine.is_pruned(nn.Sequential(ours)) and not mine.is_pruned(nn.Linear(1, 1))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    near(ours.weight_mask, theirs.weight_mask, 0, 0)
    near(ours.weight, theirs.weight, 0, 0)
    same_steps(ours, theirs, X)
    for layer, prune in ((ours, mine), (theirs, other)):
        for part in ("weight", "bias") if name == "global" else ("weight",):
            prune.remove(layer, part)
    assert list(ours.state_dict()) == list(theirs.state_dict()) and not mine.is_pruned(ours)
    near(ours.weight, theirs.weight)
    with pytest.raises(ValueError, match="no pruned"):
        mine.remove(ours, "weight")


def test_random_pruning_and_mistakes() -> None:
    prune = nn.utils.prune
    fw.manual_seed(0)
    layer = prune.random_structured(nn.Conv2d(4, 6, 3), "weight", 2, 0)
    assert int((layer.weight_mask.sum((1, 2, 3)) == 0).sum()) == 2
    prune.random_unstructured(layer, "weight", 0.5)
    assert int(layer.weight_mask.sum()) == 4 * 4 * 9 // 2
    hook = next(iter(layer._forward_pre_hooks.values()))
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    assert isinstance(hook[0], prune.RandomStructured) and [type(m).__name__ for m in hook] == [
        "RandomStructured", "RandomUnstructured"]
    for call, error in ((lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", 1.5), ValueError),
                        (lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", 5), ValueError),
                        (lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", "a"), TypeError),
                        (lambda: prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0), ValueError),
                        (lambda: prune.ln_structured(nn.Linear(2, 2), "weight", 1, 2, 5), IndexError),
                        (lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", 1, fw.ones(3)), ValueError),
                        (lambda: prune.global_unstructured([], prune.LnStructured, amount=1, n=2),
                         TypeError)):
        with pytest.raises(error):
            call()
    assert prune.L1Unstructured(1).prune(fw.tensor([3.0, -1.0])).tolist() == [3.0, 0.0]


def test_skip_init_and_memory_formats() -> None:
    fw.manual_seed(3)
    before = fw.rand(1).item()
    fw.manual_seed(3)
    layer = nn.utils.skip_init(nn.Linear, 2, 3, dtype=fw.float64)
    assert layer.weight.shape == (3, 2) and layer.bias.dtype is fw.float64 and fw.rand(1).item() == before
    with pytest.raises(TypeError, match="Module class"):
        nn.utils.skip_init(len)
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Conv3d(2, 3, 3))
    weights = [m.weight for m in net]
    nn.utils.convert_conv2d_weight_memory_format(net, fw.channels_last)
    nn.utils.convert_conv3d_weight_memory_format(net, fw.channels_last_3d)
    assert weights[0] is net[0].weight and weights[0].is_contiguous(memory_format=fw.channels_last)
    assert weights[1].is_contiguous(memory_format=fw.channels_last_3d)


@pytest.mark.parametrize("kind", [1.0, 2.0, float("inf")])
def test_norms_of_gradients(kind: float) -> None:
    grads = [np.array([3.0, -4.0], np.float32), np.array([[12.0]], np.float32)]
    got = []
    for M in (fw, torch):
        total = M.nn.utils.get_total_norm([M.tensor(g) for g in grads], kind)
        p = M.nn.Parameter(M.zeros(2))
        p.grad = M.tensor(grads[0])
        M.nn.utils.clip_grads_with_norm_(p, 1.0, total)
        with pytest.warns(FutureWarning):
            M.nn.utils.clip_grad_norm([p], 0.1)
        got.append([total.item(), *p.grad.tolist()])
    np.testing.assert_allclose(got[0], got[1], rtol=1e-6)
    with pytest.raises(RuntimeError, match="nan"):
        nn.utils.get_total_norm([fw.tensor([float("nan")])], error_if_nonfinite=True)
    assert nn.utils.get_total_norm([]).item() == 0.0


def test_a_parametrization_that_is_refused_leaves_the_tensor() -> None:
    class Step(nn.Module):
        def __init__(self, forward, right_inverse) -> None:
            super().__init__()
            self.f, self.g = forward, right_inverse

        def forward(self, x):
            return self.f(x)

        def right_inverse(self, x):
            return self.g(x)

    layer = nn.Linear(2, 2)
    weight, before = layer.weight, layer.weight.tolist()
    with pytest.raises(ValueError, match="must not change the shape"):
        nn.utils.parametrize.register_parametrization(layer, "weight", Step(lambda x: x[:1], lambda x: 2 * x))
    assert layer.weight is weight and weight.tolist() == before and type(layer) is nn.Linear
    nn.utils.parametrize.register_parametrization(layer, "weight", Step(lambda x: x, lambda x: x))

    def fail(x):
        raise RuntimeError("no inverse of this")

    for inverse, kind in ((lambda x: x.double(), ValueError), (fail, RuntimeError)):
        with pytest.raises(kind):
            nn.utils.parametrize.register_parametrization(layer, "weight", Step(lambda x: 2 * x, inverse))
        assert layer.weight.tolist() == before and len(layer.parametrizations.weight) == 1


def test_cached_values_are_of_their_thread_and_module() -> None:
    import threading
    layers = [fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(2, 2)) for _ in range(2)]
    parametrize = fw.nn.utils.parametrize
    seen: list[Any] = []
    with parametrize.cached():
        weight = layers[0].weight
        thread = threading.Thread(target=lambda: seen.append((layers[0].weight is layers[0].weight, weight)))
        thread.start()
        thread.join()
        assert seen[0][0] is False and layers[0].weight is weight  # the other thread keeps nothing
        layers[0].weight = fw.zeros(2, 2) + fw.eye(2)
        assert layers[0].weight is not weight and fw.allclose(layers[0].weight, fw.eye(2))
        where = id(layers[1])
        stale = layers[1].weight
        del layers[1]
        others = [fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(2, 2)) for _ in range(20)]
        assert all(o.weight is not stale for o in others) and where not in map(id, others)
