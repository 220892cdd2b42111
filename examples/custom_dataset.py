"""A Dataset and a Sampler of one's own: pictures made as they are asked for, in batches of equal widths.

Works with any number of worker processes (--workers 2) and gives the same batches with each.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from pictures import draw_sheet
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.data import DataLoader, Dataset, Sampler


class Stripes(Dataset):
    """Noisy pictures of stripes, lying (0) or standing (1), 16 high and of different widths."""

    def __init__(self, count: int, seed: int) -> None:
        self.seed = seed
        self.widths = fw.randint(12, 20, (count,), generator=fw.Generator().manual_seed(seed)).tolist()

    def __len__(self) -> int:
        return len(self.widths)

    def __getitem__(self, i: int) -> tuple[fw.Tensor, int]:
        generator = fw.Generator().manual_seed(self.seed * 1_000_003 + i)  # the same picture every time
        standing = int(fw.randint(0, 2, (), generator=generator))
        line = fw.arange(16)[:, None] if not standing else fw.arange(self.widths[i])[None, :]
        pattern = ((line + fw.randint(0, 4, (), generator=generator)) // 2 % 2).float()
        return (pattern + fw.randn(16, self.widths[i], generator=generator))[None], standing


class SameWidth(Sampler):
    """Batches of indices of pictures of one width, in an order that changes with the epoch."""

    def __init__(self, widths: list[int], batch_size: int, seed: int = 0) -> None:
        self.widths, self.batch_size, self.seed, self.epoch = widths, batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by the loader."""
        self.epoch = epoch

    def batches(self) -> list[list[int]]:
        generator = fw.Generator().manual_seed(self.seed + self.epoch)
        groups: dict[int, list[int]] = {}
        for i in fw.randperm(len(self.widths), generator=generator).tolist():
            groups.setdefault(self.widths[i], []).append(i)
        found = [group[k:k + self.batch_size] for group in groups.values()
                 for k in range(0, len(group), self.batch_size)]
        return [found[i] for i in fw.randperm(len(found), generator=generator).tolist()]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches())

    def __len__(self) -> int:
        return len(self.batches())


class Net(nn.Module):
    """One convolution and an average over all places, so that any width will do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(1, 16, 5), nn.Linear(16, 2)

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        return self.out(self.conv(x).relu().mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of stripes")
    parser.add_argument("--quick", action="store_true", help="fewer pictures, in seconds")
    args = parser.parse_args()
    count, epochs = (400, 3) if args.quick else (args.count, args.epochs)
    fw.manual_seed(args.seed)
    train, test = Stripes(count, args.seed), Stripes(200, args.seed + 1)
    loader = DataLoader(train, batch_sampler=SameWidth(train.widths, 32), num_workers=args.workers)
    model = Net().to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for x, y in tqdm(loader, desc=f"epoch {epoch + 1}/{epochs}"):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(args.device)), y.to(args.device)).backward()
            optimizer.step()
    with fw.no_grad():
        right = sum(int((model(x.to(args.device)).argmax(1).cpu() == y).sum()) for x, y in
                    DataLoader(test, batch_sampler=SameWidth(test.widths, 50)))
    if args.out:
        width = min(test.widths)
        images = fw.stack([test[i][0][0, :, :width] for i in range(24)])
        draw_sheet(args.out / "stripes.png", images / 4 + 0.4, columns=12)
    print(f"test accuracy {right / len(test):.1%}")


if __name__ == "__main__":
    main()
