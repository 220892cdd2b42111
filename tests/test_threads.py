"""Threads: modes are each thread's own; backwards run side by side, over separate and over shared graphs."""

import ctypes
import sys
import threading

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import _native, nn
from framework.autograd import detect_anomaly, graph
from framework.errors import AnomalyError


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def side_by_side(*works):
    """Run the functions at the same time, each in a thread; what they return, or the first error."""
    barrier = threading.Barrier(len(works))
    results, errors = [None] * len(works), []

    def run(i, work):
        barrier.wait()
        try:
            results[i] = work()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


# -- modes ----------------------------------------------------------------------------------------


def modes():
    return (fw.is_grad_enabled(), fw.is_inference_mode_enabled(), fw.is_anomaly_enabled(),
            (fw.ones(1, requires_grad=True) * 2).requires_grad)


@pytest.mark.parametrize("mode, inside", [
    (fw.no_grad, (False, False, False, False)),
    (fw.inference_mode, (False, True, False, False)),
    (detect_anomaly, (True, False, True, True)),
    (lambda: graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t), (True, False, False, True)),
    (lambda: graph.disable_saved_tensors_hooks("no"), (True, False, False, True)),
])
def test_a_mode_is_the_threads_that_entered_it(mode, inside):
    plain = (True, False, False, True)
    entered, seen = threading.Event(), threading.Event()

    def enters():
        with mode():
            before = modes()
            entered.set()
            seen.wait(5)
            return before, modes()

    def looks():
        entered.wait(5)
        x = fw.ones(1, requires_grad=True)
        with graph.save_on_cpu():
            x.sin().backward()
        found = modes()
        seen.set()
        return found

    (before, after), found = side_by_side(enters, looks)
    assert before == after == inside and found == plain and modes() == plain


def test_modes_are_switched_at_the_same_time():
    def work(mode, inside):
        def run():
            for _ in range(200):
                with mode():
                    assert modes() == inside
                assert modes() == (True, False, False, True)
        return run

    side_by_side(*[work(*pair) for pair in ((fw.no_grad, (False, False, False, False)),
                                            (fw.inference_mode, (False, True, False, False)),
                                            (detect_anomaly, (True, False, True, True)),
                                            (fw.enable_grad, (True, False, False, True)))])


def test_anomaly_mode_of_one_thread_stops_only_that_one():
    def strict():
        with detect_anomaly(), pytest.raises(AnomalyError, match="log made 1 Inf"):
            while True:
                fw.zeros(1, requires_grad=True).log()

    def loose():
        for _ in range(50):
            x = fw.zeros(1, requires_grad=True)
            x.sqrt().backward()
            assert np.isinf(x.grad.item())

    side_by_side(strict, loose, loose)


# -- backward -------------------------------------------------------------------------------------


def train(seed):
    generator = np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))
    with fw.no_grad():
        for p in model.parameters():
            p.copy_(fw.from_numpy(generator.normal(size=p.shape).astype(np.float32)))
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = fw.from_numpy(generator.normal(size=(5, 4)).astype(np.float32))
    y = fw.from_numpy(generator.integers(0, 3, 5))
    for _ in range(10):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [p.detach().numpy() for p in model.parameters()]


def test_models_train_side_by_side_as_they_do_alone():
    alone = [train(seed) for seed in range(4)]
    together = side_by_side(*[lambda seed=seed: train(seed) for seed in range(4)])
    for a, b in zip(alone, together):
        for p, q in zip(a, b):
            np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("inputs", [False, True])
def test_gradients_of_threads_add_up_in_a_shared_leaf(inputs):
    """None is lost, though NumPy lets other threads run while it adds large arrays."""
    n, rounds = 400_000, 8
    x = fw.ones(n) * 2
    for _ in range(12):
        w = fw.ones(n, requires_grad=True)

        def work(w=w):
            for _ in range(rounds):
                w.backward(x, inputs=[w] if inputs else None)

        side_by_side(work, work, work, work)
        np.testing.assert_array_equal(w.grad.numpy(), np.full(n, 2.0 * 4 * rounds))


def test_one_graph_walked_by_several_threads():
    w = fw.tensor([0.5, 1.5], dtype=fw.float64, requires_grad=True)
    hidden = (w.exp() * w).sin()
    seen = []
    hidden.register_hook(seen.append)
    losses = [hidden.sum(), (hidden * hidden).sum()]
    single = [fw.autograd.grad(loss, w, retain_graph=True)[0].numpy() for loss in losses]
    seen.clear()

    def work(loss):
        def run():
            for _ in range(30):
                loss.backward(retain_graph=True)
        return run

    side_by_side(*[work(loss) for loss in losses * 2])
    np.testing.assert_allclose(w.grad.numpy(), 60 * (single[0] + single[1]), rtol=1e-12)
    assert len(seen) == 120


def test_each_thread_asks_for_gradients_of_a_shared_graph():
    w = fw.tensor([0.5, 1.5], dtype=fw.float64, requires_grad=True)
    y = (w.exp() * w).sin().sum()

    def work():
        (g,) = fw.autograd.grad(y, w, create_graph=True)
        return fw.autograd.grad(g.sum(), w, retain_graph=True)[0].numpy()

    first, *others = side_by_side(*[work] * 6)
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert w.grad is None


def test_multi_grad_hooks_count_every_backward_on_its_own():
    x, y = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)
    seen = []
    graph.register_multi_grad_hook([x, y], lambda grads: seen.append([g.numpy()[0] for g in grads]))

    def work(factor):
        def run():
            for _ in range(20):
                (x * factor + y * (2 * factor)).sum().backward()
        return run

    side_by_side(work(1.0), work(10.0), work(100.0))
    assert sorted(map(tuple, seen)) == sorted([(f, 2 * f) for f in (1.0, 10.0, 100.0)] * 20)


def test_hooks_on_saved_tensors_while_others_record():
    def hooked():
        for _ in range(50):
            x = fw.ones(3, requires_grad=True)
            with graph.saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
                y = x.exp() * x
            y.sum().backward()
            assert abs(x.grad[0].item() - 2 * np.e) < 1e-5

    def plain():
        for _ in range(50):
            y = fw.ones(3, requires_grad=True).exp()
            assert type(y.grad_fn.kept["out"]) is np.ndarray
            y.sum().backward()

    side_by_side(hooked, plain, hooked, plain)


class OfThread(_native.Local):
    """As a class of `threading.local` behaves."""

    where = None

    def __init__(self, name):
        if name == "refused":
            raise ValueError(name)
        self.name, self.held = name, []

    def both(self):
        return self.name, self.where


def test_local_values():
    own = OfThread("a")
    own.where = 1
    own.held.append(1)

    def work():
        assert own.both() == ("a", None) and own.held == [] and not hasattr(own, "later")
        own.where = own.later = threading.get_ident()
        assert vars(own) == {"name": "a", "held": [], "where": own.later, "later": own.where}
        for _ in range(500):
            assert own.where == threading.get_ident()
        del own.later
        with pytest.raises(AttributeError, match="later"):
            del own.later
        with pytest.raises(AttributeError, match="later"):
            own.later  # noqa: B018
    side_by_side(*[work] * 8)
    assert own.both() == ("a", 1) and own.held == [1]


def test_local_of_a_thread_ends_with_it():
    own, gone = OfThread("a"), []

    class Noted:
        def __del__(self):  # while the thread ends
            gone.append(float((fw.ones(3) + 1).sum()))

    for _ in range(20):
        thread = threading.Thread(target=lambda: own.held.append(Noted()))
        thread.start()
        thread.join()
    assert gone == [6.0] * 20


def test_local_that_cannot_begin():
    with pytest.raises(ValueError, match="refused"):
        OfThread("refused")
    own = OfThread("a")
    made = []

    class Sometimes(_native.Local):
        def __init__(self):
            if threading.current_thread() is not threading.main_thread() and len(made) < 2:
                made.append(1)
                raise ValueError("not yet")
            self.value = own.name

    late = Sometimes()

    def work():
        for _ in range(2):
            with pytest.raises(ValueError, match="not yet"):
                late.value  # noqa: B018
        assert late.value == "a"
    side_by_side(work)


def test_local_in_threads_of_others():
    """Each call from a thread that Python does not know has a state of its own."""
    own, seen = OfThread("a"), []
    library = ctypes.CDLL(None)
    if not hasattr(library, "pthread_create"):
        pytest.skip("no pthread_create in the C library")

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def work(_):
        seen.append(own.both())
        own.where = 2
        seen.append((*own.both(), float((fw.ones(3) * own.where).sum())))

    for _ in range(3):
        thread = ctypes.c_ulong()
        library.pthread_create(ctypes.byref(thread), None, work, None)
        library.pthread_join(thread, None)
    assert seen == [("a", None), ("a", 2, 6.0)] * 3


def test_local_refuses_what_threading_local_refuses():
    class Of(_native.Local):
        value = 1

        @property
        def fixed(self):
            return 3

    own = Of()
    with pytest.raises(AttributeError):
        own.__dict__ = {}
    with pytest.raises(AttributeError):
        own.fixed = 4
    for call in (lambda: Of(1), lambda: Of(a=1), lambda: _native.Local(5)):
        with pytest.raises(TypeError):
            call()
    assert own.fixed == 3 and own.value == 1


def test_local_of_names_that_are_no_strings():
    own = type("Odd", (_native.Local,), {5: 1, "value": 2})()
    assert own.value == 2
    for call in (lambda: type(own).__setattr__(own, 5, 6), lambda: type(own).__getattribute__(own, 5)):
        with pytest.raises(TypeError, match="string"):
            call()
    assert own.value == 2
