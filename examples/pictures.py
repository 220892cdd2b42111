"""The pictures of the examples, drawn with pillow: sheets of images, points of the plane, digits, curves."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import framework as fw

_RIGHT, _WRONG, _INK, _GRID = (20, 120, 60), (200, 30, 40), (40, 40, 40), (220, 220, 220)


def draw_sheet(path: Path, images: fw.Tensor, columns: int, scale: int = 4) -> None:
    """Images (N, H, W) or (N, 3, H, W) of values in [0, 1], side by side, ``scale`` times as large."""
    images = images.detach().cpu().float().clamp(0, 1)
    images = images[:, None].expand(-1, 3, -1, -1) if images.dim() == 3 else images
    images = fw.nn.functional.pad(images, [1, 1, 1, 1], value=1.0)
    rows, (h, w) = -(-len(images) // columns), images.shape[2:]
    blank = fw.ones(rows * columns - len(images), 3, h, w)
    sheet = fw.cat([images, blank]).reshape(rows, columns, 3, h, w).permute(0, 3, 1, 4, 2)
    pixels = (sheet.reshape(rows * h, columns * w, 3) * 255).round().to(fw.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(pixels.numpy())
    picture.resize((columns * w * scale, rows * h * scale), Image.Resampling.NEAREST).save(path)


def draw_points(path: Path, joined: bool = False, **groups: fw.Tensor) -> None:
    """Points (N, 2) of each group, in a colour of its own and named by its keyword; as a line if joined."""
    groups = {name: points.detach().cpu() for name, points in groups.items()}
    every = fw.cat(list(groups.values()))
    low, span = every.amin(0), float((every.amax(0) - every.amin(0)).max())
    picture = Image.new("RGB", (420, 420), "white")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default()
    for i, ((name, points), colour) in enumerate(zip(groups.items(), ((150, 150, 150), _WRONG, _RIGHT))):
        places = [(20 + 380 * x, 400 - 380 * y) for x, y in ((points - low) / span).tolist()]
        if joined:
            pen.line(places, fill=colour, width=2)
        for x, y in [] if joined else places:
            pen.ellipse((x - 1, y - 1, x + 1, y + 1), fill=colour)
        pen.text((24, 8 + 14 * i), name, fill=colour, font=font)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)


def draw_digits(images: fw.Tensor, guesses: fw.Tensor, truth: fw.Tensor, path: Path,
                columns: int = 12, rows: int = 8) -> None:
    """A sheet of test digits with the predictions under them; wrong ones come first, in red."""
    wrong = guesses != truth
    order = fw.cat([wrong.nonzero().flatten(), (~wrong).nonzero().flatten()])[:columns * rows].tolist()
    cell, tile = 64, 48
    sheet = Image.new("RGB", (columns * cell, rows * (cell + 12)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default()
    for place, i in enumerate(order):
        left, top = place % columns * cell + 8, place // columns * (cell + 12) + 6
        gray = (255 - images[i, 0] * 255).clamp(0, 255).to(fw.uint8).numpy()
        sheet.paste(Image.fromarray(gray).resize((tile, tile), Image.Resampling.NEAREST), (left, top))
        good = bool(guesses[i] == truth[i])
        text = f"{int(guesses[i])}" if good else f"{int(guesses[i])}, not {int(truth[i])}"
        if not good:
            pen.rectangle((left - 3, top - 3, left + tile + 2, top + tile + 2), outline=_WRONG, width=3)
        pen.text((left, top + tile + 4), text, fill=_RIGHT if good else _WRONG, font=font)
    sheet.save(path)


def draw_curves(losses: list[float], accuracies: list[float], path: Path) -> None:
    """Training loss and test accuracy by epoch, side by side."""
    picture = Image.new("RGB", (800, 320), "white")
    for left, title, values in ((0, "training loss", losses), (400, "test accuracy", accuracies)):
        _plot(ImageDraw.Draw(picture), left, title, values)
    picture.save(path)


def _plot(pen: ImageDraw.ImageDraw, left: int, title: str, values: list[float]) -> None:
    font = ImageFont.load_default()
    x0, x1, y0, y1 = left + 60, left + 380, 280, 40
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    low, high = low - 0.05 * span, high + 0.05 * span

    def at(i: int, v: float) -> tuple[float, float]:
        return (x0 + (x1 - x0) * (i / max(len(values) - 1, 1)), y0 + (y1 - y0) * (v - low) / (high - low))

    pen.text((x0, 14), title, fill=_INK, font=font)
    for k in range(5):
        v = low + (high - low) * k / 4
        y = at(0, v)[1]
        pen.line((x0, y, x1, y), fill=_GRID)
        pen.text((left + 12, y - 6), f"{v:.3f}", fill=_INK, font=font)
    pen.text((x0, y0 + 10), "epoch 1", fill=_INK, font=font)
    pen.text((x1 - 20, y0 + 10), str(len(values)), fill=_INK, font=font)
    points = [at(i, v) for i, v in enumerate(values)]
    pen.line(points, fill=_RIGHT, width=2)
    for x, y in points:
        pen.ellipse((x - 3, y - 3, x + 3, y + 3), fill=_RIGHT)
