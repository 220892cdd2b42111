"""Module: registration, the tree, state, hooks, mistakes; containers; init; utils."""

import copy
import gc
import math
import pickle
import warnings
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.errors import CheckpointError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.scale = nn.Parameter(fw.ones(3))
        self.register_buffer("seen", fw.zeros(1))
        self.register_buffer("cache", fw.zeros(2), persistent=False)
        self.register_parameter("none", None)

    def forward(self, x: Any) -> Any:
        return self.lin(x) * self.scale


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(3, 3)
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.head.weight
        self.again = self.head
        self.size = 3

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.tied(self.head(x))


def torch_net() -> Any:
    torch = pytest.importorskip("torch")

    def block() -> Any:
        b = torch.nn.Module()
        b.lin = torch.nn.Linear(3, 3)
        b.scale = torch.nn.Parameter(torch.ones(3))
        b.register_buffer("seen", torch.zeros(1))
        b.register_buffer("cache", torch.zeros(2), persistent=False)
        b.register_parameter("none", None)
        return b
    net = torch.nn.Module()
    net.blocks = torch.nn.ModuleList([block(), block()])
    net.head = torch.nn.Linear(3, 3)
    net.tied = torch.nn.Linear(3, 3)
    net.tied.weight = net.head.weight
    net.again = net.head
    return net


def values(net: Any) -> dict[str, np.ndarray]:
    return {k: v.numpy().copy() for k, v in net.state_dict().items()}


def same(a: dict, b: dict) -> None:
    assert list(a) == list(b)
    for k in a:
        np.testing.assert_array_equal(a[k], b[k])


# -- the tree ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("prefix", ["", "p"])
def test_walks_are_those_of_torch(duplicates: bool, prefix: str) -> None:
    ours, theirs = Net(), torch_net()
    for walk in ("named_parameters", "named_buffers", "named_modules"):
        def names(m: Any, walk: str = walk) -> list[str]:
            return [n for n, _ in getattr(m, walk)(prefix=prefix, remove_duplicate=not duplicates)]
        assert names(ours) == names(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_children()] == [n for n, _ in theirs.named_children()]
    assert [n for n, _ in ours.blocks[0].named_parameters(recurse=False)] == ["scale"]


def test_tied_weights_count_once_and_stay_tied() -> None:
    net = Net()
    assert len(list(net.parameters())) == 2 * 3 + 3
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), net.double()):
        assert twin.tied.weight is twin.head.weight
        assert twin.again is twin.head
    net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()}, assign=True)
    assert net.tied.weight is net.head.weight


def test_registration() -> None:
    m = nn.Module()
    m.p = nn.Parameter(fw.ones(2))
    m.b = nn.Buffer(fw.zeros(1))
    m.t = nn.Buffer(fw.zeros(1), persistent=False)
    m.m = nn.Identity()
    m.plain = fw.ones(3)
    assert list(m._parameters) == ["p"] and list(m._buffers) == ["b", "t"] and list(m._modules) == ["m"]
    assert list(m.state_dict()) == ["p", "b"]
    m.b = fw.ones(1)
    assert m.state_dict()["b"].tolist() == [1.0]
    m.p = None
    assert list(m.parameters()) == [] and "p" in m._parameters
    m.p = nn.Parameter(fw.ones(1))
    assert list(m.state_dict()) == ["p", "b"]
    del m.p
    assert not hasattr(m, "p") and list(m._parameters) == []
    m.m = nn.Parameter(fw.ones(1))  # another kind of thing under the same name
    assert list(m._modules) == [] and list(m._parameters) == ["m"]
    m._parameters["q"] = nn.Parameter(fw.ones(1))
    assert m.q.requires_grad and "q" in dir(m)


def test_parameter() -> None:
    data = fw.ones(2)
    p = nn.Parameter(data)
    assert p.is_leaf and p.requires_grad and isinstance(p, fw.Tensor)
    data.mul_(3)
    assert p.tolist() == [3.0, 3.0]
    assert type(p * 2) is fw.Tensor
    p.note = "kept"
    p.grad = fw.ones(2)
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(twin) is nn.Parameter and twin.note == "kept" and twin.tolist() == [3.0, 3.0]
    assert repr(p) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert nn.Parameter(fw.tensor([1]), requires_grad=False).dtype is fw.int64


def test_lookups() -> None:
    net = Net()
    assert net.get_submodule("blocks.1.lin") is net.blocks[1].lin
    assert net.get_submodule("") is net
    assert net.get_parameter("blocks.0.scale") is net.blocks[0].scale
    assert net.get_buffer("blocks.0.seen") is net.blocks[0].seen
    for call in (lambda: net.get_submodule("blocks.7"), lambda: net.get_parameter("head.seen"),
                 lambda: net.get_buffer("head.weight"), lambda: net.nothing):
        with pytest.raises(AttributeError):
            call()


def test_registered_values_by_the_method_that_python_asks() -> None:
    net = Net()
    assert net.__getattr__("head") is net.head
    assert net.head.__getattr__("weight") is net.head.weight
    assert net.blocks[0].__getattr__("seen") is net.blocks[0].seen
    for name in ("training", "nothing", "forward"):
        with pytest.raises(AttributeError, match=f"'Net' object has no attribute '{name}'"):
            net.__getattr__(name)


def test_apply_train_requires_grad_zero_grad() -> None:
    net = Net()
    order: list[str] = []
    net.apply(lambda m: order.append(type(m).__name__))
    assert order[-1] == "Net" and order[0] == "Linear"
    assert not any(m.training for m in net.eval().modules())
    assert all(m.training for m in net.train().modules())
    with pytest.raises(ValueError):
        net.train("yes")
    net(fw.ones(2, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.head.weight.grad.tolist() == [[0.0] * 3] * 3
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(fw.ones(2, 3)).requires_grad


def test_conversions() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = net[0].weight
    net(fw.ones(3, 2)).sum().backward()
    net.double()
    assert net[0].weight is weight and weight.dtype is fw.float64 and weight.grad.dtype is fw.float64
    assert net[1].num_batches_tracked.dtype is fw.int64
    assert net.to("cpu", fw.float16)[1].running_mean.dtype is fw.float16
    assert net.to(fw.ones(1)).float()[0].bias.dtype is fw.float32
    assert net.half()[0].bias.dtype is fw.float16
    with pytest.raises(TypeError):
        net.to(fw.int64)


def test_no_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        net = Net()
        net.register_forward_hook(lambda m, a, o: None)
        net.head.register_full_backward_hook(lambda m, a, o: None)
        net(fw.ones(2, 3)).sum().backward()
        gone = [weakref.ref(net), weakref.ref(net.head), weakref.ref(net.head.weight)]
        del net
        assert [r() for r in gone] == [None] * 3
    finally:
        gc.enable()


# -- state -------------------------------------------------------------------------------------------

def test_state_dict() -> None:
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert type(state["head.weight"]) is fw.Tensor and not state["head.weight"].requires_grad
    state["head.weight"].zero_()
    assert net.head.weight.tolist() == [[0.0] * 3] * 3  # the memory is shared
    assert net.state_dict(keep_vars=True)["head.weight"] is net.head.weight
    assert list(net.head.state_dict(prefix="x.")) == ["x.weight", "x.bias"]


@pytest.mark.parametrize("assign", [False, True])
def test_load(assign: bool) -> None:
    net, other = Net(), Net()
    keys = net.load_state_dict(other.state_dict(), assign=assign)
    same(values(net), values(other))
    assert keys == ([], []) and repr(keys) == "<All keys matched successfully>"
    assert (net.head.weight._array is other.head.weight._array) == assign
    assert all(type(p) is nn.Parameter and p.requires_grad for p in net.parameters())
    net.load_state_dict({k: v.double() for k, v in other.state_dict().items()})
    assert assign or net.head.weight.dtype is fw.float32  # another width is converted


def test_load_is_all_or_nothing() -> None:
    net = Net()
    before = values(net)
    state = {k: v + 1 for k, v in net.state_dict().items()}
    del state["head.bias"]
    state["tail.bias"] = fw.ones(3)
    state["blocks.0.scale"] = fw.ones(4)
    state["blocks.1.scale"] = fw.ones(3, dtype=fw.int64)
    state["blocks.1.seen"] = "text"
    for strict in (True, False):
        with pytest.raises(CheckpointError) as info:
            net.load_state_dict(state, strict=strict)
        text = str(info.value)
        for part in ("shape differs: 'blocks.0.scale' (checkpoint: float32[4], model: float32[3])",
                     "dtype differs: 'blocks.1.scale' (checkpoint: int64[3], model: float32[3])",
                     "not a tensor: 'blocks.1.seen' (checkpoint: str", "Net"):
            assert part in text
        assert strict == ("missing in the checkpoint: 'head.bias' (model: float32[3])" in text)
        assert strict == ("unknown to the model: 'tail.bias' (checkpoint: float32[3])" in text)
        same(values(net), before)
    with pytest.raises(RuntimeError):  # what programs written for PyTorch catch
        net.load_state_dict({})
    with pytest.raises(TypeError):
        net.load_state_dict([1])


def test_load_not_strict() -> None:
    net = Net()
    keys = net.load_state_dict({"head.bias": fw.ones(3), "x": fw.ones(1)}, strict=False)
    assert keys.unexpected_keys == ["x"] and "head.weight" in keys.missing_keys
    assert net.head.bias.tolist() == [1.0] * 3


# -- hooks -------------------------------------------------------------------------------------------

def test_forward_hooks() -> None:
    class Loose(nn.Module):
        def forward(self, x: Any, **ignored: Any) -> Any:
            return x

    m = Loose()
    calls: list[Any] = []
    handles = [m.register_forward_pre_hook(lambda m, a: calls.append("pre") or a[0] + 1),
               m.register_forward_hook(lambda m, a, y: calls.append("post") or y * 2),
               m.register_forward_pre_hook(lambda m, a: calls.append("first"), prepend=True),
               m.register_forward_hook(lambda m, a, k, y: calls.append(dict(k)), with_kwargs=True),
               m.register_forward_pre_hook(lambda m, a, k: (a, {**k, "new": 1}), with_kwargs=True)]
    assert m(fw.ones(1)).tolist() == [4.0]
    assert calls == ["first", "pre", "post", {"new": 1}]
    for h in handles:
        h.remove()
        h.remove()
    assert m(fw.ones(1)).tolist() == [1.0]
    with m.register_forward_hook(lambda m, a, y: y * 3):
        assert m(fw.ones(1)).tolist() == [3.0]
    assert m(fw.ones(1)).tolist() == [1.0]


def test_always_called_hook() -> None:
    m = nn.Module()
    seen: list[Any] = []
    m.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    with pytest.raises(NotImplementedError):
        m(1)
    assert seen == [None]


def backward_story(M: Any) -> list[Any]:
    """What backward hooks see and do, in framework or torch."""
    class Two(M.nn.Module):
        def forward(self, a: Any, b: Any, n: int) -> Any:
            return a * b, a * n

    story: list[Any] = []

    def tell(name: str, *grads: Any) -> None:
        story.append((name, *[[None if g is None else g.tolist() for g in gs] for gs in grads]))
    m = Two()
    m.register_full_backward_pre_hook(lambda m, go: tell("pre", go))
    m.register_full_backward_hook(lambda m, gi, go: tell("back", gi, go))
    a = M.tensor([2.0, 3.0], requires_grad=True)
    b = M.tensor([5.0, 7.0], requires_grad=True)
    y, z = m(a, b, 4)
    (y.sum() + a.sum() + z.sum()).backward()  # a is used outside too
    tell("leaves", [a.grad, b.grad])
    y, z = m(a, b, 4)
    z.sum().backward()  # the first output is not used
    double = m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10, gi[1], None))
    a.grad = b.grad = None
    y, z = m(a, b, 4)
    y.sum().backward()
    tell("changed", [a.grad, b.grad])
    double.remove()
    line = M.nn.Linear(2, 1)
    with M.no_grad():
        line.weight.fill_(2.0)
        line.bias.fill_(1.0)
    line.register_full_backward_hook(lambda m, gi, go: tell("linear", gi, go))
    line(M.ones(1, 2)).sum().backward()  # no input requires grad
    x = M.ones(1, 2, requires_grad=True) if M is fw else M.ones(1, 2).requires_grad_()
    (g,) = M.autograd.grad((line(x) ** 2).sum(), x, create_graph=True)
    g.sum().backward()
    tell("twice", [x.grad])
    return story


def test_backward_hooks_see_what_torch_shows() -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = backward_story(torch)
    ours = backward_story(fw)
    assert [e[0] for e in ours] == [e[0] for e in theirs]
    assert ours == theirs


def test_backward_hook_of_an_input_without_gradient() -> None:
    m, seen = nn.Bilinear(1, 1, 1), []
    m.register_full_backward_hook(lambda m, gi, go: seen.append([g if g is None else g.shape for g in gi]))
    m(fw.ones(2, 1), fw.ones(2, 1, requires_grad=True)).sum().backward()
    assert seen == [[None, (2, 1)]]


def test_backward_hook_wrong_return() -> None:
    m = nn.Identity()
    m.register_full_backward_hook(lambda m, gi, go: (1, 2, 3))
    with pytest.raises(ValueError, match="3 gradients where 1"):
        m(fw.ones(1, requires_grad=True)).sum().backward()


# -- mistakes ----------------------------------------------------------------------------------------

class Early(nn.Module):
    def __init__(self, value: Any) -> None:
        self.part = value


@pytest.mark.parametrize("call,error,text", [
    (lambda: Early(nn.Identity()), AttributeError, "before super().__init__()"),
    (lambda: Early(nn.Parameter(fw.ones(1))), AttributeError, "before super().__init__()"),
    (lambda: Early(3)(1), AttributeError, "super().__init__() was not called"),
    (lambda: nn.Module()(1), NotImplementedError, "Module has no forward()"),
    (lambda: nn.Linear(1, 1).add_module("forward", nn.Identity()), KeyError, "taken"),
    (lambda: nn.Linear(1, 1).add_module("a.b", nn.Identity()), KeyError, "dot"),
    (lambda: nn.Linear(1, 1).add_module("", nn.Identity()), KeyError, "empty"),
    (lambda: nn.Linear(1, 1).add_module(3, nn.Identity()), TypeError, "string"),
    (lambda: nn.Linear(1, 1).add_module("x", 3), TypeError, "Module or None"),
    (lambda: nn.Linear(1, 1).register_buffer("weight", fw.ones(1)), KeyError, "taken"),
    (lambda: nn.Linear(1, 1).register_buffer("x", 3), TypeError, "Tensor or None"),
    (lambda: nn.Linear(1, 1).register_parameter("x", fw.ones(1)), TypeError, "Parameter or None"),
    (lambda: setattr(nn.Linear(1, 1), "weight", fw.ones(1)), TypeError, "wrap it in nn.Parameter"),
    (lambda: setattr(nn.Sequential(nn.ReLU()), "0", 3), TypeError, "wanted a Module"),
    (lambda: setattr(nn.BatchNorm1d(1), "running_mean", 3), TypeError, "wanted a Tensor"),
    (lambda: nn.Sequential(3), TypeError, "wanted a Module"),
    (lambda: nn.ModuleList([3]), TypeError, "wanted a Module"),
    (lambda: nn.ModuleDict({"keys": nn.ReLU()}), KeyError, "taken"),
    (lambda: nn.ParameterList([3]), TypeError, "Parameter or Tensor"),
    (lambda: nn.ModuleList([nn.ReLU()])[1], IndexError, "out of range"),
])
def test_mistakes_are_named(call: Any, error: type, text: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert text in str(info.value)


def test_hidden_modules_warn() -> None:
    m = nn.Module()
    with pytest.warns(UserWarning, match=r"nn.ModuleList\(...\)") as seen:
        m.layers = [nn.Identity()]
    assert seen[0].filename == __file__
    with pytest.warns(UserWarning, match="nn.ParameterDict"):
        m.weights = {"a": nn.Parameter(fw.ones(1))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.known = nn.Identity()
        m.order = [m.known]  # registered already
        m.numbers = [1, 2, 3]


def test_failure_names_the_module() -> None:
    net = nn.Sequential(OrderedDict(encoder=nn.Sequential(nn.ReLU(), Net())))
    net.encoder[1].blocks[1].lin = nn.Linear(5, 3)
    for _ in range(2):
        with pytest.raises(ValueError) as info:
            net(fw.ones(2, 3))
        notes = [n for n in info.value.__notes__ if n.startswith("in ")]
        assert notes == ["in encoder.1.blocks.1.lin (Linear)"]
    with pytest.raises(ValueError) as info:
        nn.Linear(2, 1)(fw.ones(3))
    assert "in Linear" in info.value.__notes__


# -- containers --------------------------------------------------------------------------------------

def test_sequential() -> None:
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(s) == 3 and s[-1] is s[2] and list(s)[1] is s[1]
    assert list(s[1:].state_dict()) == ["2.weight", "2.bias"] or len(s[1:]) == 2
    s.append(nn.Tanh()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in s] == ["Identity", "Linear", "ReLU", "Linear", "Tanh"]
    del s[0]
    assert s.pop(-1).__class__ is nn.Tanh
    s[1] = nn.Tanh()
    assert list(s.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(s + nn.Sequential(nn.ReLU())) == 4
    named = nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.ReLU()))
    assert list(named.state_dict()) == ["a.weight", "a.bias"] and named.b is named[1]


def test_sequential_times() -> None:
    s = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert len(s * 2) == len(3 * s) - 2 == 4 and (s * 2)[2] is s[0]
    s *= 2
    assert len(s) == 4 and list(s.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for n, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="Sequential"):
            s * n


def test_places_left_empty() -> None:
    items = nn.ModuleList([nn.ReLU(), None])
    assert items[1] is None and len(items) == 2 and list(items.children()) == [items[0]]
    assert "(1): None" in repr(items)
    items[1] = nn.Tanh()
    assert repr(items[1]) == "Tanh()"


def test_old_names() -> None:
    with pytest.warns(FutureWarning, match="Container"):
        assert list(nn.Container(a=nn.ReLU())._modules) == ["a"]
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        loss = nn.NLLLoss2d(reduction="sum")
    assert loss(fw.zeros(1, 2, 2, 2), fw.zeros(1, 2, 2, dtype=fw.int64)).item() == 0.0
    for name, args in (("uniform", (0, 1)), ("normal", ()), ("constant", (3.0,)), ("eye", ()), ("dirac", ()),
                       ("xavier_uniform", ()), ("xavier_normal", ()), ("kaiming_uniform", ()),
                       ("kaiming_normal", ()), ("orthogonal", ()), ("sparse", (0.1,))):
        t = fw.empty((2, 2, 2) if name == "dirac" else (2, 2))
        with pytest.warns(FutureWarning, match=f"nn.init.{name} "):
            assert getattr(nn.init, name)(t, *args) is t


def test_module_list_and_dict() -> None:
    items = nn.ModuleList([nn.Linear(1, 1)])
    items += [nn.ReLU()]
    items.insert(0, nn.Tanh())
    assert [type(m).__name__ for m in items] == ["Tanh", "Linear", "ReLU"]
    assert isinstance(items[:2], nn.ModuleList) and items[1] in items and len(items + items) == 6
    del items[:2]
    assert len(items) == 1
    d = nn.ModuleDict([("a", nn.Linear(1, 1)), ("b", nn.ReLU())])
    assert list(d) == ["a", "b"] and "a" in d and d.get("z") is None and len(d) == 2
    assert d.pop("a").in_features == 1 and list(d.keys()) == ["b"]
    d.clear()
    assert not len(d)
    with pytest.raises(KeyError):
        d["a"]


def test_parameter_containers() -> None:
    p = nn.ParameterList([fw.ones(2), nn.Parameter(fw.zeros(1))])
    p.append(fw.ones(3))
    assert [n for n, _ in p.named_parameters()] == ["0", "1", "2"] and p[2].requires_grad
    d = nn.ParameterDict({"a": fw.ones(2)})
    d["b"] = fw.ones(1)
    assert [n for n, _ in d.named_parameters()] == ["a", "b"] and type(d["b"]) is nn.Parameter
    e = d.copy()
    assert e["a"] is d["a"] and list(reversed(e)) == ["b", "a"] and e.popitem()[0] == "b"
    assert e.setdefault("a") is d["a"] and e.setdefault("c", fw.ones(1)).requires_grad
    assert list(e | {"z": fw.ones(1)}) == ["a", "c", "z"] and list({"z": fw.ones(1)} | e) == ["z", "a", "c"]
    e |= {"y": fw.ones(1)}
    assert list(e) == ["a", "c", "y"] and list(e.fromkeys("pq", fw.ones(1))) == ["p", "q"]
    assert list(e.fromkeys("pq").parameters()) == []
    e.clear()
    with pytest.raises(KeyError):
        e.popitem()


@pytest.mark.parametrize("make", [
    lambda n: n.Sequential(), lambda n: n.ModuleList([n.Linear(1, 2), n.Linear(1, 2), n.ReLU()]),
    lambda n: n.ModuleDict({"x": n.Sequential(n.ReLU(), n.Tanh())}),
    lambda n: n.Sequential(n.Conv2d(1, 2, 3, 2, padding=1, dilation=2, bias=False), n.Flatten()),
    lambda n: n.ConvTranspose2d(2, 4, 3, output_padding=1, stride=2, groups=2)])
def test_text_is_that_of_torch(make: Any) -> None:
    torch = pytest.importorskip("torch")
    assert repr(make(nn)) == repr(make(torch.nn))


# -- init and utils ----------------------------------------------------------------------------------

@pytest.mark.parametrize("fill,std,largest", [
    (lambda t: nn.init.uniform_(t, -2.0, 2.0), 2 / math.sqrt(3), 2.0),
    (lambda t: nn.init.normal_(t, 0.0, 3.0), 3.0, None),
    (lambda t: nn.init.trunc_normal_(t, 0.0, 1.0, -1.0, 1.0), 0.54, 1.0),
    (lambda t: nn.init.xavier_uniform_(t, 2.0), 2 * math.sqrt(2 / 220), 2 * math.sqrt(6 / 220)),
    (lambda t: nn.init.xavier_normal_(t), math.sqrt(2 / 220), None),
    (lambda t: nn.init.kaiming_uniform_(t, a=1.0), math.sqrt(1 / 120), math.sqrt(3 / 120)),
    (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 100), None),
])
def test_random_init(fill: Any, std: float, largest: float | None) -> None:
    fw.manual_seed(0)
    t = nn.Parameter(fw.zeros(100, 120))
    version = t._version
    assert fill(t) is t and t.requires_grad and t._version > version
    a = t.detach().numpy()
    assert a.dtype == np.float32 and abs(a.mean()) < 0.05 * std + 0.01 and abs(a.std() / std - 1) < 0.03
    assert largest is None or np.abs(a).max() <= largest * 1.0001
    fw.manual_seed(0)
    np.testing.assert_array_equal(fill(fw.zeros(100, 120)).numpy(), a)


@pytest.mark.parametrize("given", [
    (0.0, 1.0, -2.0, 2.0), (0.0, 0.02, -2.0, 2.0), (3.0, 1.0, -1.0, 9.0), (0.0, 1.0, 3.0, 7.0),
    (0.0, 1.0, -7.5, -6.9), (1.0, 2.0, 0.0, 1.0), (0.0, 1.0, -math.inf, -5.0)])
def test_truncated_normal_numbers(given: Any) -> None:
    """Of the distribution that SciPy says, also far outside and where limits cut nothing off."""
    stats = pytest.importorskip("scipy.stats")
    mean, std, a, b = given
    law = stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    for dtype in (fw.float32, fw.float64):
        found = nn.init.trunc_normal_(fw.empty(40000, dtype=dtype), *given).numpy().astype("d")
        assert a <= found.min() and found.max() <= b and np.isfinite(found).all()
        assert stats.kstest(found, law.cdf).pvalue > 1e-4
    assert nn.init.trunc_normal_(fw.empty(2), 1.0, 0.0).tolist() == [1.0, 1.0]
    assert nn.init.trunc_normal_(fw.empty(2, device="meta")).shape == (2,)


def test_exact_init() -> None:
    assert nn.init.eye_(fw.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.constant_(fw.empty(2), 3.0).tolist() == [3, 3]
    assert nn.init.ones_(fw.empty(1)).tolist() == [1] and nn.init.zeros_(fw.empty(1)).tolist() == [0]
    for shape in ((5, 3), (3, 5), (4, 2, 2)):
        q = nn.init.orthogonal_(fw.empty(shape), gain=2.0).numpy().reshape(shape[0], -1)
        small = q @ q.T if q.shape[0] < q.shape[1] else q.T @ q
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-5)
    s = nn.init.sparse_(fw.empty(10, 4), 0.3).numpy()
    assert ((s == 0).sum(0) == 3).all()
    x = fw.randn(1, 2, 5)
    y = nn.functional.conv1d(x, nn.init.dirac_(fw.empty(2, 2, 3)), padding=1)
    np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=1e-6)


def test_init_generator_and_errors() -> None:
    torch = pytest.importorskip("torch")
    a, b = (nn.init.xavier_uniform_(fw.empty(3, 4), generator=fw.Generator().manual_seed(5)).numpy()
            for _ in range(2))
    np.testing.assert_array_equal(a, b)
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    for call in (lambda: nn.init.xavier_uniform_(fw.empty(3)), lambda: nn.init.eye_(fw.empty(3)),
                 lambda: nn.init.kaiming_uniform_(fw.empty(3, 3), mode="fan"),
                 lambda: nn.init.calculate_gain("gelus"), lambda: nn.init.orthogonal_(fw.empty(3)),
                 lambda: nn.init.trunc_normal_(fw.empty(3), 0.0, 1.0, 2.0, 1.0)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("kind", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(kind: float) -> None:
    torch = pytest.importorskip("torch")
    grads = [np.array([3.0, -4.0], np.float32), np.array([[12.0]], np.float32)]
    for limit in (1.0, 100.0):
        ours = [nn.Parameter(fw.zeros(g.shape)) for g in grads]
        theirs = [torch.nn.Parameter(torch.zeros(g.shape)) for g in grads]
        for p, q, g in zip(ours, theirs, grads):
            p.grad, q.grad = fw.tensor(g), torch.tensor(g)
        a = nn.utils.clip_grad_norm_(ours, limit, kind)
        b = torch.nn.utils.clip_grad_norm_(theirs, limit, kind)
        assert float(a) == pytest.approx(float(b)) and a.dtype is fw.float32
        for p, q in zip(ours, theirs):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-6)


def test_clip_rest_and_vectors() -> None:
    p = nn.Parameter(fw.zeros(2))
    assert float(nn.utils.clip_grad_norm_([p], 1.0)) == 0.0
    p.grad = fw.tensor([math.nan, 1.0])
    with pytest.raises(RuntimeError, match="nan"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad.tolist()[1] == 1.0
    p.grad = fw.tensor([-3.0, 0.5])
    nn.utils.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [-1.0, 0.5]
    net = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (3,) and vector.requires_grad
    nn.utils.vector_to_parameters(fw.tensor([1.0, 2.0, 3.0]), net.parameters())
    assert net.weight.tolist() == [[1.0, 2.0]] and net.bias.tolist() == [3.0] and net.bias.is_leaf
    with pytest.raises(ValueError):
        nn.utils.vector_to_parameters(fw.ones(4), net.parameters())


def test_pad_sequence() -> None:
    torch = pytest.importorskip("torch")
    rows = [np.arange(2.0 * n).reshape(n, 2) for n in (1, 3, 2)]
    for options in ({}, {"batch_first": True}, {"padding_value": -1.0, "padding_side": "left"}):
        ours = [fw.tensor(r, requires_grad=True) for r in rows]
        y = nn.utils.rnn.pad_sequence(ours, **options)
        wanted = torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], **options)
        assert y.tolist() == wanted.tolist() and y.dtype is fw.float64
        y.sum().backward()
        assert all(x.grad.tolist() == np.ones(r.shape).tolist() for x, r in zip(ours, rows))
    pad = nn.utils.rnn.pad_sequence
    for bad, error, words in [([], ValueError, "empty"), ([fw.ones(1), 2], TypeError, r"sequences\[1\]"),
                              ([fw.ones(1, 2), fw.ones(1, 3)], fw.errors.ShapeError, "first size only")]:
        with pytest.raises(error, match=words):
            pad(bad)
    with pytest.raises(ValueError, match="'left' or 'right'"):
        pad([fw.ones(1)], padding_side="top")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.Sequential([nn.Identity()]), TypeError, r"Sequential: .* list; .*Sequential\(\*layers\)"),
    (lambda: nn.Sequential(nn.ReLU), TypeError, r"got ReLU; make one: ReLU\("),
    (lambda: nn.Sequential(nn.functional.gelu), TypeError, r"got gelu; .*nn.ReLU\(\)"),
    (lambda: nn.ModuleList([nn.Identity()])(fw.ones(1)), NotImplementedError, "ModuleList .*loop over"),
    (lambda: nn.ModuleDict({"a": nn.Identity()})(fw.ones(1)), NotImplementedError, "ModuleDict .*call one"),
    (lambda: nn.CrossEntropyLoss(fw.ones(2, 3), fw.tensor([0, 1])), TypeError,
     r"CrossEntropyLoss\(\)\(input, target\)"),
    (lambda: nn.MSELoss(fw.ones(2), fw.ones(2)), TypeError, r"MSELoss\(\)\(input, target\)"),
    (lambda: nn.Linear(10 / 2, 1), TypeError, "in_features=5.0 .*//"),
    (lambda: nn.init.xavier_uniform_(fw.empty(3)), fw.errors.ShapeError, r"xavier_uniform_: .*\[3\]"),
    (lambda: nn.utils.clip_grad_norm_(nn.Linear(1, 1), 1.0), TypeError, r"got Linear; .*\.parameters\(\)"),
    (lambda: fw.optim.SGD(nn.Linear(1, 1), lr=0.1), TypeError, r"got Linear; .*\.parameters\(\)"),
    (lambda: fw.optim.SGD(nn.Linear(1, 1).parameters, lr=0.1), TypeError, "got method; call it: "),
], ids=lambda v: v if isinstance(v, str) else "")
def test_mistakes_of_the_first_day(call, error, words) -> None:
    """The message names what came and the remedy."""
    with pytest.raises(error, match=words):
        call()
