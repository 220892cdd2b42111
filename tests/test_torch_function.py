"""Functions that objects do themselves: ``__torch_function__`` of subclasses and others, modes, overrides."""

import copy
import inspect
import pickle
import subprocess
import sys

import pytest

import framework as fw
from framework import overrides

F = fw.nn.functional


class Plain(fw.Tensor):
    """Without a __torch_function__ of its own."""


class Logged(fw.Tensor):
    """Notes the functions it was handed."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append((func, types))
        return super().__torch_function__(func, types, args, kwargs)


class Duck:
    """No tensor."""

    def __init__(self, n):
        self.n = n

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is fw.add:
            return Duck(args[0].n + 1)
        return NotImplemented


def names(action):
    Logged.seen.clear()
    result = action()
    return result, [func.__name__ for func, _ in Logged.seen]


@pytest.mark.parametrize("function", [
    lambda x, y: x * 2, lambda x, y: 2 - x, lambda x, y: y + x, lambda x, y: y @ x.T, lambda x, y: -x,
    lambda x, y: fw.cat([y, x]), lambda x, y: x[0], lambda x, y: x.reshape(-1), lambda x, y: x > 1,
    lambda x, y: F.softmax(input=x, dim=0), lambda x, y: fw.where(y > 0, y, x), lambda x, y: x.sum(),
    lambda x, y: fw.nn.Linear(2, 3)(x), lambda x, y: fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.ReLU())(x),
    lambda x, y: fw.zeros_like(x), lambda x, y: x.max(0).values, lambda x, y: x.split(1)[1],
    lambda x, y: x.clone().add_(1), lambda x, y: x.detach(), lambda x, y: x.double(),
    lambda x, y: x.new_ones(1), lambda x, y: copy.deepcopy(x), lambda x, y: pickle.loads(pickle.dumps(x)),
    lambda x, y: fw.einsum("ij->j", x)])
def test_results_are_of_the_subclass(function):
    x, y = Plain([[1.0, 2.0], [3.0, 4.0]]), fw.ones(2, 2)
    assert type(function(x, y)) is Plain
    with overrides.DisableTorchFunctionSubclass():
        assert fw.allclose(fw.add(x, y), fw.tensor([[2.0, 3.0], [4.0, 5.0]])) and type(x + y) is fw.Tensor


def test_gradients_and_views_of_a_subclass():
    leaf = fw.ones(3, requires_grad=True)
    x = leaf.as_subclass(Plain)
    y = x * fw.tensor([1.0, 2.0, 3.0])
    y.sum().backward()
    assert leaf.grad.tolist() == [1, 2, 3] and type(y) is Plain and y.requires_grad and not y.is_leaf
    base = fw.Tensor._make_subclass(Plain, fw.ones(2, 2), True)
    assert base.is_leaf and base.requires_grad
    whole = base * 1
    row = whole[0]
    assert type(row) is Plain and row._is_view()
    row.mul_(3)
    whole.sum().backward()
    assert whole.tolist() == [[3, 3], [1, 1]] and base.grad.tolist() == [[3, 3], [1, 1]]
    whole = base * 1
    row = whole[0]
    whole.mul_(2)  # a view as another object is brought to its new place, too
    row.sum().backward()
    assert row.tolist() == [2, 2] and base.grad.tolist() == [[5, 5], [1, 1]]
    with pytest.raises(TypeError, match="subclass of Tensor"):
        fw.Tensor._make_subclass(int, leaf)


def test_functions_come_with_their_identity():
    x, y = Logged([1.0, 2.0]), fw.ones(2)
    assert names(lambda: fw.add(y, x))[1] == ["add"] and Logged.seen == [(fw.add, (Logged,))]
    assert names(lambda: x.add(y))[1] == ["add"] and Logged.seen[0][0] is fw.Tensor.add
    names(lambda: F.gelu(x))
    assert Logged.seen[0][0] is F.gelu
    assert names(lambda: fw.nn.Linear(2, 1)(x))[1] == ["linear"]
    layers = fw.nn.Sequential(fw.nn.Linear(2, 1), fw.nn.ReLU())
    assert names(lambda: layers(x))[1] == ["linear", "relu"]
    assert names(lambda: F.mse_loss(x, y, reduction="sum"))[1] == ["mse_loss"]
    assert names(lambda: y + 1)[1] == [] and names(lambda: fw.nn.Parameter(y) + 1)[1] == []
    assert "dim" in inspect.signature(fw.mean).parameters and pickle.loads(pickle.dumps(fw.add)) is fw.add


def test_who_is_asked_first_and_who_declines():
    class Child(Logged):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return types

    assert fw.add(Logged([1.0]), Child([1.0])) == (Child, Logged)
    assert fw.add(Duck(3), 1).n == 4
    with pytest.raises(TypeError, match="mul: no class of the arguments.*Duck returned NotImplemented"):
        fw.mul(Duck(3), 1)
    other = type("Other", (fw.Tensor,), {})([1.0])
    with pytest.raises(TypeError, match="NotImplemented"):
        fw.add(other, Plain([1.0]))

    class Off(fw.Tensor):
        __torch_function__ = fw._C._disabled_torch_function_impl

    assert type(Off([1.0]) + 1) is fw.Tensor and not overrides.has_torch_function((Off([1.0]),))


def test_nothing_is_armed_by_plain_tensors_and_ducks_arm():
    program = """
import copy, io, pickle
import framework as fw
from framework.ops.record import arming
fw.nn.Linear(2, 2)(fw.ones(1, 2)).sum().backward()
for plain in fw.ones(2), fw.ones(2, dtype=fw.bfloat16), fw.nn.Linear(2, 2):
    pickle.loads(pickle.dumps(plain))
    copy.deepcopy(plain)
    file = io.BytesIO()
    fw.save(plain.state_dict() if isinstance(plain, fw.nn.Module) else plain, file)
    file.seek(0)
    fw.load(file)
before = fw.add.__code__, fw.relu.__code__
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func
class Unused(fw.Tensor):
    pass
assert not arming.armed
assert fw.mean(Duck(), dim=1) is fw.mean and arming.armed
assert fw.add(1, Duck()) is fw.add and fw.nn.functional.relu(Duck()) is fw.nn.functional.relu
assert fw.nn.functional.layer_norm(Duck(), (1,)) is fw.nn.functional.layer_norm
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    more = "import framework as fw\nclass D:\n    __torch_function__ = classmethod(lambda c, f, *a: f)\n"
    for call in ("add(1, D())", "exp(D())", "nn.functional.mse_loss(D(), 1)"):
        program = f"{more}assert fw.{call} is fw.{call.partition('(')[0]}"
        subprocess.run([sys.executable, "-c", program], check=True)


class Counts(overrides.TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_modes():
    with Counts() as outer, Counts() as inner:
        y = fw.nn.Sequential(fw.nn.Linear(2, 2), fw.nn.ReLU())(fw.ones(1, 2))
        y.mean(dim=0)
    assert inner.seen == outer.seen and inner.seen[-4:] == ["ones", "linear", "relu", "mean"]
    with Counts() as mode, overrides.DisableTorchFunctionSubclass():
        fw.ones(1)
        with fw._C.DisableTorchFunction():
            fw.zeros(1)
    assert mode.seen == ["ones"] and type(y + 1) is fw.Tensor
    with pytest.raises(NotImplementedError, match="must define"), overrides.TorchFunctionMode():
        fw.ones(1)
    with overrides.BaseTorchFunctionMode():
        assert fw.ones(1).item() == 1
    with pytest.raises(ZeroDivisionError), Counts():
        raise ZeroDivisionError
    assert not overrides.has_torch_function((fw.ones(1),))


def test_questions():
    x = Plain([1.0])
    assert overrides.has_torch_function_unary(x) and overrides.has_torch_function_variadic(1, x)
    assert not overrides.has_torch_function([fw.ones(1), fw.nn.Parameter(fw.ones(1)), None])
    assert overrides.is_tensor_like(x) and overrides.is_tensor_like(Duck(1))
    assert not overrides.is_tensor_like(1)
    assert overrides.handle_torch_function(fw.add, (Duck(1),), Duck(1), 2).n == 2
    with pytest.raises(TypeError, match="has __torch_function__"):
        overrides.handle_torch_function(fw.add, (1,), 1, 2)

    @overrides.wrap_torch_function(lambda a: (a,))
    def own(a):
        return "plain"
    assert own(fw.ones(1)) == "plain" and names(lambda: own(Logged([1.0])))[1] == ["own"]
    found = overrides.get_overridable_functions()
    assert fw.add in found[fw] and F.gelu in found[F] and fw.Tensor.add in found[fw.Tensor]
    assert fw.manual_seed not in found[fw] and len(found[fw.Tensor]) > 300
    assert overrides.resolve_name(F.gelu) == "framework.nn.functional.gelu"
    assert overrides.resolve_name(fw.Tensor.add_) == "framework.Tensor.add_"
    assert overrides.resolve_name(len) is None
    assert overrides.resolve_name(fw.zeros) == "framework.zeros"
    assert overrides.is_tensor_method_or_property(fw.Tensor.grad.__get__)
    assert not overrides.is_tensor_method_or_property(len)
    assert fw.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()


def test_beside_pytorch():
    torch = pytest.importorskip("torch")

    def run(lib):
        seen = []

        class Noted(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((func.__name__, len(types)))
                return super().__torch_function__(func, types, args, kwargs)

        x = lib.ones(2, 3).as_subclass(Noted)
        seen.clear()
        lib.matmul(x, lib.ones(3))
        lib.cat([lib.ones(2, 3), x], dim=1)
        lib.stack((x, x)).sum(0)
        lib.nn.functional.relu(x).mean()
        x.clone().mul_(2).view(3, 2)
        lib.nn.LayerNorm(3)(x)
        return seen
    assert run(fw) == run(torch)


def test_a_debugger_may_look_at_the_locals_of_armed_functions():
    """In a process of its own: wrong frames would end it."""
    code = """
import sys, framework as fw
class Mine(fw.Tensor): pass
x = fw.ones(2).as_subclass(Mine)
seen = []
def look(frame, event, arg):
    seen.append(len(frame.f_locals))
    return look
sys.settrace(look)
for f in (lambda: fw.add(x, 1), lambda: fw.pow(x, 2.0), lambda: fw.sort(x), lambda: x.sum(), lambda: x @ x,
          lambda: fw.addmm(x, fw.ones(2, 2), fw.ones(2, 2)), lambda: x + x, lambda: fw.cat([x, x])):
    f()
sys.settrace(None)
assert len(seen) > 100
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def test_operators_are_handed_over_as_methods():
    """Who answers compares ``func`` with methods: ``x + y`` is ``Tensor.add`` to it, as in PyTorch."""
    calls = []

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return "done"

    x, y, T = fw.ones(2), Other(), fw.Tensor
    assert [x + y, y + x, x - y, x * y, x / y, x @ y, x == y, x < y] == ["done"] * 8
    assert calls == [T.add, T.add, T.sub, T.mul, T.div, T.matmul, T.eq, T.lt]
    x += y
    assert calls[-1] is T.add_


class Careful(fw.Tensor):
    """Notes what it is handed, properties by their name and accessor."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        names = {id(p): name for name, p in vars(fw.Tensor).items() if isinstance(p, property)}
        cls.seen.append((names.get(id(getattr(func, "__self__", None)), ""), func.__name__))
        return super().__torch_function__(func, types, args, kwargs)

    @property
    def device(self):
        return "mine"


def test_properties_are_handed_over():
    x = fw.ones(2, 3).as_subclass(Careful)
    for read, name in ((lambda: x.shape, "shape"), (lambda: x.T, "T"), (lambda: x.dtype, "dtype"),
                       (lambda: x.data, "data"), (lambda: x.is_leaf, "is_leaf"), (lambda: x.grad, "grad")):
        Careful.seen.clear()
        result = read()
        assert Careful.seen == [(name, "__get__")]
        assert type(result) is Careful if name in ("T", "data") else not isinstance(result, Careful)
    Careful.seen.clear()
    x.requires_grad = True
    (x * 2).sum().backward()
    assert type(x.grad) is fw.Tensor and x.device == "mine"
    x.grad = None
    del x.grad
    assert [s for s in Careful.seen if s[0]] == [
        ("requires_grad", "__set__"), ("grad", "__get__"), ("grad", "__set__"), ("grad", "__delete__")]
    with overrides.DisableTorchFunctionSubclass():
        Careful.seen.clear()
        assert x.shape == (2, 3) and not Careful.seen
    assert fw.Tensor.shape.__get__ in overrides.get_overridable_functions()[fw.Tensor]
    plain = fw.ones(2).as_subclass(Plain)
    assert type(plain.data) is Plain and "shape" not in vars(Plain) and type(plain.T) is Plain

    class Further(Careful):
        pass
    y = fw.ones(1).as_subclass(Further)
    Careful.seen.clear()
    assert y.shape == (1,) and Careful.seen == [("shape", "__get__")] and "shape" not in vars(Further)


def test_functions_that_ask_look_as_before():
    """Identity, signature, source and lines are those of the function, whoever looks."""
    program = """
import inspect, pickle, sys, threading
import framework as fw
from framework import nn
def held():
    return [fw.add, fw.Tensor.add, fw.sum, fw.cat, nn.functional.linear, fw.Tensor.reshape, fw.zeros]
samples = held()
def looks(f):
    return (f.__name__, f.__qualname__, f.__module__, f.__doc__, str(inspect.signature(f)),
            inspect.getsource(f), inspect.getsourcefile(f), f.__code__.co_firstlineno,
            f.__defaults__, f.__kwdefaults__)
before, ids = [looks(f) for f in samples], [id(f) for f in samples]
stop, wrong = [], []
def work():
    x = fw.ones(3)
    while not stop:
        if fw.cat([x + 1, x.reshape(-1)]).sum().item() != 9:
            wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
class Mine(fw.Tensor):
    pass
y = Mine([1.0])
assert type(y + 1) is Mine
stop.append(1)
for t in threads: t.join()
assert not wrong and [looks(f) for f in samples] == before
assert [id(f) for f in held()] == ids and pickle.loads(pickle.dumps(fw.add)) is fw.add
lines = []
def trace(frame, event, arg):
    lines.append((frame.f_code.co_filename.rpartition("/")[2], frame.f_code.co_name))
    return None
sys.settrace(trace)
fw.cat([fw.ones(1)])
sys.settrace(None)
assert ("join.py", "cat") in lines
print("well")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "well\n", done.stderr


def test_the_first_of_its_class_may_come_from_a_pickle(tmp_path):
    (tmp_path / "kinds.py").write_text("import framework as fw\nclass Kind(fw.Tensor):\n    pass\n")
    write = "import pickle, kinds; open('x.pkl', 'wb').write(pickle.dumps(kinds.Kind([1.0])))"
    read = "import pickle, kinds; x = pickle.loads(open('x.pkl', 'rb').read()); print(type(x + 1).__name__)"
    for program in (write, read):
        done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {program}"],
                              capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "Kind\n"
