"""The NCCL backend: on a real GPU with one rank, on the stand-in for CuPy with several processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROGRAM = """
import numpy as np, sys
import framework as fw, framework.distributed as dist, framework.nn as nn
from framework.distributed import ReduceOp
dist.init_process_group("nccl", timeout=30)
r, n = dist.get_rank(), dist.get_world_size()
fw.backends.cuda.cupy().cuda.Device(r if fw.backends.cuda.device_count() > r else 0).use()
put = lambda a: fw.tensor(a).cuda()
for dtype in ("float32", "float64", "int64", "int32", "uint8", "float16", "bool", "complex64"):
    xs = [(np.arange(6) % (2 + q)).astype(dtype) for q in range(n)]
    x = put(xs[r])
    dist.all_reduce(x)
    assert (x.cpu().numpy() == (sum(xs[1:], xs[0]))).all(), dtype
    x = put(xs[r])
    dist.broadcast(x, n - 1)
    assert (x.cpu().numpy() == xs[-1]).all()
    outs = [put(xs[r]) * 0 if dtype != "bool" else put(np.zeros(6, bool)) for _ in range(n)]
    dist.all_gather(outs, put(xs[r]))
    assert all((o.cpu().numpy() == a).all() for o, a in zip(outs, xs))
    dist.all_to_all(outs, [put(xs[r])] * n)
    assert all((o.cpu().numpy() == a).all() for o, a in zip(outs, xs))
    dist.gather(put(xs[r]), outs if r == 0 else None)
    x = put(xs[r])
    dist.scatter(x, [put(a) for a in xs] if r == 0 else None)
    assert (x.cpu().numpy() == xs[r]).all()
x = put(np.ones(4, np.float32) * (r + 1))
dist.all_reduce(x, ReduceOp.AVG)
assert np.allclose(x.cpu().numpy(), (n + 1) / 2)
out = put(np.zeros(2, np.float32))
dist.reduce_scatter_tensor(out, put(np.arange(2.0 * n, dtype=np.float32)))
assert (out.cpu().numpy() == n * np.arange(2 * r, 2 * r + 2)).all()
dist.reduce(x, 0)
objects = [None] * n
dist.all_gather_object(objects, {"rank": r})
assert [o["rank"] for o in objects] == list(range(n))
if n > 1:
    if r == 0: dist.send(x, 1)
    if r == 1: assert dist.recv(x, 0) == 0
    try:
        dist.all_reduce(put(np.ones(3 + r, np.float32)))
    except RuntimeError as error:
        assert "the ranks made different calls" in str(error)
    else:
        raise AssertionError("not noticed")
try:
    dist.all_reduce(fw.ones(2))
except RuntimeError as error:
    assert "takes tensors on a GPU" in str(error)
fw.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).cuda())
x = put(np.full((2, 3), float(r), np.float32))
model(x).sum().backward()
mine = [p.grad.cpu().numpy() for p in model.parameters()]
everybody = [None] * n
dist.all_gather_object(everybody, [g.tobytes() for g in mine])
assert all(e == everybody[0] for e in everybody) and any(g.any() for g in mine)
assert fw.cuda.nccl.version() > (2, 0) and len(fw.cuda.nccl.unique_id()) == 128
dist.barrier()
dist.destroy_process_group()
print("done")
"""


def run(n, env, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = [str(HERE.parent), *env]
    return subprocess.run([sys.executable, "-m", "framework.distributed.run", "-n", str(n),
                           str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


@pytest.mark.parametrize("n", [1, 2])
def test_collectives_and_training_on_the_stand_in(n, tmp_path):
    done = run(n, [str(HERE / "standin")], tmp_path)
    assert done.returncode == 0 and done.stdout.count("done") == n, done.stderr


def test_one_rank_on_a_real_gpu(tmp_path):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception:
        count = 0
    if not count or "standin" in cupy.__version__:
        pytest.skip("there is no GPU here")
    done = run(1, [], tmp_path)
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
