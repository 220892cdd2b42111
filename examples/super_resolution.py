"""Super-resolution: a network learns from the sides of a photo to draw its middle at twice the resolution.

    python examples/super_resolution.py --out runs/photo            # writes before.png and after.png
    python examples/super_resolution.py --data photo.jpg            # your own photo

Source: Shi et al., Real-time single image and video super-resolution using an efficient sub-pixel
convolutional neural network, CVPR 2016. The photo is scikit-learn's picture of a temple in China.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

import framework as fw
from framework import nn
from framework.utils.training import progress


class SubPixel(nn.Module):
    """What the cubic enlargement lacks: convolutions at low resolution, then pixels from channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, padding=2), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))
        nn.init.zeros_(self.body[4].weight)  # begins as the enlargement alone

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        return enlarged(x) + self.body(x)


def enlarged(x: fw.Tensor) -> fw.Tensor:
    """Twice as large by cubic interpolation, what there is to be better than."""
    return nn.functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)


def decibels(found: fw.Tensor, wanted: fw.Tensor) -> float:
    """Peak signal to noise ratio of values in [0, 1]."""
    return -10 * float((found.clamp(0, 1) - wanted).square().mean().log10())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a photo; default: a temple in China")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for before.png and after.png")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few steps, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    photo = load_sample_image("china.jpg")
    if args.data is not None:
        photo = np.asarray(Image.open(args.data).convert("RGB"))
    sharp = fw.tensor(photo).permute(2, 0, 1).float().div(255).to(args.device)
    sharp = sharp[:, :sharp.shape[1] // 2 * 2, :sharp.shape[2] // 4 * 4]
    small = nn.functional.avg_pool2d(sharp[None], 2)[0]
    first, last = small.shape[2] * 3 // 8, small.shape[2] * 5 // 8
    columns = [*range(first - 24), *range(last, small.shape[2] - 24)]
    width, steps = (12, 200) if args.quick else (args.width, args.steps)
    model = SubPixel(width).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=args.lr)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps)
    with progress(range(steps)) as bar:
        for _ in bar:  # pieces of both sides; the middle is never seen
            rows = fw.randint(0, small.shape[1] - 24, (8,)).tolist()
            places = [(i, columns[j]) for i, j in zip(rows, fw.randint(0, len(columns), (8,)).tolist())]
            x = fw.stack([small[:, i:i + 24, j:j + 24] for i, j in places])
            y = fw.stack([sharp[:, 2 * i:2 * i + 48, 2 * j:2 * j + 48] for i, j in places])
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.show(loss=loss.item())
    with fw.no_grad():
        before, after = (f(small[None, :, :, first:last]) for f in (enlarged, model))
    wanted = sharp[None, :, :, 2 * first:2 * last]
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        for name, image in (("before", before), ("after", after)):
            pixels = (image[0].clamp(0, 1) * 255).round().permute(1, 2, 0)
            Image.fromarray(pixels.to(fw.uint8).cpu().numpy()).save(args.out / f"{name}.png")
    gain = decibels(after, wanted) - decibels(before, wanted)
    print(f"{decibels(after, wanted):.2f} dB on the part it never saw, "
          f"{gain:.2f} dB above cubic interpolation")


if __name__ == "__main__":
    main()
