"""fx: modules traced into graphs, graphs changed and run again, beside PyTorch's node by node."""

import copy
import math
import operator
import subprocess
import sys

import pytest

import framework as fw
import framework.nn.functional as F


def size_of(x):
    return len(x.shape)


fw.fx.wrap("size_of")


class Block(fw.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU())
        self.scale = fw.nn.Parameter(fw.full((4,), 2.0))
        self.register_buffer("shift", fw.ones(4))

    def forward(self, x, y=1.0):
        z = self.inner(x) * self.scale + self.shift
        z = F.softplus(z) - y
        return {"out": (fw.relu(z), z.mean(dim=1)[0]), "size": z.shape[0]}


def test_a_module_traced_gives_the_same():
    fw.manual_seed(0)
    m = Block()
    before = F.softplus
    traced = fw.fx.symbolic_trace(m)
    assert F.softplus is before  # put back
    x = fw.randn(2, 3)
    got, want = traced(x, 0.5), m(x, 0.5)
    for a, b in zip(got["out"], want["out"]):
        assert a.tolist() == b.tolist()
    assert got["size"] == 2 and traced(x)["size"] == 2
    assert [n.op for n in traced.graph.nodes if n.op == "get_attr"] == ["get_attr"] * 2
    assert {n.target for n in traced.graph.find_nodes(op="call_module")} == {"inner.0", "inner.1"}
    assert set(traced.state_dict()) == set(m.state_dict())
    got["out"][0].sum().backward()
    assert m.scale.grad is not None  # the parameters are shared
    again = fw.fx.Interpreter(traced).run(x, 0.5)
    assert again["out"][0].tolist() == want["out"][0].tolist()
    other = copy.deepcopy(traced)
    assert other(x)["out"][0].tolist() == m(x)["out"][0].tolist() and other.scale is not traced.scale
    assert "def forward(self, x, y = 1.0)" in traced.code
    traced.graph.lint()


def test_graphs_are_those_of_torch():
    torch = pytest.importorskip("torch")

    def steps(M):
        def f(x, y):
            a = M.relu(x) + y * 2
            b = a[:, 1:].transpose(0, 1).reshape(-1)
            return M.cat([b, -b]).sum() + math.sqrt(2.0)
        graph = M.fx.symbolic_trace(f).graph
        return [(n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__, len(n.users))
                for n in graph.nodes]
    assert steps(fw) == steps(torch)


def test_changes():
    traced = fw.fx.symbolic_trace(lambda x: fw.relu(x) + 1)
    graph = traced.graph
    relu = graph.find_nodes(op="call_function", target=fw.relu)[0]
    with graph.inserting_after(relu):
        new = graph.call_function(fw.tanh, (relu.args[0],))
    relu.replace_all_uses_with(new)
    graph.erase_node(relu)
    traced.recompile()
    assert traced(fw.tensor(-1.0)).item() == pytest.approx(math.tanh(-1) + 1)
    add = graph.find_nodes(op="call_function", target=operator.add)[0]
    with pytest.raises(RuntimeError, match="still used"):
        graph.erase_node(add)
    with graph.inserting_before(add):
        graph.call_method("exp", (new,))
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    add.update_arg(1, 5)
    traced.recompile()
    assert traced(fw.tensor(0.0)).item() == 5
    assert list(add.all_input_nodes) == [new] and new.next is add and add.prev is new
    with pytest.raises(RuntimeError, match="another graph"):
        fw.fx.Graph().call_function(abs, (add,))
    with pytest.raises(TypeError, match="state_dict"):
        copy.copy(traced)


def test_what_depends_on_values_cannot_be_traced():
    with pytest.raises(fw.fx.TraceError, match="branch"):
        fw.fx.symbolic_trace(lambda x: 1 if x.sum() > 0 else 2)
    with pytest.raises(fw.fx.TraceError, match="parts"):
        fw.fx.symbolic_trace(lambda x: list(x))
    with pytest.raises(fw.fx.TraceError, match="named"):
        fw.fx.symbolic_trace(lambda *x: x)
    assert fw.relu(fw.tensor(-1.0)).item() == 0  # everything is put back after a failure
    given = fw.fx.symbolic_trace(lambda x, flag: x + 1 if flag else x, concrete_args={"flag": True})
    assert given(fw.tensor(1.0)).item() == 2


def test_wrapped_functions_are_one_step():
    traced = fw.fx.symbolic_trace(lambda x: size_of(x) + 1)
    assert [n.name for n in traced.graph.nodes] == ["x", "size_of", "add", "output"]
    assert traced(fw.ones(2, 3)) == 3 and size_of(fw.ones(1)) == 1


def test_interpreters_and_transformers_can_be_changed():
    class Negative(fw.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(fw.sigmoid if target is fw.relu else target, args, kwargs)

    traced = fw.fx.symbolic_trace(Block())
    assert Negative(traced).transform().graph.find_nodes(op="call_function", target=fw.sigmoid)

    class Counting(fw.fx.Interpreter):
        count = 0

        def run_node(self, n):
            self.count += 1
            return super().run_node(n)

    counting = Counting(traced)
    counting.run(fw.ones(2, 3))
    assert counting.count == len(traced.graph.nodes)


def test_leaves_can_be_chosen():
    class Whole(fw.fx.Tracer):
        def is_leaf_module(self, m, name):
            return name == "inner"

    m = Block()
    graph = Whole().trace(m)
    assert [n.target for n in graph.find_nodes(op="call_module")] == ["inner"]
    x = fw.ones(1, 3)
    assert fw.fx.GraphModule(m, graph)(x)["out"][0].tolist() == m(x)["out"][0].tolist()


def test_programs_that_import_torch_can_be_traced():
    program = ("import torch; g = torch.fx.symbolic_trace(lambda x: torch.tanh(x)); "
               "print([n.op for n in g.graph.nodes], g(torch.zeros(1)).item())")
    done = subprocess.run([sys.executable, "-m", "framework.as_torch", "-c", program], capture_output=True,
                          text=True)
    assert done.stdout.split() == ["['placeholder',", "'call_function',", "'output']", "0.0"], done.stderr


def test_arguments_keep_their_names():
    def f(input, x_1=2, *, add, scale=1.0):
        return fw.add(input * x_1, add) * scale
    traced = fw.fx.symbolic_trace(f)
    for g in (traced, copy.deepcopy(traced)):
        assert g(input=fw.ones(1), x_1=3, add=1, scale=2.0).item() == 8.0
        assert g(fw.ones(1), add=1).item() == 3.0


def test_patterns_are_replaced():
    def program(x, y):
        a = fw.relu(x + y) * 2
        b = fw.relu(a + y)
        c = x + 1  # used twice: what is computed in between may not be taken away
        return b + fw.relu(c) + c
    traced = fw.fx.symbolic_trace(program)
    found = fw.fx.replace_pattern(traced, lambda p, q: fw.relu(p + q), lambda p, q: (p - q).exp())
    x, y = fw.tensor([1.0, -1.0]), fw.tensor([0.5, 0.25])
    b = ((x - y).exp() * 2 - y).exp()
    assert len(found) == 2 and fw.allclose(traced(x, y), b + fw.relu(x + 1) + x + 1)
    assert found[0].anchor.name == "relu" and {n.op for n in found[0].nodes_map} == {"placeholder",
    "call_function"}
    traced.graph.lint()
    module = fw.fx.symbolic_trace(fw.nn.Sequential(fw.nn.Linear(2, 2), fw.nn.ReLU(), fw.nn.ReLU()))

    class Once(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = fw.nn.Sigmoid()

        def forward(self, x):
            return self.last(x)
    pattern = fw.fx.Graph()
    pattern.output(pattern.call_module("2", (pattern.call_module("1", (pattern.placeholder("x"),)),)))
    assert len(fw.fx.replace_pattern(module, pattern, fw.fx.symbolic_trace(Once()))) == 1
    assert "last" in dict(module.named_modules()) and 0 < module(x).min() < module(x).max() < 1
    assert fw.fx.replace_pattern(traced, lambda p: p.tanh(), lambda p: p) == []
    for pattern, new, says in ((lambda p: p, abs, "one value"), (lambda p, q: p + q, lambda p: p + 1,
    "arguments")):
        with pytest.raises(ValueError, match=says):
            fw.fx.replace_pattern(traced, pattern, new)


def test_symbols_outside_of_a_trace_append_to_their_graph():
    program = """
import framework as fw
graph = fw.fx.Graph()
x = fw.fx.Proxy(graph.placeholder("x"))
assert type(x.tracer) is fw.fx.GraphAppendingTracer
y = fw.nn.LeakyReLU(0.5)(fw.cat([x, x.abs()])) + fw.nn.functional.softmax(input=x, dim=0).sum() * x.shape[0]
graph.output(y.node)
graph.lint()
t = fw.tensor([-2.0, 4.0])
ours = fw.fx.GraphModule(fw.nn.Module(), graph)(t)
assert ours.tolist() == [1, 6, 4, 6], ours
print(*[n.name for n in graph.nodes])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:4] == ["x", "abs_1", "cat", "leaky_relu"]


def test_traces_of_several_threads_do_not_meet():
    import threading
    before, wrong = (F.softplus, fw.relu, fw.nn.Module.__call__), []

    def work(k):
        for _ in range(15):
            m = Block()
            traced = fw.fx.symbolic_trace(m)
            x = fw.randn(2, 3)
            if not fw.equal(traced(x)["out"][0], m(x)["out"][0]) or len(traced.graph.nodes) != 16:
                wrong.append(len(traced.graph.nodes))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and (F.softplus, fw.relu, fw.nn.Module.__call__) == before


def test_sources_of_graphs_go_with_them():
    import gc
    import linecache
    gc.collect()
    before = {name for name in linecache.cache if name.startswith("<graph ")}
    traced = fw.fx.symbolic_trace(lambda x: x + 1)
    for _ in range(5):
        traced.recompile()
    assert "return add" in linecache.getline(type(traced).forward.__code__.co_filename, 3)
    gc.collect()
    assert len({name for name in linecache.cache if name.startswith("<graph ")} - before) == 1
    del traced
    gc.collect()
    assert {name for name in linecache.cache if name.startswith("<graph ")} <= before


def test_norms_go_into_convolutions():
    m = fw.nn.Sequential(fw.nn.Conv2d(1, 2, 3), fw.nn.BatchNorm2d(2), fw.nn.ReLU(), fw.nn.BatchNorm2d(2))
    m(fw.randn(4, 1, 5, 5))
    m.eval()
    fused = fw.fx.experimental.optimization.fuse(m)
    x = fw.randn(2, 1, 5, 5)
    assert fw.allclose(fused(x), m(x), atol=1e-5) and isinstance(m[1], fw.nn.BatchNorm2d)
    assert [n.target for n in fused.graph.nodes if n.op == "call_module"] == ["0", "2", "3"]
    with pytest.raises(ValueError, match="evaluation"):
        fw.fx.experimental.optimization.fuse(m.train())


def test_steps_with_effects_stay():
    seen = []

    @fw.fx.has_side_effect
    def note(x):
        seen.append(x)
    graph = fw.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(note, (x,))
    graph.call_function(operator.add, (x, 1))
    graph.output(x)
    assert graph.eliminate_dead_code() and [n.name for n in graph.nodes] == ["x", "note", "output"]
