"""Functions of functions for many examples, beside PyTorch.

    python benchmarks/functions.py [--threads 2] [--repeats 15] [--cpu]

Medians of times, the two libraries taking turns: a batched Jacobian, a Hessian, per-sample gradients of a
CNN, an ensemble, and MAML over tasks. ``--cpu``: the least processor time of one thread instead, which other
programs on the machine change least.
"""

import argparse
import copy
import statistics
import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])


def jacobian(M):
    """Batched Jacobian of a net 16-32-32-10, batch 64."""
    nn, func = M.nn, M.func
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))
    params, x = dict(net.named_parameters()), M.randn(64, 16)
    each = func.vmap(func.jacrev(lambda x: func.functional_call(net, params, (x,))))
    return lambda: each(x)


def hessian(M):
    """Hessian of a net 16-32-32-1 with respect to its input, batch 64."""
    nn, func = M.nn, M.func
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    params, x = dict(net.named_parameters()), M.randn(64, 16)
    each = func.vmap(func.hessian(lambda x: func.functional_call(net, params, (x,))[0]))
    return lambda: each(x)


def weights_hessian(M):
    """Hessian with respect to the 97 weights of a net 4-16-1."""
    nn, func = M.nn, M.func
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    params = {k: p.detach() for k, p in net.named_parameters()}
    x, y = M.randn(32, 4), M.randn(32, 1)
    of = func.hessian(lambda p: ((func.functional_call(net, p, (x,)) - y) ** 2).mean())
    return lambda: of(params)


def per_sample(M):
    """Per-sample gradients of a CNN, 32 images of 28x28."""
    nn, func = M.nn, M.func
    net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10))
    params = {k: p.detach() for k, p in net.named_parameters()}
    x, y = M.randn(32, 1, 28, 28), M.randint(0, 10, (32,))

    def loss(p, x, y):
        return nn.functional.cross_entropy(func.functional_call(net, p, (x[None],)), y[None])
    each = func.vmap(func.grad(loss), (None, 0, 0))
    return lambda: each(params, x, y)


def ensemble(M):
    """An ensemble of 8 MLPs 64-64-10, batch 32 (``stack_module_state``), forward."""
    nn, func = M.nn, M.func
    nets = [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(8)]
    params, buffers = func.stack_module_state(nets)
    base, x = copy.deepcopy(nets[0]), M.randn(32, 64)
    each = func.vmap(lambda p, b, x: func.functional_call(base, (p, b), (x,)), (0, 0, None))
    return lambda: each(params, buffers, x)


def maml(M):
    """MAML: the gradient through one inner step, 16 tasks."""
    nn, func = M.nn, M.func
    net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    params = {k: p.detach() for k, p in net.named_parameters()}
    xs, ys, xq, yq = (M.randn(16, 10, 1) for _ in range(4))

    def loss(p, x, y):
        return ((func.functional_call(net, p, (x,)) - y) ** 2).mean()

    def adapted(p, x, y, xq, yq):
        g = func.grad(loss)(p, x, y)
        return loss({k: p[k] - 0.1 * g[k] for k in p}, xq, yq)
    every = func.grad(lambda p: func.vmap(adapted, (None, 0, 0, 0, 0))(p, xs, ys, xq, yq).mean())
    return lambda: every(params)


def batched_gradients(M):
    """``autograd.grad(is_grads_batched=True)``: 64 vectors through an MLP 64-64-64."""
    nn = M.nn
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    x = M.randn(64, requires_grad=True)
    vs = M.eye(64)
    return lambda: M.autograd.grad(net(x), x, vs, is_grads_batched=True)


WHAT = (jacobian, hessian, weights_hessian, per_sample, ensemble, maml, batched_gradients)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    clock, of = (time.thread_time, min) if args.cpu else (time.perf_counter, statistics.median)
    libraries = {name: __import__(name) for name in ("framework", "torch")}
    for M in libraries.values():
        M.set_num_threads(1 if args.cpu else args.threads)
        M.manual_seed(0)
    print("| what | framework | PyTorch | ratio |\n| --- | --- | --- | --- |")
    for make in WHAT:
        calls = {name: make(M) for name, M in libraries.items()}
        times = {name: [] for name in calls}
        for turn in range(args.repeats + 2):
            for name, call in calls.items():
                start = clock()
                call()
                if turn > 1:
                    times[name].append((clock() - start) * 1000)
        ours, theirs = (of(times[name]) for name in libraries)
        print(f"| {make.__doc__.rstrip('.')} | {ours:.2f} ms | {theirs:.2f} ms | {ours / theirs:.2f} |",
              flush=True)


if __name__ == "__main__":
    main()
