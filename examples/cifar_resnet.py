"""Train a residual network on CIFAR-10's images, with augmentation, a schedule, and exact resume.

    python examples/cifar_resnet.py --data ../shared/data/cifar10-subset
    python examples/cifar_resnet.py --data ... --resume      # go on after an interruption
"""

import argparse
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.data import DataLoader, transforms
from framework.data.cifar import CIFAR10
from framework.models import ResNet
from framework.models.resnet import BasicBlock

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class SmallResNet(ResNet):
    """A ResNet-10 for images of 32x32: one block in each of four stages, a quarter as wide as is usual."""

    def __init__(self, width: int = 16) -> None:
        super().__init__(BasicBlock, [1, 1, 1, 1], num_classes=10, small_images=True)
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for i in range(4):
            setattr(self, f"layer{i + 1}", self._stage(BasicBlock, inputs, width << i, 1, 1 if i == 0 else 2))
            inputs = width << i
        self.fc = nn.Linear(inputs, 10)


@fw.no_grad()
def accuracy(model: nn.Module, loader: DataLoader, device: str) -> float:
    model.eval()
    right = sum(int((model(x.to(device)).argmax(1).cpu() == y).sum()) for x, y in loader)
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of data_batch_*.bin and test_batch.bin")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/cifar"), help="folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few images, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    plain = [transforms.ConvertImageDtype(fw.float32), transforms.Normalize(MEAN, STD)]
    varied = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *plain]
    train = CIFAR10(args.data, train=True, transform=transforms.Compose(varied))
    test = CIFAR10(args.data, train=False, transform=transforms.Compose(plain))
    epochs = args.epochs
    if args.quick:
        epochs, args.width, args.lr = 2, 8, 0.05
        train, test = fw.data.Subset(train, range(1000)), fw.data.Subset(test, range(300))
    model = SmallResNet(args.width).to(args.device)
    optimizer = fw.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    loader = DataLoader(train, args.batch_size, shuffle=True, num_workers=args.workers)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=epochs * len(loader))
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": loader}
    checkpoints, first = fw.io.Checkpointer(args.out, keep=1), 0
    if args.resume and (found := checkpoints.resume(**parts)) is not None:
        first = found["epoch"]
    for epoch in range(first, epochs):
        model.train()
        for x, y in (bar := tqdm(loader, desc=f"epoch {epoch + 1}/{epochs}")):
            logits = model(x.to(args.device))
            loss = nn.functional.cross_entropy(logits, y.to(args.device), label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        checkpoints.save(epoch + 1, epoch=epoch + 1, **parts)
    found = accuracy(model, DataLoader(test, 256), args.device)
    print(f"test accuracy {found:.1%} on {len(test)} images it never saw")


if __name__ == "__main__":
    main()
