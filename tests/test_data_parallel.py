"""DistributedDataParallel against one process on the joined batch, and what goes with it."""

import contextlib
import copy

import numpy as np
import pytest
from ranks import on_ranks

import framework as fw
import framework.distributed as dist
import framework.nn as nn
import framework.nn.functional as F
from framework.distributed.algorithms.join import Join
from framework.nn.parallel import DistributedDataParallel as DDP


def data(n, batch=4):
    g = fw.Generator().manual_seed(3)
    return fw.randn(n * batch, 6, generator=g), fw.randint(0, 3, (n * batch,), generator=g)


def net(seed=0):
    fw.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def grads(model):
    return [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]


def by_hand(model, x, y, n):
    """The gradients of each rank's part, added in the order of ranks and divided: the bits of DDP."""
    total = None
    for r in range(n):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        F.cross_entropy(twin(x.chunk(n)[r]), y.chunk(n)[r]).backward()
        total = grads(twin) if total is None else [a + b for a, b in zip(total, grads(twin))]
    return [(t / n).astype(np.float32) for t in total]


def equal(rank, n, cap, beside):
    x, y = data(n)
    alone, model = net(), DDP(net(rank), bucket_cap_mb=cap)  # rank 0's parameters reach all
    model.reducer.beside = beside
    model.load_state_dict(alone.state_dict())  # keys without the prefix
    assert list(model.state_dict())[0] == "module.0.weight"
    a = fw.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    b = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(5):
        want = by_hand(alone, x, y, n)
        a.zero_grad()
        F.cross_entropy(alone(x), y).backward()
        b.zero_grad()
        F.cross_entropy(model(x.chunk(n)[rank]), y.chunk(n)[rank]).backward()
        for got, bits, whole in zip(grads(model), want, grads(alone)):
            if step == 0:
                assert got.tobytes() == bits.tobytes()
            np.testing.assert_allclose(got, whole, rtol=2e-4, atol=1e-6)
        a.step()
        b.step()
    for p, q in zip(alone.parameters(), model.parameters()):
        np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-4, atol=1e-6)
    everywhere = [None] * n
    dist.all_gather_object(everywhere, [p.detach().numpy().tobytes() for p in model.parameters()])
    assert everywhere[0] == everywhere[-1]


@pytest.mark.parametrize("n, cap, beside", [
    (1, None, False), (2, None, False), (2, 1e-5, True), (4, 1e-4, False)])
def test_a_step_equals_one_process_on_the_joined_batch(n, cap, beside):
    on_ranks(n, equal, cap, beside)


def gathered(rank, n):
    x, y = data(2 * n)
    parts, labels = x.chunk(2 * n), y.chunk(2 * n)
    alone, model = net(), DDP(net())
    with model.no_sync():  # around backward alone, too
        F.cross_entropy(model(parts[rank]), labels[rank]).backward()
    first = grads(model)
    out = model(parts[n + rank])
    F.cross_entropy(out, labels[n + rank]).backward()
    F.cross_entropy(alone(x), y).backward()
    for got, want in zip(grads(model), grads(alone)):
        np.testing.assert_allclose(got, 2 * want, rtol=1e-4, atol=1e-6)
    others = [None] * n
    dist.all_gather_object(others, first[0].tobytes())
    assert len(set(others)) == n  # before, each had its own
    # kept gradients (zero_grad(set_to_none=False)) are added to in the bucket
    fw.optim.SGD(model.parameters(), lr=0.1).zero_grad(set_to_none=False)
    place = model.module[0].weight.grad
    F.cross_entropy(model(parts[rank]), labels[rank]).backward()
    assert model.module[0].weight.grad is place
    total = sum(p.numel() for p in model.parameters())
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    norms = [None] * n
    dist.all_gather_object(norms, float(norm))
    assert len(set(norms)) == 1 and total > 0


def test_no_sync_and_kept_gradients():
    on_ranks(2, gathered)


def in_place(rank, n):
    """Kernels make gradients of weights where they are summed; whatever cannot be made there is copied."""
    fw.manual_seed(rank)
    inner = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36, 36), nn.ReLU(),
                          nn.Linear(36, 36))
    inner[5].weight = inner[3].weight  # used twice: the sum of both is somewhere else
    model = DDP(inner)
    alone, x = copy.deepcopy(inner), fw.randn(5, 1, 5, 5)
    views = [view._array for bucket in model.reducer.buckets for view in bucket.views]
    there = {}

    def look(name, p):
        there[name] = any(p.grad._array is view for view in views)
    for name, p in inner.named_parameters():
        if len(p.shape) > 1:
            p._node.after.insert(0, lambda name=name, p=p: look(name, p))
    for step in range(3):
        x = x + step
        loss, alone_loss = model(x).square().mean(), alone(x).square().mean()
        if step == 1:
            loss, alone_loss = loss + inner[0].weight.sum(), alone_loss + alone[0].weight.sum()
        before = [view.copy() for view in views]
        taken = fw.autograd.grad(loss, list(inner.parameters()), retain_graph=True)
        assert all((a == b).all() for a, b in zip(views, before))  # it leaves the buckets alone
        alone.zero_grad()
        alone_loss.backward()
        for g, p in zip(taken, alone.parameters()):
            assert g.numpy().tobytes() == p.grad.numpy().tobytes()
        model.zero_grad()
        loss.backward()
        whole = [None] * n
        dist.all_gather_object(whole, [p.grad.numpy() for p in alone.parameters()])
        for p, *parts in zip(inner.parameters(), *whole):
            total = parts[0] + parts[1]
            assert p.grad.numpy().tobytes() == (total / np.float32(n)).tobytes()
        native = fw._native.module is not None
        assert there == {"0.weight": native and step != 1, "3.weight": False}


def test_gradients_are_made_where_they_are_summed():
    on_ranks(2, in_place)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, which):
        return getattr(self, which)(x).sum() + 0 * self.c.weight.sum() * (which == "c")


def unused(rank, n):
    model = DDP(Branches())
    x = fw.ones(1, 2)
    model(x, "ab"[rank]).backward()
    m = model.module
    assert m.a.weight.grad.tolist() == [[0.5, 0.5]] and m.b.bias.grad.tolist() == [0.5]
    assert m.c.bias.grad is None  # nobody used it
    model.zero_grad()
    model(x, "b").backward()
    assert m.a.weight.grad is None and m.b.weight.grad.tolist() == [[1.0, 1.0]]
    summed = DDP(Branches(), average="sum")
    (summed(x, "a") * (rank + 1)).backward()
    assert summed.module.a.weight.grad.tolist() == [[3.0, 3.0]]


def test_unused_parameters_need_no_flag():
    on_ranks(2, unused)


def buffers(rank, n):
    norm = nn.BatchNorm1d(3)
    norm.running_mean.fill_(float(rank))
    model = DDP(norm)
    assert norm.running_mean.tolist() == [0.0] * 3
    norm.running_mean.fill_(5.0 + rank)
    norm.num_batches_tracked.fill_(7 + rank)
    model.eval()
    model(fw.ones(2, 3))
    assert norm.running_mean.tolist() == [5.0 + rank] * 3  # evaluation makes no calls
    model.train()
    model(fw.ones(2, 3)).sum().backward()
    assert norm.num_batches_tracked.item() == 8 and norm.running_mean.tolist() == pytest.approx([4.6] * 3)
    with pytest.raises(RuntimeError, match="ranks 0 and 1 differ"):
        DDP(nn.Linear(2, 2 + rank))
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        copy.deepcopy(model)


def test_buffers_and_models_that_differ():
    on_ranks(2, buffers)


def uneven(rank, n):
    x, y = data(1, 8)
    for initial in (True, False):
        model = DDP(nn.Sequential(net(), nn.BatchNorm1d(3)))
        optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
        alone = copy.deepcopy(model.module)
        steps = 2 + 2 * rank
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(steps):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                if not initial:  # all alike: the mean over those that are left is the gradient of one
                    alone.zero_grad()
                    F.cross_entropy(alone(x), y).backward()
                    np.testing.assert_allclose(grads(model)[0], grads(alone)[0], rtol=1e-5, atol=1e-7)
                    alone.load_state_dict(model.module.state_dict())
                optimizer.step()
                alone.load_state_dict(model.module.state_dict())
        all_ = [None] * n
        dist.all_gather_object(all_, [v.numpy().tobytes() for v in model.state_dict().values()])
        assert all_[0] == all_[1]
    with contextlib.suppress(RuntimeError), Join([model], throw_on_early_termination=True):
        for _ in range(rank + 1):
            F.cross_entropy(model(x), y).backward()
        assert rank == 0, "the rank with more inputs must be told"


def test_uneven_inputs():
    on_ranks(2, uneven)


def hooks(rank, n):
    from framework.distributed.algorithms.ddp_comm_hooks import default_hooks
    x, y = data(n)
    plain = DDP(net())
    F.cross_entropy(plain(x.chunk(n)[rank]), y.chunk(n)[rank]).backward()
    for hook, near in ((default_hooks.allreduce_hook, 1e-6), (default_hooks.fp16_compress_hook, 2e-3),
                       (default_hooks.bf16_compress_hook, 2e-2)):
        model = DDP(net())
        model.register_comm_hook(None, hook)
        F.cross_entropy(model(x.chunk(n)[rank]), y.chunk(n)[rank]).backward()
        for a, b in zip(grads(model), grads(plain)):
            np.testing.assert_allclose(a, b, rtol=near, atol=near / 10)
    seen = []

    def own(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), len(bucket.parameters())))
        return bucket.buffer() * 0
    model = DDP(net(), bucket_cap_mb=1e-5)
    model.register_comm_hook("s", own)
    F.cross_entropy(model(x), y).backward()
    assert [s[1] for s in seen] == [0, 1, 2, 3] and seen[-1][2] and not grads(model)[0].any()
    with pytest.raises(RuntimeError, match="already"):
        model.register_comm_hook(None, own)


def test_communication_hooks():
    pytest.importorskip("ml_dtypes")
    on_ranks(2, hooks)


def scaled(rank, n):
    """One rank's overflow is everybody's: all leave the step out."""
    model = DDP(net())
    before = [p.detach().clone() for p in model.parameters()]
    optimizer, scaler = fw.optim.SGD(model.parameters(), lr=0.1), fw.amp.GradScaler("cpu")
    x, y = data(1)
    scaler.scale(F.cross_entropy(model(x), y) * (float("inf") if rank else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0 ** 15
    assert all(bool((p == q).all()) for p, q in zip(model.parameters(), before))


def test_a_scaler_agrees_over_ranks():
    on_ranks(2, scaled)


def normed(rank, n):
    """SyncBatchNorm on parts of a batch is BatchNorm on the whole: outputs, gradients, running statistics."""
    x = fw.randn(3 * n + 1, 4, 5, generator=fw.Generator().manual_seed(1)).double()
    w = fw.randn(3 * n + 1, 4, 5, generator=fw.Generator().manual_seed(2)).double()
    ends = [3 * r + min(r, 1) for r in range(n + 1)]  # unequal parts
    here = slice(ends[rank], ends[rank + 1])
    whole = nn.BatchNorm1d(4).double()
    parts = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(4).double()))
    a, b = x.clone().requires_grad_(), x[here].clone().requires_grad_()
    ya, yb = whole(a), DDP(parts, average="sum")(b)
    np.testing.assert_allclose(yb.detach(), ya.detach()[here], atol=1e-12)
    (ya * w).sum().backward()
    (yb * w[here]).sum().backward()
    np.testing.assert_allclose(b.grad, a.grad[here], atol=1e-10)
    for p, q in zip(parts.parameters(), whole.parameters()):
        np.testing.assert_allclose(p.grad, q.grad, atol=1e-10)
    for p, q in zip(parts.buffers(), whole.buffers()):
        np.testing.assert_allclose(p, q, atol=1e-12)


def test_batch_norm_over_ranks_equals_one_large_batch():
    on_ranks(2, normed)
    on_ranks(3, normed)
