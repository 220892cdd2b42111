"""Random programs for ``fw.compile`` that change what they have: results and buffers in place, statistics of
batch norm, counters, drawn masks; the rest is that of ``compile_deferred.py``.
"""

import numpy as np
from compile_deferred import BINARY, UNARY, Program, run

import framework as fw

F, nn = fw.nn.functional, fw.nn
IDS = fw.tensor([3, 0, 0, 2])
MASK = fw.tensor([True, False, True, True])


def _kept(p, x):
    p.kept.append(x[1])  # a view that somebody has, when its base is changed
    return x


def _alias(p, x):
    y = x * 1
    d = y.detach()
    y.add_(1)
    return y + d


def _saved(p, x):
    y = x.sigmoid()
    y.mul_(2)  # backward of the sigmoid then says so
    return y


def _rows(p, x):
    a, *_, b = x
    return x + a * b


def _number(p, x):
    p.log.append((x._version, x.shape))
    return x


def _buffer(p, x):
    with fw.no_grad():
        p.average.mul_(0.75).add_(x.mean(0) if p.turn % 4 != 3 else 1.0)
    return x * p.average


def _apart(p, x):
    p.count.add_(1)
    p.apart.mul_(0.5).add_(p.count)
    return x + p.apart


def _through(p, x):
    return p.rnn(x[None])[0][0] + x


STATEFUL = [
    lambda p, x: p.norm(x), lambda p, x: p.norm(x), lambda p, x: F.dropout(x, 0.25),
    lambda p, x: F.dropout(x, 0.5), lambda p, x: F.dropout1d(x[None], 0.5)[0],
    lambda p, x: (x * 2).add_(1), lambda p, x: x.mul_(0.5) if x.grad_fn else x,
    lambda p, x: F.relu(x * 1, inplace=True), lambda p, x: F.hardtanh(x - 1, -1, 1, True),
    lambda p, x: x.tanh_() if x.grad_fn else x, lambda p, x: (x + 1).sub_(x, alpha=0.5).clamp_(-2, 2),
    _kept, _alias, _saved, _rows, _number, _buffer, _buffer, _apart, _through, lambda p, x: x[IDS],
    lambda p, x: x[:, IDS], lambda p, x: x.T @ x, lambda p, x: x.max(1).values[:, None] * x,
    lambda p, x: x.min(0)[0] + x, lambda p, x: x.to(fw.float64).float(), lambda p, x: x * (x > 0).float(),
    lambda p, x: fw.zeros_like(x) + x, lambda p, x: x * fw.full_like(x, 0.5),
    lambda p, x: x + x.new_ones(4), lambda p, x: x.detach() - x,
    lambda p, x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.25)[0],
    lambda p, x: p.heads(x[None], x[None], x[None], need_weights=False)[0][0],
    lambda p, x: p.heads(x[None], x[None], x[None], key_padding_mask=~MASK[None], need_weights=False)[0][0],
    lambda p, x: (p.x0[1:] @ x).sum() + x,
    lambda p, x: F.interpolate(x[None, None], scale_factor=0.5, mode="bilinear").sum() * x,
    lambda p, x: x.unbind(1)[2] + x, lambda p, x: F.embedding(IDS, x), lambda p, x: x + p.params[0][:1],
    lambda p, x: x @ p.params[1].t(), lambda p, x: (x * 1).fill_(0.25), lambda p, x: (x * 1).copy_(x),
    lambda p, x: (x * 1).zero_() + x]


def _added(p, x, y):
    z = x * 1
    z += y
    return z


CHANGING = [_added, lambda p, x, y: (x * 1).mul_(y), lambda p, x, y: x.add_(y) if x.grad_fn else x,
            lambda p, x, y: (x + y).lerp_(y, 0.5), lambda p, x, y: (x - y).addcmul_(x, y, value=0.5),
            lambda p, x, y: (x * 1).masked_fill_(y > 0, 0.5), lambda p, x, y: fw.where(y > 0, x, y).neg_(),
            lambda p, x, y: x @ y.T, lambda p, x, y: p.norm(x) * F.dropout(y, 0.5)]


class Stateful(Program):
    """With modules and buffers that change."""

    unary = [*STATEFUL, *STATEFUL, *UNARY[:20]]
    binary = [*CHANGING, *BINARY[:12]]
    calls = 8

    def __init__(self, number):
        super().__init__(number)
        self.forgets = self.draw.random() < 0.7
        self.norm = nn.BatchNorm1d(4, momentum=self.draw.choice([0.1, 0.25, None]))
        self.rnn = self.draw.choice([nn.LSTM, nn.GRU, nn.RNN])(4, 4, batch_first=True)
        self.heads = nn.MultiheadAttention(4, 2, dropout=self.draw.choice([0.0, 0.5]), batch_first=True)
        self.average, self.count, self.apart = fw.ones(4), fw.tensor(0), fw.zeros(4)
        self.others = [*self.norm.parameters(), *self.rnn.parameters(), *self.heads.parameters()]
        if self.draw.random() < 0.2:
            self.kept += [self.norm.running_mean.detach(), self.average.detach()]

    def one(self, function, *operands):
        mine = function in STATEFUL or function in CHANGING
        return function(self, *operands) if mine else function(*operands)

    def step(self, x):
        found = super().step(x)
        buffers = [*self.norm.buffers(), self.average, self.count, self.apart]
        self.log.append([(b._version, b.numpy().tobytes()) for b in buffers])
        self.log.append([None if p.grad is None else p.grad.numpy().tobytes() for p in self.others])
        return found


def differs(number):
    """Whether program ``number`` tells something else when it is compiled."""
    with np.errstate(all="ignore"):
        return run(number, lambda f: f, Stateful) != run(number, fw.compile, Stateful)
