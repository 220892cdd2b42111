"""Train on handwritten digits in several processes; every number of them gives the same model.

    python -m framework.distributed.run -n 4 examples/data_parallel.py
    python -m framework.distributed.run -n 2 --max-restarts 3 examples/data_parallel.py --out runs/parallel
    python -m framework.distributed.run -n 2 --backend nccl examples/data_parallel.py --device cuda
    python examples/data_parallel.py --ranks 2      # without a launcher

Each rank computes on its part of every batch; backward leaves the mean of the gradients. Every epoch ends
with a checkpoint, from which a run goes on by itself, with the same number of ranks or another. ``--zero``
divides the optimizer's state among the ranks.
"""

import argparse
import os
import sys
from pathlib import Path

import framework as fw
import framework.distributed as dist
import framework.nn as nn
import framework.nn.functional as F
from framework.data import DataLoader, DistributedSampler, TensorDataset
from framework.nn.parallel import DistributedDataParallel
from framework.utils.training import progress


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """scikit-learn's 8x8 digits: rows [N, 64] in [0, 1], with their labels; the last 360 are for testing."""
    from sklearn.datasets import load_digits
    images, labels = load_digits(return_X_y=True)
    x, y = fw.tensor(images).float() / 16, fw.tensor(labels).long()
    return TensorDataset(x[:1437], y[:1437]), TensorDataset(x[1437:], y[1437:])


@fw.no_grad()
def accuracy(model: nn.Module, data: TensorDataset, device: str) -> float:
    """The part that the model names right: every rank counts on its share, and nothing is counted twice."""
    right = seen = 0
    for x, y in DataLoader(data, batch_size=200, sampler=DistributedSampler(data, shuffle=False, pad=False)):
        right += int((model(x.to(device)).argmax(1).cpu() == y).sum())
        seen += len(x)
    return float(dist.mean(fw.tensor(float(right), device=device), seen))


def train(args: argparse.Namespace) -> str:
    """What each rank does; the last line of rank 0."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if args.batch_size % n:
        raise ValueError(f"--batch-size {args.batch_size} must be a multiple of the {n} ranks")
    device = f"cuda:{dist.get_node_local_rank(0)}" if args.device == "cuda" else args.device
    data, test = load_data()
    fw.manual_seed(args.seed)  # the same first model everywhere; DDP would send rank 0's anyway
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    parallel = DistributedDataParallel(model)
    if args.zero:
        optimizer = dist.optim.ZeroRedundancyOptimizer(model.named_parameters(), fw.optim.Adam, lr=args.lr)
    else:
        optimizer = fw.optim.Adam(model.named_parameters(), lr=args.lr)
    # of every batch rank r takes the samples r, r + n, r + 2n ...: batches are the same for every n
    sampler = DistributedSampler(data, seed=args.seed, drop_last=True)
    loader = DataLoader(data, batch_size=args.batch_size // n, sampler=sampler, drop_last=True)
    checkpoints = fw.io.Checkpointer(args.out / "checkpoints", keep=2)
    # the loader tells the sampler which epoch it is
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    found = checkpoints.resume(**parts)
    first = 0 if found is None else found["epoch"]
    if rank == 0 and found is not None:
        print(f"going on after epoch {first}, with {n} ranks", flush=True)
    last = ""
    for epoch in range(first, args.epochs):
        total = fw.zeros((), device=device)
        for i, (x, y) in enumerate(progress(loader, desc=f"epoch {epoch + 1}", disable=rank > 0)):
            if os.environ.get("FAIL_AT") == f"{epoch},{i},{rank}" and not os.environ.get(
                    "TORCHELASTIC_RESTART_COUNT", "0").strip("0"):
                raise RuntimeError("asked to fail here")
            loss = F.cross_entropy(parallel(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        loss_mean = float(dist.mean(total, len(loader)))
        right = accuracy(model, test, device)
        if args.zero:
            optimizer.consolidate_state_dict(to=0)
        if rank == 0:
            checkpoints.save(epoch + 1, epoch=epoch + 1, **parts)
            last = f"epoch {epoch + 1}/{args.epochs}: loss {loss_mean:.4f}, test accuracy {right:.2%}"
            print(last, flush=True)
        dist.barrier()  # nobody begins an epoch whose checkpoint is not written
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zero", action="store_true", help="divide the optimizer's state among the ranks")
    parser.add_argument("--out", type=Path, default=Path("runs/data_parallel"), help="folder for checkpoints")
    parser.add_argument("--ranks", type=int, help="start so many ranks from here, without a launcher")
    parser.add_argument("--device", default="cpu", help="cuda: each rank takes the GPU of its number")
    parser.add_argument("--quick", action="store_true", help="three epochs, in seconds")
    args = parser.parse_args()
    if args.quick:
        args.epochs = 3
    args.out.mkdir(parents=True, exist_ok=True)
    dist.launch(train, args.ranks, args)  # without a number: as one of the ranks that the launcher started


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"data_parallel.py: {error}")
