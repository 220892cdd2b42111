"""The small GPT of gpt.py in several processes, its optimizer's state, or all of it, divided among them.

    python examples/gpt_parallel.py --ranks 2                      # the optimizer's state is divided
    python examples/gpt_parallel.py --ranks 2 --fully-sharded      # parameters and gradients, too
    python -m framework.distributed.run -n 4 examples/gpt_parallel.py
    python -m framework.distributed.run -n 2 --backend nccl examples/gpt_parallel.py --device cuda

Every rank learns from its part of each batch; the result is that of the whole batch in one process. The
last line says how many bytes of parameters and optimizer state a rank has to itself.
"""

import argparse
import math

from gpt import batch, held_out, load_text

import framework as fw
import framework.distributed as dist
import framework.nn.functional as F
from framework.models import GPT2
from framework.nn.parallel import DistributedDataParallel
from framework.utils.training import progress


def state_bytes(optimizer: fw.optim.Optimizer) -> int:
    """What the optimizer keeps on this rank."""
    local = getattr(optimizer, "optim", optimizer)
    return sum(v.nbytes for state in local.state.values() for v in state.values() if isinstance(v, fw.Tensor))


def train(args: argparse.Namespace) -> None:
    """What each rank does."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if args.batch_size % n:
        raise ValueError(f"--batch-size {args.batch_size} must be a multiple of the {n} ranks")
    device = f"cuda:{dist.get_node_local_rank(0)}" if args.device == "cuda" else args.device
    text = load_text(args.text)
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    data = fw.tensor([number[letter] for letter in text])
    cut = len(data) * 9 // 10
    fw.manual_seed(args.seed)  # the same model, and the same batches, of which each rank takes its part
    model = GPT2(vocabulary=len(letters), context=args.length, layers=args.layers, width=args.width, heads=4,
                 dropout=0.0).to(device)
    if args.fully_sharded:
        forward = dist.fsdp.fully_shard(model, units=list(model.transformer.h))
        optimizer: fw.optim.Optimizer = fw.optim.AdamW(model.parameters(), lr=args.lr)
    else:
        forward = DistributedDataParallel(model)
        optimizer = dist.optim.ZeroRedundancyOptimizer(model.parameters(), fw.optim.AdamW, lr=args.lr)
    share = args.batch_size // n
    for step in progress(range(args.steps), disable=rank > 0):
        x, y = batch(data[:cut], args.batch_size, args.length)
        mine = slice(rank * share, (rank + 1) * share)
        loss = F.cross_entropy(forward(x[mine].to(device)).flatten(0, 1), y[mine].to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            mean = float(dist.mean(loss.detach(), 1))
            if rank == 0:
                print(f"step {step + 1}: loss {mean:.3f}", flush=True)
    own = sum(p.nbytes for p in model.parameters()), state_bytes(optimizer)
    loss = held_out(model, data[cut:].to(device), args.length)  # every rank: a sharded forward is a meeting
    if rank == 0:
        print(f"held-out loss {loss:.4f} nats per letter (guessing evenly: {math.log(len(letters)):.3f}); "
              f"a rank has {own[0]} bytes of parameters and {own[1]} of optimizer state", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", metavar="FILE", help="a text to learn from")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--length", type=int, default=32, help="letters that it looks back on")
    parser.add_argument("--batch-size", type=int, default=16, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fully-sharded", action="store_true", help="divide parameters and gradients, too")
    parser.add_argument("--ranks", type=int, help="start so many ranks from here, without a launcher")
    parser.add_argument("--device", default="cpu", help="cuda: each rank takes the GPU of its number")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.width = 40, 32
    dist.launch(train, args.ranks, args)  # without a number: as one of the ranks that the launcher started


if __name__ == "__main__":
    main()
