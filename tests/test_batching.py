"""batching.together: results, gradients and draws are those of the loop; operations run together."""

import gc
import random
import re
from pathlib import Path

import numpy as np
import pytest
import vmap_rows
from table import ROWS

import framework as fw
from framework import nn
from framework.batching import together, unit
from framework.utils.checkpoint import checkpoint

# rows of each kind; ``python tests/vmap_rows.py --together`` takes them all
CHOSEN = ["add", "where", "pow", "exp_", "sum", "var", "softmax", "sort", "gather", "__getitem__",
          "__setitem__", "embedding", "matmul", "linear", "einsum", "solve", "inv_ex", "conv2d", "max_pool2d",
          "layer_norm", "batch_norm", "cross_entropy", "mse_loss", "cat", "chunk", "view", "expand", "pad",
          "scaled_dot_product_attention", "cumsum", "masked_select", "LSTM", "GRU", "_sample_dirichlet",
          "dropout", "fft"]


@pytest.mark.parametrize("name", CHOSEN)
def test_rows(name):
    rows = [row for row in ROWS if row.name == name]
    assert {vmap_rows.check_together(sample) for row in rows for sample in row.samples[:6]} & {
        "values", "derivatives"}


class Tree(nn.Module):
    """A child-sum cell on binary trees whose leaves are numbers of words."""

    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.leaf, self.gates = nn.Linear(width, 3 * width), nn.Linear(2 * width, 5 * width)
        self.out = nn.Linear(width, 3)

    def first(self, x):
        i, o, u = self.leaf(x).chunk(3, -1)
        c = i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def join(self, left, right):
        (a, c), (b, d) = left, right
        i, o, f, g, u = self.gates(fw.cat([a, b], -1)).chunk(5, -1)
        c = i.sigmoid() * u.tanh() + f.sigmoid() * c + g.sigmoid() * d
        return o.sigmoid() * c.tanh(), c

    def state(self, tree):
        if isinstance(tree, int):
            return self.first(self.embed(fw.tensor(tree)))
        return self.join(self.state(tree[0]), self.state(tree[1]))

    def forward(self, example):
        tree, label = example
        return nn.functional.cross_entropy(self.out(self.state(tree)[0]), fw.tensor(label))


class UnitTree(Tree):
    first, join = unit(Tree.first), unit(Tree.join)


def tree(leaves, rng):
    if leaves == 1:
        return rng.randrange(20)
    left = rng.randrange(1, leaves)
    return tree(left, rng), tree(leaves - left, rng)


class Graph(nn.Module):
    """Rounds of messages along edges, as many as the graph has; each node sums what it gets."""

    def __init__(self):
        super().__init__()
        self.send, self.keep = nn.Linear(6, 4), nn.GRUCell(4, 4)

    def forward(self, graph):
        nodes, edges, rounds = graph
        h = list(nodes)
        for _ in range(rounds):
            got = [fw.zeros(4) for _ in h]
            for a, b, kind in edges:
                got[b] = got[b] + self.send(fw.cat([h[a], kind])).relu()
            h = [self.keep(m[None], x[None])[0] for m, x in zip(got, h)]
        return sum(h).mean()


class Words(nn.Module):
    """Gates over letters, as long as the word is."""

    def __init__(self):
        super().__init__()
        self.gates, self.out = nn.Linear(9, 12), nn.Linear(4, 2)

    def forward(self, letters):
        h = fw.zeros(4)
        for x in letters:
            i, f, u = self.gates(fw.cat([x, h])).chunk(3)
            h = f.sigmoid() * h + i.sigmoid() * u.tanh()
        return self.out(h).log_softmax(-1)[0]


def cases():
    rng = random.Random(0)
    fw.manual_seed(0)
    trees = [(tree(rng.randint(1, 9), rng), rng.randrange(3)) for _ in range(12)]
    graphs = []
    for _ in range(6):
        n = rng.randint(2, 5)
        edges = [(rng.randrange(n), rng.randrange(n), fw.randn(2)) for _ in range(2 * n)]
        graphs.append((fw.randn(n, 4), edges, rng.randint(1, 3)))
    words = [fw.randn(rng.randint(1, 7), 5) for _ in range(9)]
    tree_module, units = Tree(4), UnitTree(4)
    units.load_state_dict(tree_module.state_dict())
    return {"trees": (tree_module, trees, 8), "units": (units, trees, 8), "graphs": (Graph(), graphs, 3),
            "words": (Words(), words, 2)}


@pytest.mark.parametrize("name", ["trees", "units", "graphs", "words"])
def test_equals_the_loop(name):
    module, examples, times = cases()[name]
    loop = [module(x) for x in examples]
    sum(loop).backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    found = together(module, examples)
    np.testing.assert_allclose([y.item() for y in found], [y.item() for y in loop], rtol=2e-6, atol=1e-6)
    sum(found).backward()
    for p, g in zip(module.parameters(), expected):
        np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-5, atol=1e-6)
    assert found.schedule.calls > times * found.schedule.runs
    assert (name == "units") == any("first" in step.name for step in found.schedule.steps)
    assert f"{found.schedule.calls} calls in {found.schedule.runs} runs" in str(found.schedule)
    assert found.schedule.draw().count("<rect") == len(found.schedule)


def test_losses_of_all_depths_run_once():
    module, examples, _ = cases()["trees"]
    steps = together(module, examples).schedule.steps
    assert [s.calls for s in steps if s.name == "cross_entropy"] == [len(examples)]
    assert len([s for s in steps if s.name == "embedding"]) == 1


def test_second_derivatives():
    w = fw.randn(3, dtype=fw.float64, requires_grad=True)

    def f(xs):
        h = fw.zeros(3, dtype=fw.float64)
        for x in xs:
            h = (h * w + x).tanh()
        return (h ** 3).sum()
    examples = [fw.randn(n, 3, dtype=fw.float64) for n in (1, 4, 2, 4)]

    def curved(losses):
        (g,) = fw.autograd.grad(sum(losses), w, create_graph=True)
        return fw.autograd.grad((g ** 2).sum(), w)[0]
    np.testing.assert_allclose(curved(together(f, examples)).numpy(),
                               curved([f(x) for x in examples]).numpy(), rtol=1e-10)


def test_values_that_are_asked_for():
    w = fw.randn(3, requires_grad=True)

    def f(x):
        y = x * w
        while y.norm() < 4:  # each example as often as it needs
            y = y * 1.5
        if bool((y > 2).any()):
            y = y.clone()
            y[0] = y[1] * 2
            y.mul_(2)
        return y.sum(), float(y.detach().max()), np.asarray(y.detach()).copy()
    examples = [fw.randn(3) for _ in range(5)]
    loop, found = [f(x) for x in examples], together(f, examples)
    for (a, b, c), (d, e, g) in zip(found, loop):
        assert a.item() == pytest.approx(d.item(), rel=1e-5) and b == pytest.approx(e, rel=1e-5)
        np.testing.assert_allclose(c, g, rtol=1e-5)
    np.testing.assert_allclose(fw.autograd.grad(sum(a for a, *_ in found), w)[0].numpy(),
                               fw.autograd.grad(sum(a for a, *_ in loop), w)[0].numpy(), rtol=1e-5)


def test_draws_are_those_of_the_loop():
    layer = nn.Linear(4, 4)

    def f(x):
        h = nn.functional.dropout(layer(x), 0.5)
        return (h * fw.rand(4) + fw.bernoulli(h.sigmoid())).sum()
    examples = [fw.randn(4) for _ in range(6)]
    fw.manual_seed(3)
    loop = [f(x).item() for x in examples]
    fw.manual_seed(3)
    np.testing.assert_allclose([y.item() for y in together(f, examples)], loop, rtol=1e-5)

    @unit
    def drops(x):
        return nn.functional.dropout(x, 0.5)
    rows = together(drops, [fw.ones(64) for _ in range(3)])
    assert not (rows[0] == rows[1]).all()  # no unit: each draws its own


def test_other_transforms_inside():
    w = fw.randn(3, requires_grad=True)

    class Twice(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def f(x):
        y = Twice.apply(x * w)
        y = checkpoint(lambda t: (t * w).sin(), y, use_reentrant=False)
        slope = fw.func.grad(lambda t: (t ** 2 * w).sum())(y)
        rows = fw.func.vmap(lambda r: r.exp())(fw.stack([y, slope]))
        (inner,) = fw.autograd.grad((rows * w).sum(), w, create_graph=True)
        with fw.no_grad():
            scale = (y * 2).abs().sum()
        return (inner * slope).sum() * scale
    examples = [fw.randn(3) for _ in range(4)]
    loop, found = [f(x) for x in examples], together(f, examples)
    np.testing.assert_allclose([y.item() for y in found], [y.item() for y in loop], rtol=1e-4)
    np.testing.assert_allclose(fw.autograd.grad(sum(found), w)[0].numpy(),
                               fw.autograd.grad(sum(loop), w)[0].numpy(), rtol=1e-3)


def test_parameters_are_shared_and_what_depends_on_them_alone_is_computed_once():
    w = fw.randn(3, 3, requires_grad=True)
    found = together(lambda x: (w @ w.t()).exp() @ x, [fw.randn(3) for _ in range(5)])
    ways = {s.name: (s.calls, s.way) for s in found.schedule.steps}
    assert ways["exp"] == (5, "shared by all") and ways["matmul"][1] in ("shared by all", "one call")
    assert found.schedule.runs == 4 and found[0].requires_grad


def test_what_is_refused_and_what_fails():
    with pytest.raises(RuntimeError, match="part of another one"):
        together(lambda x: (x * 2)[0].add_(1), [fw.ones(2)])
    with pytest.raises(RuntimeError, match="as_strided"):
        together(lambda x: (x * 2).as_strided((2, 2), (1, 0)), [fw.ones(2)])
    with pytest.raises(fw.errors.ShapeError, match="matmul"):
        together(lambda x: x @ (x + 1), [fw.ones(2, 3)])
    kept = []

    def fails(x):
        kept.append(x * 2)
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        together(fails, [fw.ones(2)])
    with pytest.raises(RuntimeError, match="ended with an error"):
        kept[0].item()
    assert (fw.ones(2) * 2).tolist() == [2, 2]  # nothing is put off any more
    held = []
    together(lambda x: held.append(x * 2), [fw.ones(2)])
    assert held[0].tolist() == [2, 2] and type(held[0]) is fw.Tensor


def test_units_look_at_arguments():
    seen = []

    @unit
    def f(x, times, parts=()):
        seen.append(times)
        for p in parts:
            x = x + p
        return {"y": x * times, "n": times}
    x = fw.ones(2, requires_grad=True)
    found = together(lambda n: f(x * 1, n % 3, parts=[x] * (n % 2)), range(12))
    assert len(seen) == 6
    assert [r["y"].tolist()[0] for r in found] == [(1 + n % 2) * (n % 3) for n in range(12)]
    assert f(x, 2)["n"] == 2  # outside it is the function itself

    @unit
    def asks(x):
        return x * 2 if x.sum() > 0 else x * 3
    assert [r.item() for r in together(asks, [fw.tensor(1.0), fw.tensor(-1.0)])] == [2, -3]


def test_schedule_is_drawn(tmp_path):
    found = together(lambda x: (x * 2).sum(), [fw.ones(3), fw.ones(3)])
    found.schedule.draw(tmp_path / "schedule.svg")
    assert "2 x sum" in Path(tmp_path / "schedule.svg").read_text()


def test_the_page_runs(capsys):
    page = (Path(__file__).parents[1] / "docs" / "batches.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/batches.md", "exec"), names)
    assert "calls in" in capsys.readouterr().out


def test_cutting_is_one_call_and_collections_are_as_before():
    threshold = gc.get_threshold()
    seen = []

    def f(x):
        seen.append(gc.get_threshold()[0])
        a, b, c = (x * 2).chunk(3)
        d, e = fw.stack([a, b]).unbind(1)
        return (a * c).sum() + d.sin().sum() + e.prod()
    examples = [fw.arange(6.0) + i for i in range(4)]
    w = [x.clone().requires_grad_() for x in examples]
    found = together(f, w)
    assert [s.calls for s in found.schedule.steps if s.name == "split"] == [4, 4]
    sum(found).backward()
    for x, y, given in zip(examples, found, w):
        x = x.requires_grad_()
        loop = f(x)
        loop.backward()
        assert y.item() == pytest.approx(loop.item(), rel=1e-6) and fw.allclose(given.grad, x.grad)
    assert gc.get_threshold() == threshold and seen[0] >= threshold[0]
