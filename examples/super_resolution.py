"""Super-resolution: a network learns from pieces of a photo to draw its other pieces at twice the resolution.

    python examples/super_resolution.py --out runs/photo            # a picture of what it draws
    python examples/super_resolution.py --data photo.jpg            # your own photo

The photo is cut into tiles: 70 % to learn from, 15 % to choose settings by, 15 % that nothing was chosen by
and that only ``--final`` looks at.

Source: Shi et al., Real-time single image and video super-resolution using an efficient sub-pixel
convolutional neural network, CVPR 2016. The photo is scikit-learn's picture of a temple in China.
"""

import argparse
from pathlib import Path

import numpy as np
from pictures import draw_sheet
from PIL import Image
from sklearn.datasets import load_sample_image

import framework as fw
from framework import nn
from framework.utils.training import progress

TILE = 32  # pixels of the reduced photo


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


def parts(rows: int, columns: int) -> list[list[tuple[int, int]]]:
    """The corners of the tiles to learn from, to choose by, and for the end: the same for every seed."""
    tiles = [(i * TILE, j * TILE) for i in range(rows // TILE) for j in range(columns // TILE)]
    # of NumPy, whatever this package draws: the figures are for these tiles
    source = np.random.Generator(np.random.Philox(key=np.zeros(2, np.uint64)))
    order = source.permutation(len(tiles)).tolist()
    ends = len(tiles) * 70 // 100, len(tiles) * 85 // 100
    return [[tiles[i] for i in order[a:b]] for a, b in ((0, ends[0]), ends, (ends[1], len(tiles)))]


def cut(image: fw.Tensor, tiles: list[tuple[int, int]], scale: int, size: int = 32) -> fw.Tensor:
    """The tiles of an image (3, H, W) as a batch, ``scale`` times as large as their corners say."""
    return fw.stack([image[:, scale * i:scale * (i + size), scale * j:scale * (j + size)] for i, j in tiles])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a photo; default: a temple in China")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture: reduced, cubic, drawn, real")
    parser.add_argument("--final", action="store_true", help="also look at the tiles kept for the end")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few steps, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    photo = load_sample_image("china.jpg")
    if args.data is not None:
        photo = np.asarray(Image.open(args.data).convert("RGB"))
    sharp = fw.tensor(photo).permute(2, 0, 1).float().div(255).to(args.device)
    sharp = sharp[:, :sharp.shape[1] // 2 * 2, :sharp.shape[2] // 2 * 2]
    small = nn.functional.avg_pool2d(sharp[None], 2)[0]
    learn, choose, last = parts(*small.shape[1:])
    width, steps = (12, 200) if args.quick else (args.width, args.steps)
    model = SubPixel(width).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=args.lr)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps)
    with progress(range(steps)) as bar:
        for _ in bar:
            chosen = [learn[i] for i in fw.randint(0, len(learn), (8,)).tolist()]
            places = [(i + di, j + dj) for (i, j), (di, dj) in
                      zip(chosen, fw.randint(0, TILE - 23, (8, 2)).tolist())]
            x, y = cut(small, places, 1, 24), cut(sharp, places, 2, 24)
            if fw.rand(()) < 0.5:
                x, y = x.flip(3), y.flip(3)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.show(loss=loss.item())
    with fw.no_grad():  # the whole photo, so that tiles have no edges
        before, after = (f(small[None])[0] for f in (enlarged, model))
    if args.out:
        corners = choose[:4]
        rows = [nn.functional.interpolate(cut(small, corners, 1), scale_factor=2),
                *(cut(image, corners, 2) for image in (before, after, sharp))]
        draw_sheet(args.out / "tiles.png", fw.cat(rows), columns=4, scale=2)
    for name, tiles in [("validation", choose), *([("held-out", last)] if args.final else [])]:
        plain, drawn = (decibels(cut(x, tiles, 2), cut(sharp, tiles, 2)) for x in (before, after))
        print(f"{drawn:.2f} dB on the {name} tiles, {drawn - plain:.2f} dB above cubic interpolation")


if __name__ == "__main__":
    main()
