"""Several processes train one model on MNIST at once, without waiting for each other (Hogwild).

    python examples/hogwild.py ../shared/data/mnist
    python examples/hogwild.py ../shared/data/mnist --processes 4 --epochs 3

It needs the folder of MNIST's four idx files (gzipped or not). The parameters lie in shared memory: each
process computes gradients on its own images and adds its steps to them. Steps are lost now and then
when two processes write the same number at the same time, and it learns all the same. F. Niu et al.,
"Hogwild!: a lock-free approach to parallelizing stochastic gradient descent", 2011.
"""

import argparse
import sys
import time

import framework as fw
import framework.multiprocessing as mp
import framework.nn as nn
import framework.nn.functional as F
from framework.data import MNIST, DataLoader, TensorDataset


def load_data(folder: str, train: bool) -> TensorDataset:
    """Images as float tensors [N, 784] in [0, 1], with their labels."""
    digits = MNIST(folder, train=train)
    return TensorDataset(digits.data.float().flatten(1) / 255, digits.targets)


def train(rank: int, args: argparse.Namespace, model: nn.Module, images: fw.Tensor,
          labels: fw.Tensor) -> None:
    """What each process does: its share of the images, in its own order."""
    fw.set_num_threads(1)  # the processes share the cores among them
    fw.manual_seed(args.seed + rank)
    order = fw.randperm(len(images), generator=fw.Generator().manual_seed(args.seed))[rank::args.processes]
    share = TensorDataset(images[order], labels[order])
    optimizer = fw.optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in DataLoader(share, batch_size=args.batch_size, shuffle=True):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"process {rank}, epoch {epoch + 1}/{args.epochs}: loss {total / len(share):.4f}", flush=True)


@fw.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The part of the images that the model names right."""
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(data, batch_size=1000))
    return right / len(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mnist", metavar="DIR", help="folder of the four MNIST idx files (.gz or not)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one epoch on the first 6000 images")
    args = parser.parse_args()

    fw.manual_seed(args.seed)
    data, test = load_data(args.mnist, train=True), load_data(args.mnist, train=False)
    if args.quick:
        args.epochs, data = 1, TensorDataset(*data[:6000])
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).share_memory()
    start = time.perf_counter()
    mp.spawn(train, (args, model, *data.tensors), nprocs=args.processes)
    seconds = time.perf_counter() - start
    print(f"test accuracy {accuracy(model, test):.2%} after {seconds:.1f} s in {args.processes} processes")


if __name__ == "__main__":
    try:
        main()
    except (fw.errors.FrameworkError, FileNotFoundError) as error:
        sys.exit(f"hogwild.py: {error}")
