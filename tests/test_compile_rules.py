"""A program for each rule of ``fw.compile`` that random programs leave alone: without the rule it differs."""

import copy
import threading

import numpy as np
import pytest
from test_compile import told

import framework as fw
from framework.jit import doors
from framework.jit import plans as plans_module
from framework.jit import segments as segments_module
from framework.jit.lifetimes import Life, within_peak

nn, F = fw.nn, fw.nn.functional
native = pytest.mark.skipif(not plans_module.possible(), reason="nothing is put off without the kernels")


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)  # and what native calls do is seen, too


def _a_parameter_in_two_groups(compile):
    """The second group's step is another one than before the first group's."""
    p, q = (fw.randn(3, 3, requires_grad=True) for _ in range(2))
    optimizer = fw.optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.1}])
    optimizer.param_groups[1]["params"] = [p]
    seen = []

    @compile
    def step(x):
        optimizer.zero_grad()
        ((p * x + q) * x).square().sum().backward()
        optimizer.step()
    for _ in range(5):
        step(fw.randn(3, 3))
        seen += [p.detach().clone(), p._version, optimizer.state[p]["step"], q.grad.clone()]
    return seen


def _views_after_a_backward(compile):
    """A view that comes out after a backward knows what it is a view of."""
    w, seen = fw.randn(4, requires_grad=True), []

    @compile
    def step(x):
        y = w * x
        v = y.view(2, 2)
        v.square().sum().backward()
        return y, v
    for n in range(6):
        y, v = step(fw.randn(4))
        with fw.no_grad():
            y.add_(n)
        seen += [y.detach().clone(), v.detach().clone(), v._version, v._is_view(), v._base is y]
    return seen


def _one_memory_returned_twice(compile):
    """Results over one memory, which a later write shows."""
    seen = []

    @compile
    def forward(x):
        y = x * 2
        return y, y.contiguous(), y.view(-1)
    w = fw.randn(3, 3, requires_grad=True)

    @compile
    def backward(x):
        y = w * x
        z = y.contiguous()
        z.sum().backward()
        return y, z
    for _ in range(6):
        for f in (forward, backward):
            y, z, *_rest = f(fw.randn(3, 3))
            with fw.no_grad():
                y.add_(1)
            seen += [y.detach().clone(), z.detach().clone(), z is y, z._version]
    return seen


def _two_tensors_with_one_gradient(compile):
    """Copies share the place of the gradient, until they do not."""
    seen = []

    @compile
    def step(a, b, x):
        (a * x + b * 2).square().sum().backward()
    for n in range(10):
        a = fw.randn(3, requires_grad=True)
        b = copy.copy(a) if n < 5 else fw.randn(3, requires_grad=True)
        b.data = fw.randn(3)
        step(a, b, fw.randn(3))
        seen += [a.grad.clone(), b.grad.clone()]
    return seen


def _memory_written_before_a_backward(compile):
    """NumPy writes into memory between what reads it and the backward, at each turn of a plan's life once."""
    seen = []
    for wrong in range(6):
        memory = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
        w, x = fw.randn(3, 3, requires_grad=True), fw.from_numpy(memory)

        @compile
        def step(now, w=w, x=x, memory=memory):
            y = (w * x).tanh() * x
            if now:
                memory[1] += 1
            y.sum().backward()
            return y
        for n in range(6):
            w.grad = None
            seen += [step(n == wrong).detach().clone(), w.grad.clone(), memory.copy()]
    return seen


def _exceptions_end_a_call(compile):
    """What was put off before an exception is there for whoever catches it."""
    seen, kept = [], []

    @compile
    def step(x, wrong):
        y = x * 2 + 1
        kept.append(y)
        if wrong == 1:
            raise KeyError("wrong")
        if wrong == 2:
            raise KeyboardInterrupt
        return y.tanh()
    for n in range(9):
        try:
            seen.append(step(fw.randn(3), n % 3))
        except (KeyError, KeyboardInterrupt) as error:
            seen.append(repr(error))
        seen.append(kept[-1] * 3)
    return seen


def _positions_out_of_range(compile):
    """A position that does not fit raises at the call, inside ``try``."""
    table, w, seen = fw.randn(5, 3), fw.randn(3, 4), []

    @compile
    def look(ids):
        try:
            y = F.embedding(ids, table) * 2
        except IndexError as error:
            seen.append(str(error))
            y = fw.zeros(2, 3)
        return y + 1

    @compile
    def score(x, wanted):
        try:
            loss = F.cross_entropy(x @ w, wanted)
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
            loss = fw.zeros(())
        return loss + 1
    for n in range(8):
        seen.append(look(fw.tensor([n % 4, 5 if n % 4 == 3 else 1])))
        seen.append(score(fw.randn(2, 3), fw.tensor([1, 4 if n % 4 == 3 else n % 4])))
    return seen


def _views_of_shared_memory(compile):
    """A view of NumPy's memory shows what NumPy writes later."""
    x, seen = fw.randn(4, 3), []
    memory = x.numpy()

    @compile
    def step():
        v = x.t()
        memory[1] += 1
        y = v * 2
        memory[2] -= 1
        return y + v, v
    for _ in range(6):
        seen += [t.clone() for t in step()]
    return seen


def _pieces_that_nobody_uses(compile):
    """A piece without a gradient has zeros where the pieces are joined."""
    w, seen = fw.randn(3, 4, requires_grad=True), []

    def loss(x):
        a, b, c = (w * x).unbind(0)
        d, e = (w + x).split(2, 1)
        return a.square().sum() + (c * 2).sum() + e.tanh().sum()
    step = compile(lambda x: loss(x).backward())
    for _ in range(6):
        w.grad = None
        step(fw.randn(3, 4))
        seen.append(w.grad.clone())
    return seen


def _sums_behind_views_and_copies(compile):
    """One gradient for several leaves, through sums, views and copies; added to what was there."""
    a, b, c = (fw.randn(4, 4, requires_grad=True) for _ in range(3))
    seen = []

    @compile
    def step(x):
        u = a + b
        v = u + c
        t = (u.t() + v - a).sum(0) * 0.3 + c[0]
        (v.square() * x + u + t).sum().backward()
        return u, t
    for n in range(8):
        if n % 3 == 0:
            a.grad = b.grad = c.grad = None
        seen += [*step(fw.randn(4, 4)), *[p.grad.clone() for p in (a, b, c)]]
        with fw.no_grad():
            a.grad.mul_(2)
    return seen


def _rows_and_columns(compile):
    """Operands of several sizes and dtypes in one chain, and truth values."""
    seen = []

    @compile
    def step(x, row, column, wide):
        late = x * 3 - (row * 2 - 1).tanh()
        y = row * column - 0.0 * x + late.exp()
        z = fw.where(y > 0, y, -0.5 * x) * -0.0 + (row + column) * 0.5
        return y, z.tanh() * wide, (row * 2 - column).exp() * y, fw.where(x < 0, wide, y) - 0.5
    for _ in range(6):
        seen += step(fw.randn(3, 4), fw.randn(4), fw.randn(3, 1), fw.randn(3, 4).double())
    return seen


def _whole_numbers_among_operands(compile):
    """What whole numbers give, and their errors, come as they do without."""
    seen = []

    @compile
    def step(x, n):
        seen.append((x * n + n, n // 2, x.pow(n), fw.where(n > 1, x, n)))
        try:
            return n // (n - 2) + 1
        except Exception as error:
            return str(error)
    for k in range(6):
        seen.append(step(fw.randn(3), fw.tensor([3, k % 3, 4])))
    return seen


def _leaves_that_take_over(compile):
    """Large gradients: which addition comes last is seen in the last bit."""
    a, b, seen = fw.randn(400, 400, requires_grad=True), fw.randn(400, 400, requires_grad=True), []

    @compile
    def step(x):
        y = (a + b).exp() * x
        ((a * 3.1 + y).square().sum() + (a + y.tanh()).sum()).backward()

    @compile
    def shared(x):
        u = a + b
        (u.exp() * x + u * 2).sum().backward()
    for n in range(10):
        (step if n < 5 else shared)(fw.randn(400, 400))
        if n > 4:
            a.grad.mul_(2)
        seen += [a.grad.clone(), b.grad.clone()]
        if n > 3:
            a.grad, b.grad = None, None
    return seen


def _sums_behind_a_mask(compile):
    """A leaf takes the gradient of a sum with a row over, after all others, also behind a mask."""
    a, row = fw.randn(6, 6, requires_grad=True), fw.randn(6, requires_grad=True)

    @compile
    def step(x):
        u = a + row
        ((u.clamp(-1, 1) * x + u * 2).square().sum() + (a * 3.1).tanh().sum()).backward()
    for _ in range(6):
        step(fw.randn(6, 6))
    return a.grad, row.grad


def _inner_calls(compile):
    """A compiled function within another one ends nothing of the outer one's."""
    inner, seen = compile(lambda x: x.tanh() * 2), []

    @compile
    def outer(x):
        before = fw.compiler.is_compiling()
        y = inner(x + 1)
        return y * 3, before == fw.compiler.is_compiling()
    for _ in range(5):
        seen.append(outer(fw.randn(3)))
    return seen


PROGRAMS = [_a_parameter_in_two_groups, _views_after_a_backward, _one_memory_returned_twice,
            _two_tensors_with_one_gradient, _memory_written_before_a_backward, _exceptions_end_a_call,
            _positions_out_of_range, _views_of_shared_memory, _pieces_that_nobody_uses,
            _sums_behind_views_and_copies, _rows_and_columns, _whole_numbers_among_operands,
            _leaves_that_take_over, _sums_behind_a_mask, _inner_calls]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_compiled_is_eager(program):
    assert told(program, fw.compile) == told(program, lambda f: f)


def test_functions_get_their_own_code_back():
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    f = fw.compile(lambda x: fw.tanh(x * 2) + x.sum())
    for _ in range(4):
        f(fw.randn(3))
    assert all(function.__code__ is own for function, _, own, _ in doors.doors())


def test_steps_are_merged_where_the_second_reads_the_first_once_and_where_the_pair_does():
    from framework.jit.fusion import _merged
    x, y, z, r, out = ("in", 0), ("in", 1), ("in", 2), ("r", 0), ("out", 0)
    first = ("mul", r, x, y, x)
    assert _merged([first, ("add", out, r, z, r)]) == [("mul_add", out, x, y, z)]
    for second in (("add", out, z, r, z), ("add", out, r, r, r), ("add", out, z, x, z)):
        assert _merged([first, second]) == [first, second]


class _Wide(nn.Module):
    """Whose weights have gradients that go on beside the others."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(96, 128), nn.Linear(128, 96)
        self.third = nn.Linear(96, 96, bias=False)

    def forward(self, x):
        y = self.second(F.gelu(self.first(x)))
        return self.third(y.view(4, 32, 3, 32).transpose(1, 2).reshape(4, 32, 96) + x)


def _wide(seed):
    fw.manual_seed(seed)
    return _Wide()


def _wide_steps(compiled, model, steps=60):
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    if compiled:
        step = fw.compile(step)
    generator = fw.Generator().manual_seed(5)
    seen = []
    for _ in range(steps):
        seen.append(step(fw.randn(4, 32, 96, generator=generator)).detach())
        seen += [p.grad.clone() for p in model.parameters()]
    return [x.numpy().tobytes() for x in seen]


@native
def test_gradients_of_weights_may_go_on_beside_though_their_rules_turn_what_they_take(monkeypatch):
    plain, kinds = segments_module.within_peak, []

    def noted(steps, outputs, sizes):
        found = plain(steps, outputs, sizes)
        kinds.extend(len(sizes[steps[at].results[0]][0]) for at in found)
        return found
    monkeypatch.setattr(segments_module, "within_peak", noted)
    _wide_steps(True, _wide(3), 8)
    assert set(kinds) == {2}, kinds  # of weights: those of biases cannot, and would take their place


@pytest.fixture()
def four_threads():
    before = fw.get_num_threads()
    fw.set_num_threads(4)
    yield
    fw.set_num_threads(before)


def test_what_goes_on_beside_a_plan_has_the_bits_of_plain_calls(four_threads):
    plain = _wide_steps(False, _wide(3))
    assert _wide_steps(True, _wide(3)) == plain
    fw.set_num_threads(1)
    assert _wide_steps(True, _wide(3)) == plain


class _Small(nn.Module):
    """Whose kernels are worth a thread only while it is awake."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(32), nn.Linear(32, 96)
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 39)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).view(4, 32, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.down(F.gelu(self.up(x + y.transpose(1, 2).reshape(4, 32, 32))))


@native
@pytest.mark.parametrize("near", [0, 200, 10**9])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_small_kernels_shared_by_threads_that_are_awake_have_the_bits_of_plain_calls(count, near):
    fw.manual_seed(4)
    model = _Small()
    module = fw._native.module
    before = fw.get_num_threads()
    generator = fw.Generator().manual_seed(5)
    batches = [fw.randn(4, 32, 32, generator=generator) for _ in range(30)]
    labels = fw.randint(0, 39, (128,), generator=generator)

    def step(x):
        model.zero_grad()
        loss = F.cross_entropy(model(x).view(128, 39), labels)
        loss.backward()
        return loss

    def seen(step):
        return [x.detach().numpy().tobytes() for batch in batches
                for x in (step(batch), *(p.grad for p in model.parameters()))]
    fw.set_num_threads(1)
    plain = seen(step)
    fw.set_num_threads(count)
    module.set_near(near)
    try:
        assert seen(fw.compile(step, strict=True)) == plain
    finally:
        module.set_near(200)
        fw.set_num_threads(before)


def test_two_threads_run_plans_at_a_time_with_one_place_beside(four_threads):
    plain = [_wide_steps(False, _wide(seed), 30) for seed in (1, 2)]
    models, found = [_wide(1), _wide(2)], [None, None]

    def run(i):
        found[i] = _wide_steps(True, models[i], 30)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == plain


@native
def test_memory_of_what_goes_on_beside_is_kept_and_let_go(four_threads):
    """Gradients that a caller keeps are not written again, and those that nobody keeps go."""
    w = fw.randn(128, 128, requires_grad=True)
    v = fw.randn(128, 128, requires_grad=True)

    @fw.compile
    def step(x):
        w.grad = v.grad = None
        ((x @ w).relu() @ v).sum().backward()
    x = fw.randn(128, 128)
    for _ in range(8):
        step(x)
    kept, before = w.grad, w.grad.clone()
    held = fw.cpu.memory_allocated()
    for _ in range(50):
        step(fw.randn(128, 128))
    assert kept.equal(before)
    assert fw.cpu.memory_allocated() <= held + 2 * w.nbytes


@pytest.mark.parametrize("seed", range(20))
def test_other_shapes_of_turned_memory(seed):
    """Copied where no strides can tell the places, and only there."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6, 8], rng.integers(2, 5)))
    axes, count = tuple(int(a) for a in rng.permutation(len(sizes))), int(np.prod(sizes))
    shapes = [(count,), (2, -1) if count % 2 == 0 else (1, -1), (1, count, 1), (-1, sizes[axes[-1]])]

    @fw.compile
    def run(x):
        turned = (x + 1).permute(axes)
        return [turned.reshape(shape) * 2 for shape in shapes]
    for _ in range(6):
        x = fw.randn(*sizes)
        wanted = (x.numpy() + np.float32(1)).transpose(axes)
        for found, shape in zip(run(x), shapes):
            assert np.array_equal(found.numpy(), wanted.reshape(shape) * np.float32(2))


@native
def test_what_goes_on_beside_takes_no_more_memory_than_plain_calls(four_threads):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.GELU()) for _ in range(4)])
    x = fw.randn(128, 128)

    def step():
        model.zero_grad()
        model(x).square().mean().backward()

    def peak(f):
        before = fw.cpu.memory_allocated()
        fw.cpu.reset_peak_memory_stats()
        f()
        return fw.cpu.max_memory_allocated() - before
    compiled = fw.compile(step)
    for _ in range(5):
        step()
        compiled()
    assert max(peak(compiled) for _ in range(40)) <= peak(step)


def test_operands_are_kept_within_the_peak():
    sizes = {"z": 10, "a": 8, "b": 8, "c": 4, "d": 2, "w": 2, "v": 2}
    steps = [Life(["e0"], ["z"], False, False), Life(["z"], ["a"], False, False),
             Life(["z", "a"], ["b"], False, False),  # z, a and b are there at a time
             Life(["b", "a"], ["w"], False, True), Life(["b"], ["c"], False, False),
             Life(["c"], ["v"], False, True), Life(["c"], ["d"], False, False)]

    def found(steps, outputs, **more):
        shapes = {name: ((size,), np.dtype(np.float32)) for name, size in {**sizes, **more}.items() if size}
        return within_peak(steps, outputs, shapes)
    assert found(steps, ["w", "v", "d"]) == {3, 5}
    grown = [*steps, Life(["d"], ["f"], False, False)]
    assert found(grown, ["w", "v", "f"], f=4) == {3}
    assert found(grown, ["w", "v", "f"], f=14) == {5}
    assert found(grown, ["w", "v", "f"], f=20) == set()
    assert found(steps, ["w", "v", "d"], c=0) == {3}  # of an unknown size
    spread = [Life(["e0"], ["z"], False, False, own=False), *steps[1:]]  # z may be one number for all places
    assert found(spread, ["w", "v", "d"]) == {5}
    turned = [*steps[:4], Life(["b"], ["c"], True, False), *steps[5:]]
    assert found(turned, ["w", "v", "d"]) == {3, 5}


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[:1], lambda x: x.t(), lambda x: x[..., 1:]])
@pytest.mark.parametrize("write", [
    lambda x, y: x.zero_(), lambda x, y: x.fill_(3), lambda x, y: x.copy_(y[:x.shape[0], :x.shape[-1]]),
    lambda x, y: x.uniform_(), lambda x, y: x.normal_(), lambda x, y: x.bernoulli_(0.5),
    lambda x, y: x.random_(9), lambda x, y: x.data.zero_(), lambda x, y: x.add_(y[0, 0]),
    lambda x, y: x.mul_(2)])
def test_writes_come_after_what_was_put_off(part, write):
    """Memory that operations which were put off read is written to after they ran."""
    def step(x, y):
        z = fw.tanh(x * 2)
        write(part(x), y)
        return z, x * 3
    compiled = fw.compile(step)
    for n in range(6):
        results = []
        for run in step, compiled:
            fw.manual_seed(n)
            x, y = fw.randn(3, 3), fw.randn(3, 3)
            results.append([t.numpy().tobytes() for t in (*run(x, y), x)] + [x._version])
        assert results[0] == results[1]
