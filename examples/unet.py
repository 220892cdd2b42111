"""A U-Net finds discs in noisy pictures, pixel by pixel."""

import argparse
from pathlib import Path

from pictures import draw_sheet
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.models import UNet


def pictures(count: int, size: int) -> tuple[fw.Tensor, fw.Tensor]:
    """Noisy pictures (N, 1, S, S) of three discs and three bars each, and masks (N, S, S) of the discs."""
    rows, columns = fw.arange(size).float()[:, None], fw.arange(size).float()[None, :]
    x, masks = fw.zeros(count, size, size), fw.zeros(count, size, size, dtype=fw.bool)
    for i in range(count):
        for _ in range(3):
            top, left, half = fw.rand(()) * size, fw.rand(()) * size, 2 + fw.rand(()) * size / 8
            x[i][((rows - top).abs() < half) & ((columns - left).abs() < half)] = 1.0
            y, z, radius = fw.rand(()) * size, fw.rand(()) * size, 2 + fw.rand(()) * size / 6
            disc = (rows - y) ** 2 + (columns - z) ** 2 < radius ** 2
            x[i][disc] = 1.0
            masks[i] |= disc
    return (x + 0.3 * fw.randn(x.shape))[:, None], masks


def overlap(logits: fw.Tensor, masks: fw.Tensor) -> float:
    """Intersection over union of the pixels found and the pixels wanted."""
    found = logits[:, 1] > logits[:, 0]
    return float((found & masks).sum() / (found | masks).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for pictures, masks and what was found")
    parser.add_argument("--quick", action="store_true", help="smaller pictures, in seconds")
    args = parser.parse_args()
    size, width, count, epochs = (24, 8, 192, 5) if args.quick else (args.size, args.width, 800, args.epochs)
    fw.manual_seed(args.seed)
    train, (x, masks) = fw.data.TensorDataset(*pictures(count, size)), pictures(64, size)
    model = UNet(1, 2, width=width, depth=3).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=3e-3)
    loader = fw.data.DataLoader(train, batch_size=16, shuffle=True)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        bar = tqdm(loader, desc=f"epoch {epoch + 1}/{epochs}")
        for images, wanted in bar:
            loss = nn.functional.cross_entropy(model(images.to(args.device)), wanted.long().to(args.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
    model.eval()
    with fw.no_grad():
        logits = model(x.to(args.device)).cpu()
    if args.out:
        rows = fw.cat([x[:8, 0] / 2 + 0.25, masks[:8].float(), logits[:8].softmax(1)[:, 1]])
        draw_sheet(args.out / "discs.png", rows, columns=8, scale=2)
    print(f"intersection over union {overlap(logits, masks):.3f} on pictures it never saw")


if __name__ == "__main__":
    main()
