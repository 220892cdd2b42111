"""Random programs for the road of ``fw.compile`` that puts operations off: training steps and chains that
repeat, so that sequences are recognised, with things in between that it must notice."""

import random

import numpy as np

import framework as fw

F, nn = fw.nn.functional, fw.nn
ROW, PLACES = fw.tensor([1, 0, 3, 2]), fw.tensor([[1, 0, 3, 2], [2, 2, 0, 1], [3, 1, 0, 0], [0, 1, 2, 3]])
UNARY = [fw.tanh, fw.sigmoid, fw.exp, fw.sin, F.relu, F.gelu, F.silu, lambda x: x * 0.5, lambda x: 1.0 - x,
         lambda x: x / 3, lambda x: -x, lambda x: x.abs(), lambda x: x.square(), lambda x: x.softmax(-1),
         lambda x: F.layer_norm(x, (4,)), lambda x: x.sum(-1, keepdim=True) + x, lambda x: x.t().t(),
         lambda x: x.reshape(-1).view(4, 4), lambda x: x.mean(0) * x, lambda x: x.clamp(-1, 1),
         lambda x: x + x,
         lambda x: x[1:2] * x, lambda x: x.chunk(2, 1)[0].repeat(1, 2),
         lambda x: x.log_softmax(0),
         lambda x: x.unsqueeze(0).squeeze(0), lambda x: x * -0.0, lambda x: F.softplus(x),
         lambda x: x * x * x,
         lambda x: x.flip(0), lambda x: x.roll(1, 1), lambda x: x.cumsum(1),
         lambda x: x / (x.norm(dim=1, keepdim=True) + 1),
         lambda x: F.normalize(x, dim=0), lambda x: F.group_norm(x, 2), lambda x: F.max_pool1d(x, 3, 1, 1),
         lambda x: F.avg_pool1d(x[None], 3, 1, 1)[0], lambda x: F.adaptive_avg_pool1d(x, 4),
         lambda x: x - x.std(1, keepdim=True), lambda x: x.masked_fill(x > 1, 0.5),
         lambda x: x.gather(1, PLACES), lambda x: x.index_select(0, ROW),
         lambda x: x.prod(1, keepdim=True) + x,
         lambda x: F.batch_norm(x, None, None, training=True),
         lambda x: x + F.cross_entropy(x, ROW, label_smoothing=0.1),
         lambda x: x * F.cross_entropy(x, ROW, reduction="none"),
         lambda x: F.conv_transpose1d(x, x[:, None, :1])[:, :4], lambda x: x.clone(),
         lambda x: x.narrow(0, 0, 4)]
BINARY = [fw.add, fw.sub, fw.mul, lambda x, y: x / (y.square() + 1), lambda x, y: x @ y, fw.maximum,
          lambda x, y: fw.where(x > y, x, y), lambda x, y: F.linear(x, y), lambda x, y: x + y[0],
          lambda x, y: fw.addmm(x, x, y), lambda x, y: fw.atan2(x, y), lambda x, y: fw.cat([x, y])[:4],
          lambda x, y: fw.einsum("ij,kj->ik", x, y), lambda x, y: F.cosine_similarity(x, y)[:, None] * x,
          lambda x, y: x + F.mse_loss(x, y), lambda x, y: fw.cdist(x, y), lambda x, y: F.prelu(x, y[0]),
          lambda x, y: fw.hstack([x, y])[:, 2:6], lambda x, y: fw.tensordot(x, y, 1),
          lambda x, y: fw.max(x) - y]
EVENTS = ["read", "in place", "numpy", "data", "hook", "no_grad", "branch", "detach", "keep", "weak", "set",
          "error", "toggle", "grad in", "double", "print", "alias", "copy"]


def program(draw):
    """(what, numbers) of each instruction."""
    body = []
    for _ in range(draw.randint(2, 12)):
        what = draw.choices(["unary", "binary", "event"], [5, 4, 1.2])[0]
        body.append((what, draw.randrange(99), draw.randrange(99), draw.randrange(99), draw.random() < 0.6))
    return body


class Program:
    """A program of one number: what it computes with, and what it tells."""

    unary, binary, events, calls, forgets = UNARY, BINARY, EVENTS, 5, False

    def __init__(self, number):
        self.draw = draw = random.Random(number)
        fw.manual_seed(number)
        self.params = [fw.randn(4, 4).mul_(0.5).requires_grad_(draw.random() < 0.8) for _ in range(3)]
        self.shared = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4).copy()
        self.x0 = fw.from_numpy(self.shared)
        self.body, self.log, self.kept = program(draw), [], []
        kind = draw.choice(["SGD", "Adam", "momentum", None])
        self.optimizer = None
        if kind is not None and any(p.requires_grad for p in self.params):
            trained = [p for p in self.params if p.requires_grad]
            self.optimizer = fw.optim.Adam(trained) if kind == "Adam" else fw.optim.SGD(
                trained, lr=0.01, momentum=0.5 if kind == "momentum" else 0.0)
        self.backward, self.accumulate = draw.random() < 0.7, draw.random() < 0.3
        self.several, self.retains = draw.random() < 0.3, draw.random() < 0.1
        self.turn = 0

    def happen(self, what, a, b, often):
        now = self.turn % 3 == 2 or often
        if what == "read" and now:
            self.log.append(repr(a.detach().sum().item()))  # nan is nan
        elif what == "in place" and now:
            with fw.no_grad():
                self.params[0].mul_(0.9) if often else self.x0.add_(0.125)
        elif what == "numpy" and now:
            self.shared[1] += 0.5
        elif what == "data" and now:
            self.params[1].data = self.params[1].data * 0.75
        elif what == "hook" and a.requires_grad and now:
            a.register_hook(lambda g: g * 2)
        elif what == "no_grad":
            with fw.no_grad():
                return a * b
        elif what == "branch":
            return a + 1 if self.turn % 2 else a.tanh()
        elif what == "detach":
            return a.detach() * b
        elif what == "keep":
            self.kept.append(a)
        elif what == "set" and now:
            a.numpy(force=True) if not a.requires_grad else a.detach().numpy()
        elif what == "error" and self.turn == 2:
            try:
                a.matmul(fw.zeros(3, 3))
            except Exception as error:
                self.log.append((type(error).__name__, str(error)))
        elif what == "toggle" and self.turn == 3:
            self.params[2].requires_grad_(not self.params[2].requires_grad)
        elif what == "grad in" and self.params[0].grad is not None:
            return a + self.params[0].grad
        elif what == "double":
            return (a.double() * 0.1).float()
        elif what == "print":
            self.log.append((a.shape, a.ndim, a.dtype, a.requires_grad, a.is_leaf, a.stride(),
                             a.is_contiguous()))
        elif what == "alias":
            return a.view(4, 4) if a.is_contiguous() and a.shape == (4, 4) else a
        elif what == "copy" and now:
            return a.clone()
        elif what == "weak" and now:
            self.log.append(type(a).__name__)
        return None

    def one(self, function, *operands):
        return function(*operands)

    def step(self, x):
        pool = [*self.params, x]
        for what, which, i, j, often in self.body:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if what == "unary":
                new = self.one(self.unary[which % len(self.unary)], a)
            elif what == "binary":
                new = self.one(self.binary[which % len(self.binary)], a, b)
            else:
                new = self.happen(self.events[which % len(self.events)], a, b, often)
            if new is not None and new.shape == (4, 4):
                pool.append(new)
                if self.forgets and len(pool) > 6:
                    del pool[4]
            if self.forgets:
                a = b = new = None
        out = pool[-1]
        if not self.backward or not out.requires_grad:
            return pool[4:] if self.several else out
        if self.optimizer is not None and not self.accumulate:
            self.optimizer.zero_grad()
        loss = (out * 0.125).sum() if not self.several else out.square().mean() + pool[len(pool) // 2].sum()
        loss.backward(retain_graph=True) if self.retains else loss.backward()
        if self.optimizer is not None:
            self.optimizer.step()
        return (loss, out, *pool[4:6]) if self.several else loss


def run(number, compile, kind=Program):
    """All that the program tells in some calls."""
    told = kind(number)
    draw, params, kept = told.draw, told.params, told.kept
    step = compile(told.step)
    seen = []
    for n in range(told.calls):
        told.turn = n
        try:
            found = step(told.x0 if draw.random() < 0.4 else fw.randn(4, 4))
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
            continue
        for t in found if isinstance(found, (tuple, list)) else (found,):
            seen.append((t.shape, t.stride(), t.detach().numpy().tobytes(), t.requires_grad, t._version,
                         names(t.grad_fn)))
        if draw.random() < 0.2 and not isinstance(found, (tuple, list)) and found.requires_grad:
            try:
                found.sum().backward()
            except Exception as error:
                seen.append((type(error).__name__, str(error)))
        seen += [(p.detach().numpy().tobytes(), p._version) for p in params]
        seen += [None if p.grad is None else (p.grad.stride(), p.grad.numpy().tobytes()) for p in params]
    seen += [t.detach().numpy().tobytes() for t in kept]
    return [seen, told.log, told.shared.tobytes(), fw.get_rng_state().tolist()]


def names(node):
    """The graph behind a node, by names, and what of it is freed."""
    if node is None or not hasattr(node, "edges"):
        return None
    return (node.name(), getattr(node, "kept", 0) is None, [names(e) for e in node.edges])


def differs(number):
    """Whether program ``number`` tells something else when it is compiled."""
    with np.errstate(all="ignore"):
        return run(number, lambda f: f) != run(number, fw.compile)
