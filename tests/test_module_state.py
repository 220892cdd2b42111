"""Module: its dicts as plain dicts, hooks of state and of all modules, extra state, parts put in by path."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import framework as fw
from framework import nn
from framework.errors import CheckpointError
from framework.nn import hookable

HOOK_DICTS = ["_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
              "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
              "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
              "_load_state_dict_post_hooks"]


def story_of_dicts(M: Any) -> list[Any]:
    """What a module's dicts do, in framework or torch."""
    told: list[Any] = []

    def tell(m: Any) -> None:
        told.append([list(m._parameters), list(m._buffers), list(m._modules), sorted(m.state_dict()),
                     [hasattr(m, n) for n in ("p", "q", "b", "c", "s", "t")]])
    m = M.nn.Module()
    m.p, m.q = M.nn.Parameter(M.ones(1)), M.nn.Parameter(M.zeros(1))
    m.register_buffer("b", M.ones(1))
    m.s = M.nn.Linear(1, 1)
    assert isinstance(m._parameters, dict) and isinstance(m._modules, dict)
    tell(m)
    kept = m._parameters
    told.append(m._parameters.pop("q").tolist())
    tell(m)
    m._parameters["q"] = None
    m._buffers.update(c=M.zeros(2))
    m._modules["t"] = M.nn.ReLU()
    told.append(m.q is None and kept is m._parameters and m._parameters.setdefault("p") is m.p)
    tell(m)
    del m._modules["s"]
    m._buffers.pop("b")
    tell(m)
    m._buffers = OrderedDict(b=M.ones(3))
    m._parameters = m._parameters.copy()
    m._modules.clear()
    tell(m)
    told.append([m.b.tolist(), m._parameters.popitem()[0], m._parameters.pop("z", 7)])
    m._parameters |= {"z": M.nn.Parameter(M.ones(1))}
    tell(m)
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        twin._parameters["q"] = M.nn.Parameter(M.ones(1))
        tell(twin)
    tell(m)
    return told


def test_the_dicts_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert story_of_dicts(fw) == story_of_dicts(torch)


def test_a_shallow_copy_has_dicts_of_its_own() -> None:
    m = nn.Linear(2, 1)
    twin = copy.copy(m)
    del twin._parameters["bias"]
    assert m.bias is not None and not hasattr(twin, "bias") and twin.weight is m.weight
    plain = nn.Linear(2, 1)
    plain.__dict__["_parameters"] = dict(plain._parameters)  # as programs do that copy __dict__
    plain._parameters["bias"] = None
    assert plain.bias is None


def test_hook_dicts_can_be_read_changed_and_assigned() -> None:
    m = nn.Identity()
    for name in HOOK_DICTS:
        assert getattr(m, name) == {} and hasattr(m, name)
    handle = m.register_forward_hook(lambda m, a, y: y + 1, always_call=True)
    assert list(m._forward_hooks) == [handle.id] == list(m._forward_hooks_always_called)
    kept = m._forward_hooks.copy()
    m._forward_hooks.clear()
    assert m(fw.ones(1)).item() == 1.0
    m._forward_hooks = OrderedDict(kept)
    assert m(fw.ones(1)).item() == 2.0
    m._forward_hooks.pop(handle.id)
    assert m(fw.ones(1)).item() == 1.0
    assert nn.Linear(1, 1)._backward_hooks == {}


def test_old_backward_hook() -> None:
    m, seen = nn.Linear(1, 1), []
    with pytest.warns(FutureWarning, match="register_full_backward_hook"):
        m.register_backward_hook(lambda m, gi, go: seen.append(len(go)))
    m(fw.ones(1, 1)).sum().backward()
    assert seen == [1] and m._is_full_backward_hook is False
    with pytest.raises(RuntimeError, match="other kind"):
        m.register_full_backward_hook(lambda m, gi, go: None)


def test_hooks_of_all_modules() -> None:
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    seen: list[str] = []
    call = nn.Module.__call__
    handles = [
        hookable.register_module_forward_pre_hook(lambda m, a: seen.append("pre " + m._get_name())),
        hookable.register_module_forward_hook(lambda m, a, y: seen.append("post " + m._get_name())),
        hookable.register_module_full_backward_hook(lambda m, gi, go: seen.append("back " + m._get_name()))]
    own = net[1].register_forward_hook(lambda m, a, y: seen.append("own"))
    net(fw.ones(1, 1)).sum().backward()
    assert seen == ["pre Sequential", "pre Linear", "post Linear", "pre ReLU", "post ReLU", "own",
                    "post Sequential", "back Sequential", "back ReLU", "back Linear"]
    for h in [*handles, own]:
        h.remove()
    seen.clear()
    net(fw.ones(1, 1))
    assert not seen and nn.Module.__call__ is call


def test_registration_hooks() -> None:
    seen: list[Any] = []
    handles = [
        hookable.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)),
        hookable.register_module_buffer_registration_hook(lambda m, n, b: b * 2),
        hookable.register_module_module_registration_hook(lambda m, n, s: seen.append(n))]
    try:
        m = nn.Module()
        m.p = nn.Parameter(fw.ones(1))
        m.register_buffer("b", fw.ones(1))
        m.s = nn.ReLU()
    finally:
        for h in handles:
            h.remove()
    m.q = nn.Parameter(fw.ones(1))
    assert seen == ["p", "s"] and m.b.item() == 2.0


class Extra(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(1, 1)
        self.told = 0

    def get_extra_state(self) -> Any:
        return {"told": self.told}

    def set_extra_state(self, state: Any) -> None:
        self.told = state["told"]


def test_extra_state() -> None:
    a, b = nn.Sequential(Extra()), nn.Sequential(Extra())
    a[0].told = 5
    state = a.state_dict()
    assert list(state) == ["0._extra_state", "0.lin.weight", "0.lin.bias"]
    b.load_state_dict(state)
    assert b[0].told == 5
    a[0].told = 6
    bad = a.state_dict()
    bad["0.lin.bias"] = fw.ones(3)
    with pytest.raises(CheckpointError):
        b.load_state_dict(bad)
    assert b[0].told == 5  # all or nothing
    del state["0._extra_state"]
    with pytest.raises(CheckpointError, match="missing in the checkpoint: '0._extra_state'"):
        b.load_state_dict(state)
    with pytest.raises(CheckpointError, match="unknown to the model: '_extra_state'"):
        nn.Linear(1, 1).load_state_dict({"_extra_state": 1, **nn.Linear(1, 1).state_dict()})
    with pytest.raises(RuntimeError, match="no get_extra_state"):
        nn.Linear(1, 1).get_extra_state()


def story_of_state_hooks(M: Any) -> list[Any]:
    """What hooks of saving and loading see and do, in framework or torch."""
    told: list[Any] = []
    net = M.nn.Sequential(M.nn.Linear(1, 1), M.nn.ReLU())
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: told.append(("pre", prefix, keep)))

    def post(m: Any, state: Any, prefix: str, about: Any) -> None:
        told.append(("post", list(state), prefix, dict(about)))
        state[prefix + "more"] = state.pop(prefix + "bias")
    net[0].register_state_dict_post_hook(post)
    net._register_state_dict_hook(lambda m, state, prefix, about: OrderedDict(reversed(state.items())))
    state = net.state_dict()
    told.append(list(state))

    def rename(state: Any, prefix: str, about: Any, strict: bool, missing: list, unexpected: list,
               errors: list) -> None:
        told.append(("load", sorted(state), prefix, strict, missing, unexpected, errors))
        state[prefix + "bias"] = state.pop(prefix + "more")
    net[0]._register_load_state_dict_pre_hook(rename)
    net[0].register_load_state_dict_pre_hook(lambda m, *rest: told.append((type(m).__name__, len(rest))))
    told.append([sorted(k) for k in net.load_state_dict(state, strict=False)])
    other = M.nn.Sequential(M.nn.Linear(1, 1))
    other.register_load_state_dict_post_hook(lambda m, keys: (told.append(list(keys.missing_keys)),
                                                              keys.missing_keys.clear())[1])
    other.load_state_dict({"0.weight": M.ones(1, 1)})
    told.append(other[0].weight.tolist())
    told.append(list(M.nn.BatchNorm1d(1).state_dict()._metadata.items()))
    return told


def test_state_hooks_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert story_of_state_hooks(fw) == story_of_state_hooks(torch)


def test_hooks_that_return_what_they_must_not() -> None:
    m = nn.Linear(1, 1)
    handle = m.register_state_dict_post_hook(lambda m, s, p, a: {})
    with pytest.raises(RuntimeError, match="in place"):
        m.state_dict()
    handle.remove()
    m.register_load_state_dict_post_hook(lambda m, keys: 1)
    with pytest.raises(RuntimeError, match="in place"):
        m.load_state_dict(m.state_dict())


class Old(nn.Module):
    """Its weight was called 'w' once."""

    _version = 2

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(fw.zeros(2))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version", 1) < 2:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "note"] = "n"


def test_overridden_saving_and_loading() -> None:
    net = nn.Sequential(Old(), nn.Linear(1, 1))
    assert list(net.state_dict()) == ["0.weight", "0.note", "1.weight", "1.bias"]
    good = {"0.w": fw.ones(2), "1.weight": fw.ones(1, 1), "1.bias": fw.ones(1)}
    with pytest.raises(CheckpointError, match="which is unchanged"):
        net.load_state_dict({**good, "1.bias": fw.ones(4)})
    assert net[0].weight.tolist() == [0.0, 0.0]
    net.load_state_dict(good)
    assert net[0].weight.tolist() == [1.0, 1.0]
    net[0]._load_from_state_dict({"weight": fw.zeros(2)}, "", {"version": 2}, True, [], [], [])
    assert net[0].weight.tolist() == [0.0, 0.0]  # called alone, it loads at once


def test_set_submodule() -> None:
    net = nn.Sequential(OrderedDict(a=nn.Sequential(nn.ReLU())))
    net.set_submodule("a.0", nn.Tanh())
    net.set_submodule("a.more", nn.Identity())
    assert repr(net.a[0]) == "Tanh()" and list(net.a._modules) == ["0", "more"]
    for args, error in (((), TypeError), (("", nn.ReLU()), ValueError), (("a.0", 3), ValueError),
                        (("b.c", nn.ReLU()), AttributeError), (("a.x", nn.ReLU(), True), AttributeError),
                        (("a.forward", nn.ReLU()), AttributeError)):
        with pytest.raises(error):
            net.set_submodule(*args)


def test_to_empty_and_conversions_go_through_apply() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    weight = net[0].weight
    weight.grad = fw.ones(2, 2)
    assert net.to_empty(device="cpu")[0].weight is weight and weight.shape == (2, 2)
    net.half()
    assert weight.grad.dtype is fw.float16 and weight.dtype is fw.float16
    seen = []

    class Own(nn.Linear):
        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            seen.append(recurse)
            return super()._apply(fn, recurse)
    deep = nn.Sequential(nn.Sequential(Own(1, 1), nn.Linear(1, 1)))
    deep.double()
    assert seen == [True] and all(p.dtype is fw.float64 for p in deep.parameters())


def test_cooperative_inheritance() -> None:
    class Other:
        def __init__(self, n: int = 0) -> None:
            self.n = n

    class Both(nn.Module, Other):
        call_super_init = True

        def __init__(self, n: int) -> None:
            super().__init__(n)
    assert Both(3).n == 3
    with pytest.raises(TypeError, match="Module takes none"):
        nn.Module(3)


def test_uninitialized_tensors() -> None:
    p, b = nn.UninitializedParameter(dtype=fw.float64), nn.UninitializedBuffer()
    assert p.requires_grad and not b.requires_grad and p.dtype is fw.float64 and str(p.device) == "cpu"
    for t in (p, b):
        for call in (lambda t: t + 1, lambda t: t.sum(), lambda t: t.shape, lambda t: t[0],
                     lambda t: nn.functional.linear(fw.ones(2, 3, dtype=t.dtype), t), lambda t: t.numel(),
                     lambda t: nn.init.ones_(t), lambda t: t.share_memory_()):
            with pytest.raises((ValueError, RuntimeError), match="materialize"):
                call(t)
        for twin in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
            assert type(twin) is type(t) and twin.dtype is t.dtype and twin.requires_grad == t.requires_grad
        assert repr(t) == f"<{type(t).__name__}>"
    m = nn.Module()
    m.p, m.b = p, b
    assert list(m.state_dict()) == ["p", "b"] and m.state_dict()["p"] is p
    m.float()
    assert p.dtype is fw.float32
    p.materialize((2, 3))
    b.materialize((4,), dtype=fw.int64)
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.is_leaf and m.p is p
    assert type(b) is fw.Tensor and b.dtype is fw.int64
    p.sum().backward()
    assert p.grad.shape == (2, 3)
