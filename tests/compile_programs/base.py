"""What the programs are made with: the list of them, and a small model and how it is trained."""

import framework as fw

nn, F = fw.nn, fw.nn.functional
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def caught(f, *args):
    """The result, or the type and message of the exception."""
    try:
        return f(*args)
    except Exception as error:
        return [type(error).__name__, str(error), getattr(error, "__notes__", [])]


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def grads(module):
    return [p.grad if p.grad is None else p.grad.clone() for p in module.parameters()]


def trainer(compile, model, optimizer, loss_of, batches, after=lambda: None):
    """Train by a compiled step; what came of it."""
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss
    step = compile(step)
    losses = []
    for batch in batches:
        losses.append(step(*batch).detach())
        after()
    return losses, list(model.parameters()), list(model.buffers()), grads(model)


def batches(n=4, rows=3, width=4):
    return [(fw.randn(rows, width),) for _ in range(n)]
