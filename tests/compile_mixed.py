"""Random programs for ``fw.compile`` of tensors of all kinds: several shapes (none, empty, one number) and
dtypes, views of views written in place, ``out=``, draws, several optimizers, hooks, custom Functions, nested
compiled functions, exceptions in the middle, shapes that change from call to call. What the other two kinds
(``compile_random.py``, ``compile_deferred.py``) draw is not repeated here.
"""

import copy
import gc
import io
import pickle
import random
import threading

import numpy as np
from compile_deferred import names

import framework as fw

F, nn = fw.nn.functional, fw.nn
CALLS = 7


class Twice(fw.autograd.Function):
    """A Function with state of its own."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Twice.calls += 1
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Twice.calls += 1
        return g * 2 + x * 0.0


class Unusual(Exception):
    """Raised by programs themselves."""


def _floating(x):
    return x if x.is_floating_point() else x.to(fw.float32)


def _chain(x):
    return (x * x).tanh()


PURE = [
    lambda p, a, b: a + b, lambda p, a, b: a * b, lambda p, a, b: a - b, lambda p, a, b: a * a,
    lambda p, a, b: a * p.turn, lambda p, a, b: a * (p.turn * 0.25), lambda p, a, b: a * True,
    lambda p, a, b: a + np.float32(0.5), lambda p, a, b: a * (p.turn % 2), lambda p, a, b: 1 - a,
    lambda p, a, b: _floating(a).tanh(), lambda p, a, b: _floating(a).sigmoid() * b,
    lambda p, a, b: F.relu(a), lambda p, a, b: F.gelu(_floating(a)),
    lambda p, a, b: _floating(a).exp().clamp(max=9),
    lambda p, a, b: a.sum(), lambda p, a, b: a.sum(-1, keepdim=True) if a.ndim else a,
    lambda p, a, b: _floating(a).mean(0) if a.ndim else a, lambda p, a, b: _floating(a).mean(),
    lambda p, a, b: a.amax(-1) if a.ndim and a.numel() else a, lambda p, a, b: a.max(),
    lambda p, a, b: a.argmax(), lambda p, a, b: a > b, lambda p, a, b: (a > 0) & (b > 0),
    lambda p, a, b: (a > 0).any(), lambda p, a, b: fw.where(a > 0, a, b), lambda p, a, b: a == b,
    lambda p, a, b: a.masked_fill(a > 0.5, 0.25), lambda p, a, b: fw.maximum(a, b),
    lambda p, a, b: a.double(), lambda p, a, b: a.float(), lambda p, a, b: a.to(b.dtype),
    lambda p, a, b: a.half(),
    lambda p, a, b: a.bfloat16(), lambda p, a, b: a.long(), lambda p, a, b: a.bool(),
    lambda p, a, b: a.int(),
    lambda p, a, b: a.t() if a.ndim < 3 else a.mT, lambda p, a, b: a.reshape(-1),
    lambda p, a, b: a.flatten(),
    lambda p, a, b: a.unsqueeze(0), lambda p, a, b: a.squeeze(), lambda p, a, b: a.expand(2, *a.shape),
    lambda p, a, b: a[..., ::2] if a.ndim else a, lambda p, a, b: a[1:] if a.ndim else a,
    lambda p, a, b: a[None], lambda p, a, b: a[-1] if a.ndim and len(a) else a, lambda p, a, b: a[a > 0],
    lambda p, a, b: a[:, None] if a.ndim else a, lambda p, a, b: a[fw.tensor([0, 0])],
    lambda p, a, b: a.narrow(0, 0, 1) if a.ndim else a, lambda p, a, b: a[:0] if a.ndim else a,
    lambda p, a, b: a.view(a.shape), lambda p, a, b: a.view(-1), lambda p, a, b: a.contiguous(),
    lambda p, a, b: a.unbind(0) if a.ndim else a, lambda p, a, b: a.chunk(2, -1) if a.ndim else a,
    lambda p, a, b: fw.cat([a, b]), lambda p, a, b: fw.stack([a, b]), lambda p, a, b: fw.cat([a, a], -1),
    lambda p, a, b: a @ b, lambda p, a, b: F.linear(a, b), lambda p, a, b: fw.outer(a, b),
    lambda p, a, b: _floating(a).softmax(-1), lambda p, a, b: _floating(a).log_softmax(0),
    lambda p, a, b: F.layer_norm(a, a.shape[-1:]), lambda p, a, b: a.cumsum(0), lambda p, a, b: a.flip(0),
    lambda p, a, b: a.sort()[0], lambda p, a, b: a.topk(1)[0], lambda p, a, b: a.roll(1),
    lambda p, a, b: F.mse_loss(a, b), lambda p, a, b: F.one_hot(a), lambda p, a, b: a.tril(),
    lambda p, a, b: F.cross_entropy(a, fw.zeros(len(a), dtype=fw.int64)), lambda p, a, b: a.clone(),
    lambda p, a, b: a.detach(), lambda p, a, b: Twice.apply(_floating(a)), lambda p, a, b: a.repeat(2),
    lambda p, a, b: fw.zeros_like(a), lambda p, a, b: fw.full_like(a, p.turn),
    lambda p, a, b: a.new_ones(2),
    lambda p, a, b: a / b, lambda p, a, b: a // 2, lambda p, a, b: a % 3, lambda p, a, b: a.abs().sqrt(),
    lambda p, a, b: a.norm(), lambda p, a, b: a.std() if a.numel() > 1 else a, lambda p, a, b: a.var(0),
    lambda p, a, b: fw.zeros(2, 2) + a, lambda p, a, b: fw.einsum("...i,...i->...", a, b),
    lambda p, a, b: F.pad(a, (1, 1)), lambda p, a, b: a.nonzero(),
    lambda p, a, b: a.gather(0, fw.zeros_like(a, dtype=fw.int64)),
    lambda p, a, b: F.dropout(a, 0.5), lambda p, a, b: fw.randn_like(_floating(a)) * a,
    lambda p, a, b: fw.rand(()) * a,
    lambda p, a, b: a + fw.randint(0, 3, a.shape), lambda p, a, b: fw.bernoulli(_floating(a).sigmoid()),
    lambda p, a, b: a[fw.randperm(len(a))], lambda p, a, b: a.lerp(b, 0.5),
    lambda p, a, b: fw.addcmul(a, a, b),
    lambda p, a, b: p.layer(a), lambda p, a, b: p.net(a), lambda p, a, b: p.inner(a, b),
    lambda p, a, b: fw.utils.checkpoint.checkpoint(_chain, _floating(a), use_reentrant=False),
]
IN_PLACE = [
    lambda p, a, b: a.add_(1), lambda p, a, b: a.mul_(b), lambda p, a, b: a.sub_(b, alpha=2),
    lambda p, a, b: a.zero_(),
    lambda p, a, b: a.copy_(b), lambda p, a, b: a.fill_(p.turn),
    lambda p, a, b: a[..., :1].mul_(2) if a.ndim else a.add_(b),
    lambda p, a, b: a.view(-1)[::2].add_(b.sum()), lambda p, a, b: a.t()[:1].copy_(b) if a.ndim == 2 else a,
    lambda p, a, b: a.__setitem__(0, b), lambda p, a, b: a.__setitem__(a > 0, 0.5),
    lambda p, a, b: a.__iadd__(b),
    lambda p, a, b: a.tanh_(), lambda p, a, b: a.clamp_(-1, 1), lambda p, a, b: a.masked_fill_(a > 0, 0.5),
    lambda p, a, b: a.normal_(), lambda p, a, b: a[..., 1:].uniform_() if a.ndim else a,
    lambda p, a, b: a.lerp_(b, 0.25),
    lambda p, a, b: a.index_add_(0, fw.tensor([0]), a[:1].clone()),
    lambda p, a, b: a.unsqueeze(0)[0].neg_(),
    lambda p, a, b: a.view(-1).view(a.shape)[:1].addcmul_(b, b),
    lambda p, a, b: a.t_() if a.ndim < 3 else a,
    lambda p, a, b: a.squeeze_(), lambda p, a, b: a.detach_(), lambda p, a, b: a.requires_grad_(),
    lambda p, a, b: fw.add(a, b, out=p.spare), lambda p, a, b: fw.mul(a, b, out=a),
    lambda p, a, b: fw.tanh(a, out=p.spare),
    lambda p, a, b: fw.sum(a, out=p.number), lambda p, a, b: fw.sub(p.spare, a, out=p.spare[:2]),
    lambda p, a, b: a.detach().mul_(0.5), lambda p, a, b: a.data.add_(0.125),
    lambda p, a, b: a.real.add_(1),
    lambda p, a, b: a.scatter_(0, fw.zeros_like(a, dtype=fw.int64), 1.0), lambda p, a, b: a.bernoulli_(0.5),
]


def _island(p, a, b):
    with fw.no_grad():
        c = a * b
        with fw.enable_grad():
            return c + a


def _inference(p, a, b):
    with fw.inference_mode():
        return a * 2 + b


def _cast(p, a, b):
    with fw.autocast("cpu", dtype=fw.bfloat16):
        return a @ b


def _hooked(p, a, b):
    if a.requires_grad and p.now:
        handle = a.register_hook(lambda g: g * 0.5)
        if a.is_leaf:
            p.handles.append(handle)


def _unhooked(p, a, b):
    while p.handles:
        p.handles.pop().remove()


def _packed(p, a, b):
    with fw.autograd.graph.saved_tensors_hooks(lambda x: x * 1, lambda x: x):
        return a * b


def _grads(p, a, b):
    out = _floating(b).sum()
    if out.requires_grad and a.requires_grad:
        return fw.autograd.grad(out, a, retain_graph=True, allow_unused=True, create_graph=p.often)


def _backward(p, a, b):
    if a.requires_grad:
        a.backward(fw.ones_like(a), retain_graph=p.often)


def _grad_changed(p, a, b):
    for q in p.params:
        if q.grad is not None:
            way = (p.turn + len(p.body)) % 5
            if way < 2:
                q.grad.mul_(0.5) if way else q.grad.zero_()
            elif way < 4:
                q.grad = None if way == 2 else q.grad * 2
            else:
                p.kept.append(q.grad)


def _step(p, a, b):
    p.optimizers[p.turn % len(p.optimizers)].step()


def _clip(p, a, b):
    p.tell(nn.utils.clip_grad_norm_(p.params, 0.5))


def _rate(p, a, b):
    for g in p.optimizers[0].param_groups:
        if isinstance(g["lr"], fw.Tensor):
            g["lr"].mul_(0.5)
        else:
            g["lr"] *= 0.5


def _raises(p, a, b):
    if p.turn == 4:
        raise Unusual(f"at {tuple(a.shape)}")


def _caught(p, a, b):
    try:
        return a @ fw.zeros(7, 9)
    except Exception as error:
        p.tell(type(error).__name__, str(error))
        return a * 2


def _elsewhere(p, a, b):
    found = []  # without a graph, whose order would be that in which calls run, see docs/compile.md
    thread = threading.Thread(target=lambda: found.append(a.detach() * 2 + b.detach()))
    before, threading.excepthook = threading.excepthook, lambda *args: None
    try:
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    return found or None


def _pickled(p, a, b):
    return pickle.loads(pickle.dumps(a.detach()))


def _saved(p, a, b):
    file = io.BytesIO()
    fw.save({"a": a.detach()}, file)
    file.seek(0)
    return fw.load(file)["a"]


def _copied(p, a, b):
    return copy.deepcopy(a) if a.is_leaf else copy.copy(a)


def _numbers(p, a, b):
    n = a.detach().numpy() if p.often else np.asarray(a.detach())
    if p.now and n.size and n.flags.writeable and n.dtype.kind == "f":
        n[...] += 1
    return fw.from_numpy(n) if n.flags.writeable else None


def _toggled(p, a, b):
    if p.turn in (3, 5):
        q = p.params[0]
        q.requires_grad_(not q.requires_grad)
    elif p.turn == 4:
        p.net.eval()
        p.net[2].p = 0.25


def _seeded(p, a, b):
    fw.manual_seed(p.turn)


def _swapped(p, a, b):
    if p.now:
        p.params[2].data = p.params[2].data * 0.5


def _default(p, a, b):
    before = fw.get_default_dtype()
    try:
        fw.set_default_dtype(fw.float64)
        return a * fw.ones(()) + 0.1
    finally:
        fw.set_default_dtype(before)


def _branch(p, a, b):
    return a + 1 if a.numel() and bool((a > 0).any()) else b


def _loop(p, a, b):
    for n in range(int(a.numel()) % 4 + p.turn % 2):
        a = a * 0.5 + n
    return a


def _freed(p, a, b):
    p.kept.clear()
    gc.collect(0)


def _replaced(p, a, b):
    if p.turn == 3:
        p.layer.weight = nn.Parameter(p.layer.weight.detach() * 0.5)
    elif p.turn == 4:
        p.layer.weight = p.params[0] if isinstance(p.params[0], nn.Parameter) else p.layer.weight


def _buffers(p, a, b):
    p.norm.train(p.turn != 5)
    return p.norm(_floating(a))


EVENTS = [_island, _inference, _cast, _hooked, _unhooked, _packed, _grads, _backward, _grad_changed, _step,
          _clip, _rate, _raises, _caught, _elsewhere, _pickled, _saved, _copied, _numbers, _toggled,
          _seeded, _swapped, _default, _branch, _loop, _freed, _replaced, _buffers,
          lambda p, a, b: p.kept.append(a), lambda p, a, b: p.tell(repr(a)),
          lambda p, a, b: p.tell(a.tolist()),
          lambda p, a, b: p.tell(a.item() if a.numel() == 1 else None),
          lambda p, a, b: p.tell(a.stride(), a._version, a.is_leaf, a._is_view(),
                                 a.data_ptr() == b.data_ptr()),
          lambda p, a, b: p.tell(a.grad_fn and a.grad_fn.name(),
                                 a.retain_grad() if a.requires_grad else None)]


class Mixed:
    """A program of one number: what it computes with, and what it tells."""

    def __init__(self, number, compile):
        self.draw = draw = random.Random(number)
        self.compile = compile
        fw.manual_seed(number)
        Twice.calls = 0
        shapes = [(3, 4), (4, 4), (4,), (), (1, 4), (0, 4), (2, 3, 4), (4, 3)]
        base = draw.choice([(3, 4), (4, 4), (4,)])
        floats = [fw.float32] * 6 + [fw.float64, fw.float16, fw.bfloat16]
        self.calm = draw.random() < 0.5  # what is computed with has one shape, so that more is put off
        if self.calm:
            base, shapes, floats = (4, 4), [(4, 4)], [fw.float32]
        self.params = [fw.randn(*(draw.choice(shapes) if draw.random() < 0.4 else base)).to(
            draw.choice(floats)).requires_grad_(draw.random() < 0.8) for _ in range(3)]
        self.params = [nn.Parameter(q.detach()) if draw.random() < 0.3 else q for q in self.params]
        self.layer, self.norm = nn.Linear(4, 4, bias=draw.random() < 0.5), nn.BatchNorm1d(4)
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.LayerNorm(4))
        self.spare, self.number = fw.zeros(base), fw.zeros(())
        self.inner = compile(lambda a, b: (a * b + 1) * a)
        self.base, self.shapes, self.floats = base, shapes, floats
        trained = [q for q in self.params if q.requires_grad]
        trained += [*self.layer.parameters(), *self.net.parameters()]
        self.optimizers = [self._optimizer(trained) for _ in range(draw.randint(1, 2))]
        self.body = [self._instruction() for _ in range(draw.randint(3, 12))]
        self.log, self.kept, self.handles = [], [], []
        self.learns, self.all_out = draw.random() < 0.6, draw.random() < 0.5
        self.grown = draw.random() < 0.3
        self.kind = draw.choice(floats if self.calm else [*floats, fw.int64, fw.bool])
        self.twice = draw.random() < 0.3
        self.turn, self.now, self.often = 0, False, False

    def _optimizer(self, trained):
        draw = self.draw
        rate = fw.tensor(0.01) if draw.random() < 0.3 else 0.01
        groups = trained
        if draw.random() < 0.4 and len(trained) > 1:
            groups = [{"params": trained[:1], "lr": rate}, {"params": trained[1:], "weight_decay": 0.1}]
        kind = draw.choice([fw.optim.SGD, fw.optim.Adam, fw.optim.AdamW, fw.optim.RMSprop, fw.optim.Adagrad])
        optimizer = kind(groups, lr=rate)
        if draw.random() < 0.2:
            optimizer.param_groups[0]["params"].append(trained[0])
        return optimizer

    def _instruction(self):
        draw = self.draw
        what = draw.choices(["pure", "write", "event"], [8, 1.5, 1.5])[0]
        home = {"pure": PURE, "write": IN_PLACE, "event": EVENTS}[what]
        turns = [None] * 8 + [(5,), range(4, 9)]
        if what != "pure":
            turns = [None] * 2 * (not self.calm) + [range(3, 9), (3,), (5,), (4, 6)]
        which, i, j, turn = draw.choice(home), draw.randrange(999), draw.randrange(999), draw.choice(turns)
        return which, i, j, turn, draw.random() < 0.5

    def tell(self, *what):
        tensors = any(isinstance(x, fw.Tensor) for x in what)
        self.log.append([told(x) for x in what] if tensors else repr(what))

    def arguments(self):
        """Those of one call."""
        shape = self.base
        if self.grown and self.turn in (4, 5):
            shape = (len(self.base) + 1, *self.base[1:])
        elif self.draw.random() < 0.1:
            shape = self.draw.choice(self.shapes)
        x = fw.randn(shape).mul_(2).to(self.kind)
        return (x, x if self.twice else x[..., :1] if x.ndim and self.draw.random() < 0.2 else fw.ones(()))

    def step(self, x, y):
        pool, beside = [*self.params, x, y], []
        for what, i, j, turns, often in self.body:
            if turns is not None and self.turn not in turns:
                continue
            a, b = pool[i % len(pool)], pool[-1 - j % len(pool)]
            self.now, self.often = self.turn % 3 == 2 or often, often
            try:
                new = what(self, a, b)
            except Unusual:
                raise
            except Exception as error:
                self.log.append((type(error).__name__, str(error)))
                continue
            for t in new if isinstance(new, (tuple, list)) else [new]:
                if isinstance(t, fw.Tensor) and t.numel() < 500:
                    (beside if self.calm and t.shape != self.base else pool).append(t)
        pool += beside
        losses = [_floating(t).square().mean() for t in pool[-3:] if t.requires_grad]
        if self.learns and losses:
            for o in self.optimizers:
                o.zero_grad()
            sum(losses).backward()
            for o in self.optimizers:
                o.step()
        return pool[5:] if self.all_out else pool[-1]


def told(t):
    """All that is to be seen of a tensor."""
    if not isinstance(t, fw.Tensor):
        return t
    d = t.detach()
    d = d.float() if d.dtype is fw.bfloat16 else d
    return (t.dtype, t.shape, t.stride(), d.numpy().tobytes(), t.requires_grad, t.is_leaf,
            t._version, t._is_view(), names(t.grad_fn))


def run(number, compile):
    """All that the program tells in some calls."""
    p = Mixed(number, compile)
    step = compile(p.step)
    seen, before = [], []
    for p.turn in range(CALLS):
        arguments = p.arguments()
        try:
            found = step(*arguments)
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
            found = []
        found = found if isinstance(found, list) else [found]
        seen += [told(t) for t in (*found, *arguments, *before)]
        before = found[:2]
        if p.draw.random() < 0.2 and found:
            try:
                with fw.no_grad():
                    found[0].add_(1)
            except Exception as error:
                seen.append((type(error).__name__, str(error)))
        everything = [*p.params, p.spare, p.number]
        everything += [*p.layer.parameters(), *p.net.parameters(), *p.norm.buffers()]
        seen += [(told(t), None if t.grad is None else told(t.grad)) for t in everything
                 if t.is_leaf or not t.requires_grad]
        seen += [repr({k: told(v) for k, v in kept.items()})
                 for o in p.optimizers for kept in o.state.values()]
    seen += [told(t) for t in p.kept]
    return [seen, p.log, Twice.calls, fw.get_rng_state().tolist()]


def differs(number):
    """Whether program ``number`` tells something else when it is compiled."""
    with np.errstate(all="ignore"):
        return run(number, lambda f: f) != run(number, fw.compile)
