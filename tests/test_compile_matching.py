"""Programs whose calls are nearly the recorded ones: each rule of the match sees the difference."""

import contextlib
import threading

import numpy as np
import pytest
from test_compile import told

import framework as fw
from framework.autograd import forward_ad
from framework.jit import plans as plans_module
from framework.seam import intercept

nn, F = fw.nn, fw.nn.functional


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)  # and what native calls do is seen, too


def _which_result(compile):
    """Of two results, now the one and now the other comes first."""
    @compile
    def f(x, turned):
        a, b = x * 2, x * 3
        return b - a if turned else a - b
    return [f(fw.randn(3), n > 4 and n % 2) for n in range(12)]


def _what_is_told(compile):
    """Kinds and strides of results that are asked for and not computed."""
    @compile
    def f(x):
        y = x * 2
        seen.append((str(y.dtype), y.stride(), x.t().stride(), y.is_contiguous()))
        return y + 1

    @compile
    def view(x):
        try:
            return x.view(16) * 2
        except Exception as error:
            return type(error).__name__, str(error)
    seen = []
    given = [fw.randn(4, 4), fw.randn(4, 4).to(fw.complex64), fw.randn(4, 4).t(), fw.randn(4, 4).double()]
    for n in range(24):
        x = given[n % 4 if n > 11 else n % 2 * 3]
        seen += [f(x), view(x)]
    return seen


def _longer_lists(compile):
    """One more tensor, and one less, in a list."""
    @compile
    def f(x, many):
        return fw.cat([x * k for k in range(1, many + 1)]) * 2

    @compile
    def g(x, many):
        return fw.stack([x] * many) + 1
    many = [2, 2, 2, 2, 3, 1, 2, 3] * 2
    return [(f(fw.randn(2, 3), n), g(fw.randn(2, 3), n)) for n in many]


def _positions_below(compile):
    """A negative position raises where it is handed in."""
    table, seen = fw.randn(5, 3, requires_grad=True), []

    @compile
    def f(at):
        try:
            y = F.embedding(at, table)
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
            return None
        seen.append("in range")
        return y * 2
    for n in range(10):
        f(fw.tensor([1, 4 if n < 6 else -1]))
    return seen


def _modes_entered(compile):
    """Something is put off when a mode begins."""
    @compile
    def f(x, kind):
        y = x * 2
        if kind == 0:
            with fw.inference_mode():
                z = y + 1
        elif kind == 1:
            with fw.autocast("cpu", dtype=fw.float16):
                z = y @ y
        elif kind == 2:
            with fw.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
                z = y * y
        else:
            z = y + 1
        return z, y
    x = fw.randn(3, 3, requires_grad=True)
    seen = []
    for n in range(16):
        z, y = f(x, 3 if n < 8 else n % 4)
        seen += [z.detach().clone(), y, z.requires_grad]
    return seen


def _hooks_later(compile):
    """A leaf has a hook only after its backward has gone by a plan."""
    w, seen = fw.randn(3, requires_grad=True), []

    @compile
    def f(x):
        w.grad = None
        y = (w * x).sum()
        y.backward()
        return y
    for n in range(14):
        if n == 7:
            w.register_hook(lambda g: seen.append(g.clone()))
        if n == 10:
            w.register_post_accumulate_grad_hook(lambda p: seen.append("after"))
        f(fw.randn(3))
        seen.append(w.grad.clone())
    return seen


def _other_backwards(compile):
    """The same backward with other arguments, twice, and where nothing is recorded."""
    w, seen = fw.randn(3, requires_grad=True), []

    @compile
    def f(x, n):
        y = (w * x).sum()
        if n < 6 or n % 4 == 0:
            y.backward()
        elif n % 4 == 1:
            y.backward(retain_graph=True)
            y.backward()
        elif n % 4 == 2:
            with fw.no_grad():
                y.backward()
                seen.append((w * 2).requires_grad)
        else:
            y.backward(fw.tensor(3.0))
        return y
    for n in range(18):
        w.grad = None
        f(fw.randn(3), n)
        seen += [w.grad.clone(), fw.is_grad_enabled()]
    return seen


def _backward_in_a_level(compile):
    """A backward inside of forward-mode derivatives leaves these on."""
    w, seen = fw.randn(3, requires_grad=True), []

    @compile
    def f(x, inside):
        w.grad = None
        y = (w * x).sum()
        if not inside:
            y.backward()
            return y
        with forward_ad.dual_level():
            y.backward()
            z = forward_ad.make_dual(x, x * 2) * 3
            seen.append(forward_ad.unpack_dual(z).tangent)
        return y
    for n in range(12):
        f(fw.randn(3), n > 6)
        seen.append(w.grad.clone())
    return seen


def _memory_changed_later(compile):
    """NumPy writes into memory only after plans are there."""
    memory = np.ones(4, np.float32)
    shared, w = fw.from_numpy(memory), fw.randn(4, requires_grad=True)

    @compile
    def forward(n):
        y = shared * 2 + 1
        if n > 6:
            memory[n % 4] += n
        return y

    @compile
    def backward(n):
        w.grad = None
        y = (w * shared).sum()
        if n > 6:
            memory[n % 4] -= 1
        y.backward()
        return y
    return [(forward(n), backward(n), w.grad.clone()) for n in range(14)]


def _tensors_that_change_their_place(compile):
    """A tensor is in the graph only from the middle of a call on, and another one's memory is its own."""
    seen = []

    @compile
    def f(x, w, kind):
        y = x * 2
        if kind == 1:
            x.requires_grad_(True)
        elif kind == 2:
            x.data = x.detach() + 1
        z = (x * w + y).sum()
        z.backward()
        return z
    for n in range(16):
        x, w = fw.randn(3), fw.randn(3, requires_grad=True)
        z = f(x, x.clone().requires_grad_() if n % 5 == 4 else w, n % 3 if n > 7 else 0)
        seen += [z, None if x.grad is None else x.grad.clone(), w.grad, x.detach().clone()]
    return seen


def _one_tensor_for_two(compile):
    """Two arguments that were different tensors are one."""
    seen = []

    @compile
    def f(a, b):
        y = (a * 2 * (b + 1)).sum()
        y.backward()
        return y
    for n in range(14):
        a, b = (fw.randn(3, requires_grad=True) for _ in range(2))
        y = f(a, a if n > 6 and n % 2 else b)
        seen += [y, a.grad.clone(), b.grad]
    return seen


def _weights_of_another_dtype(compile):
    """A step where a weight's dtype is no more its gradient's."""
    w, seen = fw.randn(3, requires_grad=True), []
    optimizer = fw.optim.SGD([w], lr=0.1, momentum=0.5)

    @compile
    def f(x, odd):
        optimizer.zero_grad()
        (w * x).sum().backward()
        if odd:
            w.data = w.data.double()
        try:
            optimizer.step()
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
        if odd:
            w.data = w.data.float()
    for n in range(10):
        f(fw.randn(3), n > 6)
        seen.append(w.detach().clone())
    return seen


def _order_in_memory(compile):
    """Arrays of their own of one shape, which lie by rows and by columns, and what is told of results."""
    @compile
    def f(x):
        y = x * 2
        seen.append((y.stride(), y.is_contiguous()))
        return y.tanh()
    rows, columns = fw.randn(4, 4), fw.randn(4, 4).t() * 1
    seen = [columns.stride()]
    return [seen, *[f(columns if n % 5 == 4 else rows) for n in range(20)]]


def _called_from_a_call(compile):
    """A function whose way is known, inside another one; and one that calls itself from plain code."""
    inner = compile(lambda x: (x * 3).tanh())

    @compile
    def outer(x):
        y = inner(x)
        return y, fw.compiler.is_compiling() == (compile is fw.compile) or fw._native.module is None

    @compile
    def again(x, deep):
        y = x * 2
        z = plain(x, deep - 1) if deep else x
        u = x * 3
        x.numpy()[...] += 1
        return (y + z + u).tanh()
    plain = fw.compiler.disable(lambda x, deep: again(x, deep))
    if hasattr(inner, "_plans"):
        inner._plans.direct = True
    seen = []
    for n in range(12):
        x = fw.randn(3)
        seen += [inner(x), *outer(x), again(x, n % 3)]
    return seen


def _another_thread(compile):
    """What one thread has put off, and another one comes with changes in place."""
    @compile
    def f(x):
        y = x * 2
        x.add_(1)
        with fw.no_grad():
            z = (x * y).tanh()
        return y, z

    def several():
        seen.extend([f(x) for x in given])
    seen, given = [], [fw.randn(3) for _ in range(8)]
    for _ in range(3):
        several()
        thread = threading.Thread(target=several)
        thread.start()
        thread.join()
    return seen


def _watched_from_the_middle_on(compile):
    """Somebody who looks at every operation comes within a call, and stays."""
    @compile
    def f(x, watch):
        y = x * 2
        if watch:
            around.enter_context(intercept(note))
        return y.tanh()

    def note(event, proceed):
        names.append(event.name)
        return proceed(*event.inputs, **event.settings)
    names = []
    with contextlib.ExitStack() as around:
        found = [f(fw.randn(3), n == 9) for n in range(10)]
        found.append(fw.ones(2) + 1)
    return found, names[-1:]


def _kinds_and_constants(compile):
    """A tensor of a kind that one recorded call takes, with the constant of another."""
    @compile
    def f(x, c):
        y = x * c
        seen.append(tuple(y.shape))
        return y.tanh()
    seen = []
    kinds = [((2, 3), 1.0), ((3,), 1.0), ((2, 3), 2.0), ((3,), 2.0)]
    return [seen, *[f(fw.randn(*kinds[n // 4][0]), kinds[n // 4][1]) for n in range(16)]]


def _windows_of_two(compile):
    """Two poolings of one shape, whose largest elements the backward asks for in the other order."""
    a, b = (fw.randn(2, 3, 6, 6, requires_grad=True) for _ in range(2))

    @compile
    def f():
        a.grad = b.grad = None
        loss = (F.max_pool2d(a, 2) * 2).sum() + (F.max_pool2d(b, 2) * 3).sum()
        loss.backward()
        return loss
    return [(f().detach(), a.grad.clone(), b.grad.clone()) for _ in range(8)]


def _betas_that_are_tensors(compile):
    """An option of an optimizer that holds a tensor, from some call on."""
    w = fw.zeros(500, requires_grad=True)
    optimizer = fw.optim.Adam([w], lr=0.1)

    @compile
    def f(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return w.detach().clone()
    seen = []
    for n in range(12):
        if n == 6:
            optimizer.param_groups[0]["betas"] = (fw.tensor(0.8), 0.99)
        try:
            seen.append(f(fw.randn(500)))
        except Exception as error:
            seen.append((type(error).__name__, str(error), w.detach().clone()))
    return seen


PROGRAMS = [_called_from_a_call, _another_thread, _watched_from_the_middle_on, _order_in_memory,
            _kinds_and_constants, _windows_of_two, _betas_that_are_tensors, _which_result,
            _what_is_told, _longer_lists, _positions_below, _modes_entered, _hooks_later,
            _other_backwards, _backward_in_a_level, _memory_changed_later,
            _tensors_that_change_their_place, _one_tensor_for_two, _weights_of_another_dtype]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_compiled_is_eager(program):
    assert told(program, fw.compile) == told(program, lambda f: f)


def test_kinds_that_alternate_are_both_served():
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    f = fw.compile(lambda x, c: (x * c).tanh())
    for n in range(20):
        f(fw.randn(2, 3), fw.randn(*((3,), (2, 3), (1, 3))[n % 3]))
    assert f._plans.deferral.planned >= 12


def test_constants_that_alternate_are_both_served():
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    f = fw.compile(lambda x, c: (x * c).tanh())
    for n in range(20):
        f(fw.randn(2, 3), float(n % 2))
    assert f._plans.deferral.planned >= 14
