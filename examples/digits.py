"""Train a small convolutional network on handwritten digits; a loop to read and copy.

    python examples/digits.py                      # 8x8 digits that lie beside this file, seconds
    python examples/digits.py --mnist ../shared/data/mnist --epochs 2
    python examples/digits.py --resume             # go on exactly where the last run stopped

Every epoch ends with a checkpoint of everything the run depends on; Ctrl-C makes one at once.
"""

import argparse
import shlex
import signal
import sys
from pathlib import Path

import numpy as np
from pictures import draw_curves, draw_digits
from tqdm import tqdm

import framework as fw
import framework.nn as nn
import framework.nn.functional as F
from framework.data import MNIST, DataLoader, TensorDataset


class Net(nn.Module):
    """Two convolutions, two poolings, one linear layer; ``size`` is the width of the square images."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.drop = nn.Dropout(0.25)
        self.out = nn.Linear(32 * (size // 4) ** 2, 10)

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.out(self.drop(x.flatten(1)))


def load_data(mnist: str | None) -> tuple[TensorDataset, TensorDataset]:
    """Training and test images as float tensors [N, 1, H, W] in [0, 1], with their labels."""
    if mnist is not None:
        sets = [MNIST(mnist, train=train) for train in (True, False)]
        pairs = [(s.data.float() / 255, s.targets.long()) for s in sets]
    else:
        with np.load(Path(__file__).with_name("digits.npz")) as file:
            x, y = fw.tensor(file["images"]).float() / 16, fw.tensor(file["labels"]).long()
        order = fw.randperm(len(x), generator=fw.Generator().manual_seed(0))
        x, y = x[order], y[order]
        pairs = [(x[360:], y[360:]), (x[:360], y[:360])]
    (x, y), (test_x, test_y) = ((images.unsqueeze(1), labels) for images, labels in pairs)
    return TensorDataset(x, y), TensorDataset(test_x, test_y)


@fw.no_grad()
def predict(model: Net, data: TensorDataset, device: str) -> fw.Tensor:
    """The most likely digit of every image."""
    model.eval()
    found = [model(x.to(device)).argmax(1).cpu() for x, _ in DataLoader(data, batch_size=500)]
    return fw.cat(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", metavar="DIR", help="folder of the four MNIST idx files (.gz or not)")
    parser.add_argument("--epochs", type=int, help="default: 15, or 2 with --mnist")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, default=Path("runs/digits"),
                        help="folder for checkpoints and pictures")
    parser.add_argument("--quick", action="store_true", help="few epochs, in seconds")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    args = parser.parse_args()
    epochs = args.epochs or (3 if args.quick else 2 if args.mnist else 15)
    args.out.mkdir(parents=True, exist_ok=True)

    fw.manual_seed(args.seed)
    train, test = load_data(args.mnist)
    model = Net(train.tensors[0].shape[-1]).to(args.device)
    optimizer = fw.optim.Adam(model.named_parameters(), lr=args.lr)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    # what the loop has gathered: finished epochs, and sums over the epoch that is under way
    run = {"step": 0, "epoch": 0, "loss": 0.0, "right": 0, "seen": 0, "losses": [], "accuracies": []}
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    checkpoints = fw.io.Checkpointer(args.out / "checkpoints", keep=2)

    if args.resume:
        found = checkpoints.resume(**parts)
        if found is None:
            sys.exit(f"digits.py: there is no checkpoint in {args.out}/checkpoints; run without --resume")
        run.update(found["run"])

    stop = []  # Ctrl-C is answered between two steps, so that what is saved is whole
    signal.signal(signal.SIGINT, lambda *_: stop.append(True))
    while run["epoch"] < epochs:
        model.train()
        done = run["seen"] // args.batch_size
        bar = tqdm(loader, desc=f"epoch {run['epoch'] + 1}/{epochs}", initial=done, total=len(loader))
        for x, y in bar:
            x, y = x.to(args.device), y.to(args.device)
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run["loss"] += loss.item() * len(x)
            run["right"] += int((logits.argmax(1) == y).sum())
            run["seen"] += len(x)
            run["step"] += 1
            bar.set_postfix(loss=f"{run['loss'] / run['seen']:.4f}", acc=f"{run['right'] / run['seen']:.2%}",
                            refresh=False)
            if stop:
                bar.close()
                checkpoints.save(run["step"], run=run, **parts)
                again = shlex.join(sys.argv) + " --resume" * (not args.resume)
                print(f"\ninterrupted; go on with: python {again}")
                sys.exit(130)
        run["losses"].append(run["loss"] / run["seen"])
        run["accuracies"].append(float((predict(model, test, args.device) == test.tensors[1]).float().mean()))
        run.update(epoch=run["epoch"] + 1, loss=0.0, right=0, seen=0)
        checkpoints.save(run["step"], run=run, **parts)

    guesses, truth = predict(model, test, args.device), test.tensors[1]
    accuracy = float((guesses == truth).float().mean())
    draw_digits(test.tensors[0], guesses, truth, args.out / "digits.png")
    draw_curves(run["losses"], run["accuracies"], args.out / "curves.png")
    print(f"checkpoints and pictures are in {args.out}/")
    print(f"test accuracy {accuracy:.2%} on {len(truth)} images the training never saw")


if __name__ == "__main__":
    try:
        main()
    except (fw.errors.FrameworkError, FileNotFoundError) as error:
        sys.exit(f"digits.py: {error}")
