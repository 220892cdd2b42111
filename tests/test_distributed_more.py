"""Derivatives of collectives, optimizers in shares, stores, ``launch``."""

import datetime
import os
import socket
import time
from functools import partial

import numpy as np
import pytest
from ranks import on_ranks

import framework as fw
import framework.distributed as dist
import framework.distributed.nn.functional as DF
import framework.nn as nn
import framework.nn.functional as F
from framework.distributed import meeting
from framework.distributed.optim import ZeroRedundancyOptimizer
from framework.errors import DistributedError
from framework.multiprocessing import ProcessRaisedException


def slope(f, x):
    """The gradient of the sum over ranks of f(x), by differences of this rank's numbers."""
    found = [None] * dist.get_world_size()
    for r in range(len(found)):
        g = np.zeros(x.numel())
        for i in range(x.numel()):
            values = []
            for h in (1e-5, -1e-5):
                moved = x.detach().clone()
                if dist.get_rank() == r:
                    moved.reshape(-1)[i] += h
                total = f(moved).detach().clone()
                dist.all_reduce(total)
                values.append(float(total))
            g[i] = (values[0] - values[1]) / 2e-5
        found[r] = g.reshape(x.shape)
    return found[dist.get_rank()]


def weighted(parts):
    return sum((y * (i + 1)).sum() for i, y in enumerate(parts))


def derivatives(rank, n):
    fw.set_default_dtype(fw.float64)
    g = fw.Generator().manual_seed(rank)
    x = fw.randn(n, 2, generator=g).requires_grad_()
    w = fw.randn(n, 2, generator=g)
    own = rank + 1.0
    calls = {
        "all_reduce": lambda x: (DF.all_reduce(x * x) * w).sum() * own,
        "mean": lambda x: (DF.all_reduce(x * x, dist.ReduceOp.AVG) * w).sum() * own,
        "broadcast": lambda x: (DF.broadcast(x * x, n - 1) * w).sum() * own,
        "reduce": lambda x: (DF.reduce(x * x, 0) * w).sum() * own,
        "all_gather": lambda x: weighted([y * w for y in DF.all_gather(x * x)]) * own,
        "gather": lambda x: weighted([y * w for y in DF.gather(x * x)]) * own,
        "scatter": lambda x: (DF.scatter(list(x * x), n - 1) * w[0]).sum() * own,
        "reduce_scatter": lambda x: (DF.reduce_scatter(w[0], list(x * x)) * w[0]).sum() * own,
        "all_to_all_single": lambda x: (DF.all_to_all_single(w, x * x) * w).sum() * own,
        "all_to_all": lambda x: weighted(DF.all_to_all([w[0]] * n, list(x * x))) * own,
    }
    for name, f in calls.items():
        (got,) = fw.autograd.grad(f(x), x)
        np.testing.assert_allclose(got, slope(f, x), rtol=1e-6, atol=1e-7, err_msg=name)
        (got,) = fw.autograd.grad(f(x), x, create_graph=True)  # and again: of a sum that only this rank has
        (second,) = fw.autograd.grad(got.sum(), x)
        assert second.isfinite().all()
    with pytest.raises(ValueError, match="no derivative"):
        DF.all_reduce(x, dist.ReduceOp.MAX)


def test_derivatives_of_collectives():
    on_ranks(2, derivatives)
    on_ranks(3, derivatives)


def model():
    fw.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 2))


def steps(net, optimizer, k, seed=0):
    g = fw.Generator().manual_seed(seed)
    for _ in range(k):
        x, y = fw.randn(6, 5, generator=g), fw.randn(6, 2, generator=g)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


def shares(rank, n, path):
    a, b = model(), model()
    alone = fw.optim.Adam(a.named_parameters(), lr=0.05)
    parts = ZeroRedundancyOptimizer(b.named_parameters(), fw.optim.Adam, lr=0.05)
    steps(a, alone, 4)
    steps(b, parts, 4)
    for p, q in zip(a.parameters(), b.parameters()):
        assert p.detach().numpy().tobytes() == q.detach().numpy().tobytes()
    held = sum(v.numel() for s in parts.optim.state.values() for v in s.values() if isinstance(v, fw.Tensor))
    total = sum(v.numel() for s in alone.state.values() for v in s.values() if isinstance(v, fw.Tensor))
    assert n == 1 or held <= 0.7 * total
    for group in parts.param_groups:
        group["lr"] = 0.01
    for group in alone.param_groups:
        group["lr"] = 0.01
    steps(a, alone, 1)
    steps(b, parts, 1)
    with pytest.raises(RuntimeError, match="consolidate_state_dict"):
        parts.state_dict()
    parts.consolidate_state_dict(to=0)
    if rank == 0:
        fw.save({"model": b.state_dict(), "optimizer": parts.state_dict()}, path)
    dist.barrier()
    saved = fw.load(path)
    whole = fw.optim.Adam(b.named_parameters(), lr=1.0)  # the optimizer alone takes it
    whole.load_state_dict(saved["optimizer"])
    for p, q in zip(alone.state.values(), whole.state.values()):
        assert set(p) == set(q)
        for key in p:
            assert np.asarray(p[key]).tobytes() == np.asarray(q[key]).tobytes()


def resumed(rank, n, path):
    net = model()
    parts = ZeroRedundancyOptimizer(net.named_parameters(), fw.optim.Adam, lr=1.0)
    saved = fw.load(path)
    net.load_state_dict(saved["model"])
    parts.load_state_dict(saved["optimizer"])
    assert parts.param_groups[0]["lr"] == 0.01
    steps(net, parts, 2, seed=7)
    if rank == 0:
        fw.save(net.state_dict(), f"{path}.{n}")


def test_an_optimizer_in_shares_equals_the_whole_and_resumes_on_any_number_of_ranks(tmp_path):
    path = os.fspath(tmp_path / "state.safetensors")
    on_ranks(2, shares, path)
    for n in (1, 2, 3):
        on_ranks(n, resumed, path)
    one, two, three = (fw.load(f"{path}.{n}") for n in (1, 2, 3))
    for key in one:
        assert one[key].numpy().tobytes() == two[key].numpy().tobytes() == three[key].numpy().tobytes()


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind, tmp_path):
    store = {"hash": dist.HashStore, "file": lambda: dist.FileStore(os.fspath(tmp_path / "f"), 1),
             "tcp": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
             "prefix": lambda: dist.PrefixStore("p", dist.HashStore())}[kind]()
    store.set("a", "one")
    store.set("b", b"\0\1")
    assert store.get("a") == b"one" and store.get("b") == b"\0\1"
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2
    assert store.check(["a", "n"]) and not store.check(["a", "z"])
    keys = store.num_keys()
    assert store.delete_key("a") and not store.delete_key("a") and store.num_keys() == keys - 1
    store.set_timeout(datetime.timedelta(seconds=0.05))
    with pytest.raises(RuntimeError, match="'z', which nobody has set"):
        store.get("z")


def by_store(rank, path, out):
    dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=rank, world_size=2)
    x = fw.ones(1)
    dist.all_reduce(x)
    out[rank] = float(x)
    dist.destroy_process_group()
    dist.init_process_group("cpu:gloo,cuda:nccl", f"file://{path}?world_size=2&rank={rank}")  # and once more
    assert dist.get_backend() == "nccl" or dist.get_world_size() == 2


def test_meeting_by_a_store_and_by_url(tmp_path):
    out = fw.zeros(2)
    fw.multiprocessing.spawn(by_store, (os.fspath(tmp_path / "s"), out), 2, start_method="fork")
    assert out.tolist() == [2.0, 2.0]


def seeded():
    dist.manual_seed(3)
    first = fw.rand(4).tolist()
    dist.manual_seed(3)
    assert fw.rand(4).tolist() == first
    return first


def test_each_rank_has_random_numbers_of_its_own():
    both = dist.launch(seeded, 2)
    assert both[0] != both[1] and both == dist.launch(seeded, 2)
    fw.manual_seed(3)
    assert fw.rand(4).tolist() == both[0]  # rank 0's are those of one process


def test_launch_takes_lambdas_and_brings_results_and_errors_home():
    x = fw.ones(3)
    assert dist.launch(lambda t: (dist.get_rank(), dist.get_world_size(), t.sum().item()), 2, x) == [
        (0, 2, 3.0), (1, 2, 3.0)]

    def fails():
        if dist.get_rank() == 1:
            raise KeyError("in the notebook")
        dist.barrier()
    with pytest.raises(ProcessRaisedException, match="in the notebook"):
        dist.launch(fails, 2)
    assert len(dist.launch(lambda: b"x" * 3_000_000, 2)[1]) == 3_000_000  # more than a pipe holds
    assert not dist.is_initialized()


class Tall(nn.Module):
    """Two blocks and a head, a buffer, a frozen parameter."""

    def __init__(self):
        super().__init__()
        fw.manual_seed(0)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(2)])
        self.norm, self.head = nn.BatchNorm1d(5), nn.Linear(5, 2)
        self.scale = nn.Parameter(fw.ones(2), requires_grad=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) * self.scale


def test_a_store_in_a_file(tmp_path):
    path = os.fspath(tmp_path / "store")
    store, other = dist.FileStore(path, 2), dist.FileStore(path, 2)
    store.set("a", b"1")
    other.set("", b"")
    assert other.add("a", 4) == 5 and other.delete_key("") and store.num_keys() == 1
    whole = (tmp_path / "store").read_bytes()
    for end in range(len(whole)):  # a process was killed while it wrote
        (tmp_path / "store").write_bytes(whole[:end])
        store.set("b", b"2")
        assert other.get("b") == b"2" and other.num_keys() <= 3
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(dist.DistributedError, match="a file of something else"):
        dist.FileStore(os.fspath(tmp_path / "notes"), 2).set("a", b"1")
    assert (tmp_path / "notes").read_text() == "mine"


def sharded(rank, n, path, own):
    if own:  # the way of backends without shared memory
        type(dist.GroupMember.WORLD.backend).symmetric = None
    whole, parts = Tall(), Tall()
    if rank:
        with fw.no_grad():
            for p in parts.parameters():
                p.mul_(2)
    dist.fsdp.fully_shard(parts, units=list(parts.blocks))
    frozen = [p for p in parts.parameters() if not p.requires_grad]
    assert len(frozen) == 1 and len(list(parts.parameters())) == 4
    if rank:
        parts.scale.copy_(whole.scale)
    a = fw.optim.Adam(whole.parameters(), lr=0.01)
    b = fw.optim.Adam(parts.parameters(), lr=0.01)
    g = fw.Generator().manual_seed(5)
    for _ in range(3):
        x, y = fw.randn(6, 5, generator=g), fw.randn(6, 2, generator=g)
        for net, optimizer in ((whole, a), (parts, b)):
            optimizer.zero_grad()
            F.mse_loss(net(x), y).backward()
            optimizer.step()
    full = dist.fsdp.full_state_dict(parts)
    assert set(full) == set(whole.state_dict())
    for name, value in whole.state_dict().items():
        np.testing.assert_allclose(full[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    for unit in parts._sharded.units:
        assert unit.shard.numel() == unit.part and (unit.row is None) == own
    if rank == 0:
        fw.save(full, f"{path}.{own}")
    dist.barrier()
    again = dist.fsdp.fully_shard(Tall())  # one unit, and what was saved by several
    dist.fsdp.load_full_state_dict(again, fw.load(f"{path}.{own}"))
    back = dist.fsdp.full_state_dict(again)
    assert all(np.asarray(back[k]).tobytes() == np.asarray(full[k]).tobytes() for k in full)
    with pytest.raises(ValueError, match="missing, or of another shape: head.bias"):
        dist.fsdp.load_full_state_dict(again, {k: v for k, v in full.items() if k != "head.bias"})
    late = parts(x).sum()
    b.step()
    with pytest.raises(RuntimeError, match="between a forward and its backward"):
        late.backward()
    late = parts(x).sum()
    b.step()
    parts(x)
    with pytest.raises(RuntimeError, match="a step of its shard"):
        late.backward()
    with pytest.raises(ValueError, match="sharded already"):
        dist.fsdp.fully_shard(again)


@pytest.mark.parametrize("n, own", [(1, False), (2, False), (3, False), (2, True)])
def test_a_sharded_model_trains_as_the_whole(n, own, tmp_path):
    on_ranks(n, sharded, os.fspath(tmp_path / "m"), own)


def test_what_another_user_hands_out_is_not_read(monkeypatch):
    """Anybody on the machine may listen under the name of a meeting."""
    name = f"meeting-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(meeting._address(name))
        listener.listen(1)
        monkeypatch.setattr(meeting, "_user", lambda conn: os.getuid() + 1)
        with pytest.raises(DistributedError, match=r"another user \(\d+\).*MASTER_PORT"):
            meeting.fetch(name, "here", 1, 2, 0, time.monotonic() + 5)


def test_a_late_answer_is_not_taken_for_another_ones():
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    store.set("a", "of a")
    held = store._table.lock
    store._conn.settimeout(0.05)
    with held, pytest.raises(DistributedError, match="gives no answer"):
        store.get("a")
    with pytest.raises(DistributedError, match="gives no answer"):
        store.get("b")


def wrapped(rank, n, path):
    FSDP, wrap = dist.fsdp.FullyShardedDataParallel, dist.fsdp.wrap
    whole = Tall()
    parts = FSDP(Tall(), auto_wrap_policy=partial(wrap.transformer_auto_wrap_policy,
                                                  transformer_layer_cls={nn.Sequential}))
    assert len(parts._sharded.units) == 3 and parts.head is parts.module.head
    a, b = fw.optim.Adam(whole.parameters(), lr=0.01), fw.optim.Adam(parts.parameters(), lr=0.01)
    g = fw.Generator().manual_seed(5)

    def train(pairs, steps):
        for _ in range(steps):
            x, y = fw.randn(6, 5, generator=g), fw.randn(6, 2, generator=g)
            norms = []
            for net, optimizer in pairs:
                optimizer.zero_grad()
                F.mse_loss(net(x), y).backward()
                norms.append(float(net.clip_grad_norm_(0.5) if isinstance(net, FSDP) else
                                   nn.utils.clip_grad_norm_(net.parameters(), 0.5)))
                optimizer.step()
            assert max(norms) - min(norms) < 1e-5, norms

    train([(whole, a), (parts, b)], 3)
    full = parts.state_dict()
    for name, value in whole.state_dict().items():
        np.testing.assert_allclose(full[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    with FSDP.state_dict_type(parts, dist.fsdp.StateDictType.LOCAL_STATE_DICT):
        assert {v.numel() for k, v in parts.state_dict().items() if "shard" in k} == {
            u.part for u in parts._sharded.units}
    with FSDP.state_dict_type(parts, dist.fsdp.StateDictType.FULL_STATE_DICT,
                              dist.fsdp.FullStateDictConfig(rank0_only=True)):
        assert bool(parts.state_dict()) == (rank == 0)
    with FSDP.summon_full_params(parts):
        got, wanted = parts.head.weight.detach(), whole.head.weight.detach()
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    saved = FSDP.optim_state_dict(parts, b)
    theirs = a.state_dict()["state"]
    trained = [k for k, p in whole.named_parameters() if p.requires_grad]
    numbers = [i for i, p in enumerate(whole.parameters()) if p.requires_grad]
    for i, name in zip(numbers, trained):
        for key in ("exp_avg", "exp_avg_sq"):
            np.testing.assert_allclose(saved["state"][name][key], theirs[i][key], rtol=1e-4, atol=1e-7)
    assert bool(FSDP.full_optim_state_dict(parts, b)) == (rank == 0)
    again = FSDP(Tall())  # one unit now; it goes on from there
    again.load_state_dict(full)
    c = fw.optim.Adam(again.parameters(), lr=0.5)
    c.load_state_dict(FSDP.optim_state_dict_to_load(again, c, saved))
    assert c.param_groups[0]["lr"] == 0.01
    train([(whole, a), (parts, b), (again, c)], 2)
    for name, value in whole.state_dict().items():
        np.testing.assert_allclose(again.state_dict()[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    for refused in ({"sharding_strategy": dist.fsdp.ShardingStrategy.NO_SHARD},
                    {"mixed_precision": dist.fsdp.MixedPrecision(param_dtype=fw.bfloat16)}):
        with pytest.raises(ValueError, match="DistributedDataParallel|autocast"):
            FSDP(nn.Linear(2, 2), **refused)


def test_the_module_around_a_sharded_model(tmp_path):
    on_ranks(2, wrapped, (str(tmp_path),))


def test_policies_of_units():
    wrap = dist.fsdp.wrap
    inner, outer = nn.Linear(2, 9), nn.Linear(2, 2)
    model = nn.Sequential(outer, nn.Sequential(inner))
    assert wrap.units_of(model, partial(wrap.size_based_auto_wrap_policy, min_num_params=20)) == [inner]
    assert wrap.units_of(model, wrap.ModuleWrapPolicy({nn.Linear})) == [outer, inner]
    second = partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: m is model[1])
    assert wrap.units_of(model, second) == [model[1]]
    assert wrap.units_of(model, wrap.always_wrap_policy)[:2] == [outer, inner]
