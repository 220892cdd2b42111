"""Collectives over shared memory: every call, dtype, size and number of ranks against NumPy."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
import shm
from ranks import on_ranks

import framework as fw
import framework.distributed as dist
from framework.distributed import ReduceOp
from framework.errors import CheckpointError
from framework.multiprocessing import ProcessRaisedException
from framework.tensor import wrap

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool", "complex64"]
SIZES = [0, 1, 7, 5000, 300_001]  # the last goes through the slots in pieces where there are many bytes


def numbers(rank, dtype, size):
    """The numbers of a rank, small enough for every dtype to hold sums exactly."""
    d = fw.dtypes.as_dtype(dtype).numpy
    a = np.random.default_rng((rank, size)).integers(0, 2 if dtype == "bool" else 4, size)
    return (a + (1j * (a % 2) if dtype == "complex64" else 0)).astype(d)


def wide(a):
    return a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a


def reduced(op, arrays):
    functions = {"SUM": np.add, "AVG": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
                 "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}
    total = wide(arrays[0])
    for a in arrays[1:]:
        total = functions[op.name](total, wide(a))
    return (total / len(arrays) if op is ReduceOp.AVG else total).astype(arrays[0].dtype)


def same(t, a):
    assert t._array.dtype == a.dtype and t._array.tobytes() == a.tobytes()


def ops_of(dtype):
    kind = "b" if dtype == "bool" else np.dtype(dtype if dtype != "bfloat16" else "float16").kind
    yield ReduceOp.SUM
    yield ReduceOp.PRODUCT
    if kind in "fc":
        yield ReduceOp.AVG
    if kind != "c":
        yield ReduceOp.MIN
        yield ReduceOp.MAX
    if kind in "biu":
        yield from (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def table(rank, n, dtypes):
    for dtype in dtypes:
        for size in SIZES:
            xs = [numbers(r, dtype, size) for r in range(n)]
            mine = wrap(xs[rank].copy())
            for op in ops_of(dtype) if size < 10_000 else [ReduceOp.SUM]:
                x = wrap(xs[rank].copy())
                assert dist.all_reduce(x, op) is None
                same(x, reduced(op, xs))
                x = wrap(xs[rank].copy())
                dist.reduce(x, n - 1, op)
                same(x, reduced(op, xs) if rank == n - 1 else xs[rank])
                parts = [wrap(a) for a in xs]  # rank r gets n times the numbers of r
                out = wrap(np.empty_like(xs[0]))
                dist.reduce_scatter(out, parts, op)
                same(out, reduced(op, [xs[rank]] * n))
                dist.reduce_scatter_tensor(out, wrap(np.concatenate(xs)), op)
                same(out, reduced(op, [xs[rank]] * n))
            x = wrap(xs[rank].copy())
            dist.broadcast(x, n - 1)
            same(x, xs[n - 1])
            outs = [wrap(np.empty_like(xs[0])) for _ in range(n)]
            dist.all_gather(outs, mine)
            for out, a in zip(outs, xs):
                same(out, a)
            whole = wrap(np.empty((n, size), xs[0].dtype))
            dist.all_gather_into_tensor(whole, mine)
            same(whole, np.stack(xs))
            dist.gather(mine, outs if rank == 0 else None)
            out = wrap(np.empty_like(xs[0]))
            dist.scatter(out, [wrap(a) for a in xs] if rank == n - 1 else None, n - 1)
            same(out, xs[rank])
            dist.all_to_all(outs, [mine] * n)
            for out, a in zip(outs, xs):
                same(out, a)
            if n > 1:
                out = wrap(np.empty_like(xs[0]))
                work = dist.isend(mine, (rank + 1) % n, tag=3)
                assert dist.recv(out, (rank - 1) % n, tag=3) == (rank - 1) % n
                work.wait()
                same(out, xs[rank - 1])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_collective_against_numpy(n):
    pytest.importorskip("ml_dtypes")
    on_ranks(n, table, DTYPES if n == 2 else ["float32", "bfloat16", "int64", "bool"])


def layouts(rank, n):
    base = wrap(np.arange(24.0, dtype=np.float32).reshape(4, 6) + rank)
    want = sum(np.arange(24.0, dtype=np.float32).reshape(4, 6) + r for r in range(n))
    turned = base.t()
    dist.all_reduce(turned)  # not contiguous: written back in place
    same(base, want)
    base = wrap(np.arange(24.0, dtype=np.float32).reshape(4, 6) + rank)
    version = base._version
    dist.all_reduce(base[::2, 1::2])
    assert base._array[0, 1] == want[0, 1] and base._array[1, 1] == 7 + rank
    alone = fw.tensor(float(rank))
    dist.all_reduce(alone, ReduceOp.MAX)
    assert float(alone) == n - 1 and base._version >= version
    outs = [fw.empty(6, 4) for _ in range(n)]
    dist.all_gather(outs, base.t())
    assert float(outs[-1][0, 1]) == 6 + n - 1
    w = fw.ones(2, requires_grad=True)
    y = (w * w).sum()
    dist.all_reduce(w.detach())  # a change that backward would not know of is noticed
    with pytest.raises(RuntimeError, match="in place|changed|modified"):
        y.backward()


def test_layouts_and_versions():
    on_ranks(2, layouts)


def together(rank, n):
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank * 1000})
    assert [o["rank"] for o in objects] == list(range(n))
    with pytest.raises(TypeError, match="all_gather_object: objects travel as plain data"):
        dist.all_gather_object(objects, object())  # nothing was sent: the next call is the same one on all
    dist.gather_object(rank, objects if rank == 1 else None, dst=1)
    assert rank != 1 or objects == list(range(n))
    two = [rank, "a"] if rank == 1 else [None, None]
    dist.broadcast_object_list(two, 1)
    assert two == [1, "a"]
    got = [None]
    dist.scatter_object_list(got, [f"for {r}" for r in range(n)] if rank == 0 else None, 0)
    assert got == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list([1, {"b": 2}], 1)
    if rank == 1:
        assert dist.recv_object_list(two, 0) == 0 and two == [1, {"b": 2}]
    even = dist.new_group(range(0, n, 2))
    if rank % 2 == 0:
        x = fw.ones(3)
        dist.all_reduce(x, group=even)
        assert x.tolist() == [2.0] * 3 and dist.get_rank(even) == rank // 2
        assert dist.get_process_group_ranks(even) == [0, 2] and dist.get_group_rank(even, rank) == rank // 2
        dist.broadcast(x, 2, even)
        with pytest.raises(ValueError, match="not one of the group"):
            dist.broadcast(x, 1, even)
        dist.destroy_process_group(even)
    else:
        assert even is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(even) == -1
        assert dist.all_reduce(fw.ones(1), group=even) is None
    ours, all_ = dist.new_subgroups(2) if n % 2 == 0 else (None, [])
    x = fw.ones(100_000)
    works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
    dist.barrier()  # behind the others
    assert all(w.is_completed() for w in works) and float(x[7]) == n ** 3 and works[0].wait()
    assert works[0].get_future().then(lambda f: float(f.value()[0][0])).wait() == n ** 3
    # several tags, and whoever comes first
    if rank == 0:
        for peer in range(1, n):
            dist.send(fw.full((2,), 5.0), peer, tag=5)
            dist.send(fw.full((2,), 6.0), peer, tag=6)
        seen = set()
        for _ in range(1, n):
            x = fw.zeros(1)
            source = dist.recv(x)
            assert float(x) == source
            seen.add(source)
        assert seen == set(range(1, n))
    else:
        x = fw.zeros(2)
        dist.recv(x, 0, tag=6)
        assert x.tolist() == [6.0, 6.0]
        dist.recv(x, 0, tag=5)
        assert x.tolist() == [5.0, 5.0]
        dist.send(fw.full((1,), float(rank)), 0)
    dist.barrier()  # what comes next must not be taken for what rank 0 still waits for
    big = [fw.full((200_000,), float(rank)), fw.zeros(200_000)]
    for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, big[0], (rank + 1) % n),
                                     dist.P2POp(dist.irecv, big[1], (rank - 1) % n)]):
        w.wait()
    assert float(big[1][-1]) == (rank - 1) % n
    sizes = [rank + 1] * n
    out = fw.zeros(sum(range(1, n + 1)), 2)
    dist.all_to_all_single(out, fw.full((n * (rank + 1), 2), float(rank)), list(range(1, n + 1)), sizes)
    assert out[:, 0].tolist() == [float(r) for r in range(n) for _ in range(r + 1)]
    assert float(dist.mean(fw.tensor(float(rank)), rank + 1)) == pytest.approx(
        sum(range(n)) / sum(range(1, n + 1)))
    dist.monitored_barrier(timeout=5)


def test_objects_groups_messages_and_work():
    on_ranks(3, together)
    on_ranks(4, together)


class Trap:
    """Unpickling it ends the process."""

    def __reduce__(self):
        return os._exit, (3,)


def trap(rank, n):
    data = np.frombuffer(pickle.dumps([Trap()]), np.uint8)
    if rank == 0:
        dist.send(fw.tensor([data.size]), 1)
        dist.send(fw.tensor(data.copy()), 1)
    else:
        with pytest.raises(CheckpointError):
            dist.recv_object_list([None], 0)


def test_what_peers_send_is_not_run():
    on_ranks(2, trap)


def mistakes(rank, n):
    for call, words in [
        (lambda: dist.all_reduce(fw.ones(3 + rank)), ["rank 0: all_reduce of 3", "rank 1: all_reduce of 4"]),
        (lambda: dist.all_reduce(fw.ones(3).to(fw.int64 if rank else fw.float32)), ["3 float32", "3 int64"]),
        (lambda: dist.all_reduce(fw.ones(3), ReduceOp.MAX if rank else ReduceOp.SUM),
         ["ReduceOp.SUM", "ReduceOp.MAX"]),
        (lambda: dist.barrier() if rank else dist.all_reduce(fw.ones(2)), ["rank 1: barrier"]),
        (lambda: dist.broadcast(fw.ones(2), rank), ["root 0", "root 1"]),
    ]:
        with pytest.raises(dist.DistributedError, match="the ranks made different calls") as caught:
            call()
        assert all(w in str(caught.value) for w in words), str(caught.value)
        x = fw.ones(2)  # the group is as usable as before
        dist.all_reduce(x)
        assert x.tolist() == [2.0, 2.0]
    if rank == 0:
        dist.send(fw.ones(3), 1)
    else:
        x = fw.zeros(4)
        with pytest.raises(ValueError, match="sent 3 float32, the tensor has 4 float32"):
            dist.recv(x, 0)
    for call, error, words in [
        (lambda: dist.all_reduce([1.0]), TypeError, "must be a Tensor"),
        (lambda: dist.all_reduce(fw.ones(2, dtype=fw.int64), ReduceOp.AVG), TypeError, "the mean of int64"),
        (lambda: dist.all_reduce(fw.ones(2), ReduceOp.BAND), TypeError, "integers and bool"),
        (lambda: dist.all_reduce(fw.ones(2), "sum"), TypeError, "must be a ReduceOp"),
        (lambda: dist.all_gather([fw.ones(2)], fw.ones(2)), ValueError, "each of the 2 ranks"),
        (lambda: dist.all_gather([fw.ones(2)] * 3, fw.ones(2)), ValueError, "each of the 2 ranks"),
        (lambda: dist.broadcast(fw.ones(2), 7), ValueError, "src=7"),
        (lambda: dist.send(fw.ones(2), rank), ValueError, "this rank itself"),
        (lambda: dist.all_reduce(fw.ones(1).expand(3)), ValueError, "expanded"),
        (lambda: dist.init_process_group("shm", "tcp://a:1", rank=0, world_size=1), RuntimeError, "already"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_wrong_calls_are_noticed_and_leave_the_group_whole():
    on_ranks(2, mistakes)


def test_calls_without_a_group_say_how_to_join():
    with pytest.raises(RuntimeError, match="init_process_group"):
        dist.all_reduce(fw.ones(2))
    with pytest.raises(ValueError, match="RANK"):
        dist.init_process_group(init_method="env://")
    with pytest.raises(ValueError, match="there is no backend 'smoke'"):
        dist.init_process_group("smoke")
    with pytest.raises(RuntimeError, match=r"\[1\] have not come"):
        dist.init_process_group("shm", "tcp://127.0.0.1:29599", rank=0, world_size=2, timeout=0.1)
    assert not dist.is_initialized()
    assert pickle.loads(pickle.dumps(ReduceOp.MAX)) is ReduceOp.MAX


def gone(rank, n, how):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # by which the other is ended when one was killed
    dist.all_reduce(fw.ones(4))
    if rank == 1:
        if how == "killed":
            os.kill(os.getpid(), 9)
        if how == "left":
            dist.destroy_process_group()
            os._exit(0)
        if how == "late":
            with pytest.raises(RuntimeError, match="rank 0 waited .* for rank 1, which is at call 1"):
                time.sleep(5)
                dist.all_reduce(fw.ones(4))
            os._exit(0)
    words = {"killed": "rank 1 died at call 1", "left": "rank 1 has ended after call 1",
             "late": r"rank 0 waited .* in all_reduce \(call 2\) for rank 1, which is at call 1"}[how]
    with pytest.raises(dist.DistributedError, match=words):
        dist.all_reduce(fw.ones(4))
    with pytest.raises(dist.DistributedError, match=words):  # and from now on
        dist.all_reduce(fw.ones(4))
    print("noticed", flush=True)
    os._exit(0)


@pytest.mark.parametrize("how", ["killed", "left", "late"])
def test_a_rank_that_does_not_come_is_named(how, capfd):
    before = shm.names()
    if how == "killed":
        with pytest.raises(Exception, match="killed by SIGKILL"):
            on_ranks(2, gone, how)
    else:
        on_ranks(2, gone, how, timeout=2 if how == "late" else 20)
    assert "noticed" in capfd.readouterr().out
    assert not shm.left(before)


def twice(rank, n):
    if rank == 0:
        raise KeyError("mine")
    dist.barrier()


def test_the_error_of_the_rank_that_failed_comes_home():
    with pytest.raises(ProcessRaisedException, match="KeyError: 'mine'"):
        on_ranks(2, twice)


def long(rank, n, direct):
    backend = dist.GroupMember.WORLD.backend
    backend._direct = direct  # None: find out; False: as where others' memory is out of reach
    for dtype in ("float32", "bfloat16", "int64"):
        xs = [numbers(r, dtype, 2_500_001) for r in range(n)]
        x = wrap(xs[rank].copy())
        for op in (ReduceOp.SUM, ReduceOp.MAX):
            x._array[...] = xs[rank]
            dist.all_reduce(x, op)
            same(x, reduced(op, xs))
    f = np.random.default_rng(rank).standard_normal(1_500_000).astype(np.float32)
    x = wrap(f.copy())
    dist.all_reduce(x, ReduceOp.AVG)
    fs = [np.random.default_rng(r).standard_normal(1_500_000).astype(np.float32) for r in range(n)]
    same(x, (sum(fs[1:], fs[0]) / n).astype(np.float32))  # in the order of ranks, to the bit
    assert direct is None or backend._direct is False


@pytest.mark.parametrize("direct", [None, False])
def test_long_tensors_in_others_memory_or_through_slots(direct):
    pytest.importorskip("ml_dtypes")
    on_ranks(2, long, direct)
    on_ranks(3, long, direct)
