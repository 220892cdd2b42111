"""A vision transformer reads handwritten digits, patch by patch.

Source: Dosovitskiy et al., An image is worth 16x16 words, ICLR 2021. The pictures are scikit-learn's (8x8).
"""

import argparse
from pathlib import Path

from sklearn.datasets import load_digits

import framework as fw
from framework import nn
from framework.data import DataLoader, TensorDataset
from framework.io import Checkpointer
from framework.utils.metrics import accuracy, confusion_matrix
from framework.utils.training import progress


class SmallViT(nn.Module):
    """Patches of 2x2 as words, a word for the class before them, and a transformer over all."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.word = nn.Parameter(fw.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * fw.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, "gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        words = self.patches(x).flatten(2).transpose(1, 2)
        words = fw.cat([self.word.expand(len(x), -1, -1), words], 1) + self.places
        return self.head(self.encoder(words)[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/vit"), help="folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few epochs, in seconds")
    args = parser.parse_args()
    width, depth, epochs = (32, 2, 8) if args.quick else (args.width, args.depth, args.epochs)
    fw.manual_seed(args.seed)
    digits = load_digits()
    x = fw.tensor(digits.images, dtype=fw.float32)[:, None] / 8 - 1
    y = fw.tensor(digits.target)
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), 50, shuffle=True)
    model = SmallViT(width, depth).to(args.device)
    optimizer = fw.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * len(train))
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": train}
    checkpoints, first = Checkpointer(args.out, keep=1), 0
    if args.resume and (found := checkpoints.resume(**parts)) is not None:
        first = found["step"]
    for epoch in range(first, epochs):
        model.train()
        with progress(train, desc=f"epoch {epoch + 1}/{epochs}") as bar:
            for images, wanted in bar:
                loss = nn.functional.cross_entropy(model(images.to(args.device)), wanted.to(args.device))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                bar.show(loss=loss.item())
        checkpoints.save(epoch + 1, **parts)
    model.eval()
    with fw.no_grad():
        scores = model(x[1400:].to(args.device)).cpu()
    if not args.quick:
        print(confusion_matrix(scores, y[1400:]))
    print(f"test accuracy {accuracy(scores, y[1400:]):.1%} on {len(scores)} digits it never saw")


if __name__ == "__main__":
    main()
