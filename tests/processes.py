"""What the processes of test_multiprocessing.py run: functions that every start method can find."""

import os
import signal
import time

import framework as fw


class Tagged(fw.Tensor):
    """A tensor class of a user's."""


def serve(conn):
    """Run the functions below for the other side until it sends None."""
    while (job := conn.recv()) is not None:
        name, args = job
        conn.send(globals()[name](*args))


def add(t, value):
    t.add_(value)
    return t.tolist()


def look(t):
    kind = type(t).__name__, t.requires_grad, t.is_shared()
    return kind, str(t.dtype), t.tolist(), t.stride(), getattr(t, "__dict__", {})


def double_all(tensors):
    for t in tensors:
        t.mul_(2)


def write_part(whole, part):
    whole[0, 0] = 5.0
    part[0] = 7.0
    return whole.tolist(), part.tolist(), part.data_ptr() - whole.data_ptr()


def tied(model, weight):
    with fw.no_grad():
        model[0].weight.fill_(3.0)
    return model[0].weight is model[1].weight, model[0].weight is weight, float(model(fw.ones(1, 2)).sum())


def make(*shape):
    return fw.ones(*shape)


def echo(value):
    return value


def product(n):
    x = fw.ones(n, n)
    return float((x @ x).sum())


def put_and_go(queue, n):
    for i in range(n):
        queue.put(fw.full((3,), float(i)))


def send_and_die(conn):
    conn.send(fw.full((3,), 4.0))
    os.kill(os.getpid(), signal.SIGKILL)


def take_and_die(queue):
    queue.get().add_(1)
    os.kill(os.getpid(), signal.SIGKILL)


def drain(queue, done):
    while queue.get() is not None:
        queue.task_done()
    queue.task_done()
    done.send(True)


def total(t):
    t.add_(1)
    return t, float(t.sum())


class NoExceptionAgain(Exception):
    def __reduce__(self):
        return str, ("text",)


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a)


def count_up(i, t, n):
    for _ in range(n):
        t[i] += i + 1


def fail(i, kind, conn):
    if i == 0:
        conn.send(os.getpid())
        time.sleep(60)
    if kind == "raise":
        raise KeyError("lost", 3)
    if kind == "unpicklable":
        raise TwoArguments("first", "second")
    if kind == "long":
        raise ValueError("x" * 2_000_000)
    if kind == "odd":
        raise NoExceptionAgain
    if kind == "exit":
        os._exit(7)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def wait_long(i):
    time.sleep(60)
