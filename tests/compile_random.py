"""Random programs of tensors for ``fw.compile``: what one draws is a function of its number."""

import random

import numpy as np

import framework as fw
from framework.jit import backward

F = fw.nn.functional
UNARY = [fw.sin, fw.tanh, fw.sigmoid, fw.relu, lambda x: x * 2.0, lambda x: x + 1, lambda x: -x, fw.square,
         lambda x: x.sum(), lambda x: x.mean(0, keepdim=True), lambda x: x.T, lambda x: x.reshape(-1)[:4],
         lambda x: x.softmax(-1) if x.ndim else x, lambda x: x.clamp(-0.5, 0.5), lambda x: x.detach(),
         lambda x: F.dropout(x, 0.3), lambda x: x.clone(), lambda x: x.exp().clamp(max=3.0),
         lambda x: x[..., ::2] if x.ndim else x, lambda x: x.double().float(), lambda x: x.view(x.shape)]
BINARY = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: fw.where(x > 0, x, y),
          fw.maximum, lambda x, y: x @ y, lambda x, y: x / (y.abs() + 1), lambda x, y: fw.stack([x, y]),
          lambda x, y: fw.cat([x, y]), lambda x, y: F.linear(x, y)]
IN_PLACE = [lambda x: x.add_(1), lambda x: x.mul_(0.5), lambda x: x[:1].zero_() if x.ndim else x,
            lambda x: x.tanh_(), lambda x: x.copy_(x * 2)]


def run(number, compile):
    """All that program ``number`` does in a few calls: results, gradients, versions, exceptions."""
    draw = random.Random(number)
    fw.manual_seed(number)
    shapes = [(3, 3), (3,), (1, 3), (3, 3), ()]
    params = [fw.randn(*draw.choice(shapes)).requires_grad_(draw.random() < 0.7) for _ in range(3)]
    kind = draw.choice([fw.optim.SGD, fw.optim.Adam, lambda p, lr: fw.optim.SGD(p, lr=lr, momentum=0.9)])
    optimizer = kind(params, lr=0.05)
    plans = [_plan(draw) for _ in range(draw.randint(1, 3))]
    log = []

    def step(plan, x):
        pool = [*params, x]
        for kind, which, i, j, extra in plan:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind == "unary":
                pool.append(UNARY[which](a))
            elif kind == "binary":
                pool.append(BINARY[which](a, b))
            elif kind == "in place":
                IN_PLACE[which](a)
            elif kind == "branch":
                pool.append(a * 2 if a.sum() > 0 else b.sin())
            elif kind == "no_grad":
                with fw.no_grad():
                    pool.append(a * b)
            elif kind == "hook" and a.requires_grad:
                a.register_hook(lambda g: g * extra) if a.grad_fn is not None else None
            elif kind == "backward":
                total = a.sum()
                if total.requires_grad:
                    total.backward(retain_graph=extra > 1)
                    log.append(repr(total.item()))
            elif kind == "step":
                optimizer.step()
            elif kind == "zero":
                optimizer.zero_grad(set_to_none=extra > 1)
        losses = [p.square().sum() for p in pool[4:] if p.requires_grad]
        if losses:
            sum(losses).backward()
        return pool[4:]
    step = compile(step)
    seen = []
    for i in range(draw.randint(3, 6)):
        plan = plans[i % len(plans)] if draw.random() < 0.8 else plans[0]
        try:
            seen += [(t.dtype.name, tuple(t.shape), t.detach().numpy().tobytes()) for t in step(
                plan, fw.randn(*draw.choice(shapes)))]
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
        if draw.random() < 0.5:
            optimizer.step()
        seen += [(p._version, p.detach().numpy().tobytes()) for p in params]
        seen += [None if p.grad is None else p.grad.numpy().tobytes() for p in params]
        if draw.random() < 0.4:
            optimizer.zero_grad()
        if draw.random() < 0.1:
            leaf = draw.choice(params)
            leaf.requires_grad_(not leaf.requires_grad)
    return [seen, log, fw.get_rng_state().tolist()]


def _plan(draw):
    kinds = ["unary"] * 6 + ["binary"] * 6
    kinds += ["in place", "branch", "no_grad", "hook", "backward", "step", "zero"]
    plan = []
    for _ in range(draw.randint(2, 9)):
        kind = draw.choice(kinds)
        choices = {"unary": UNARY, "binary": BINARY, "in place": IN_PLACE}.get(kind, [0])
        plan.append((kind, draw.randrange(len(choices)), draw.randrange(99), draw.randrange(99),
                     draw.choice([0.5, 2.0])))
    return plan


def differs(number):
    """Whether program ``number`` tells something else when it is compiled."""
    before, backward.AT_ONCE = backward.AT_ONCE, number % 2 == 0
    try:
        with np.errstate(all="ignore"):
            return run(number, lambda f: f) != run(number, fw.compile)
    finally:
        backward.AT_ONCE = before
