"""Two networks that other examples train, as files for programs in C and C++ that need no Python.

    python examples/without_python.py --photos ../shared/data/hymenoptera --text letters.txt --out runs/c
    cd runs/c && ./classify photos.fwk photo.ppm classes.txt
    ./generate letters.fwk letters.txt "The " 60 64

``transfer.py`` learns the classes of a folder of photos, ``gpt.py`` to write like a text; both become
model files (``runtime.export``), which are written only if the library gives the model's bits with them.
The programs are ``classify.c`` and ``generate.cpp`` beside the header ``framework.h`` in
``framework/_native/library``; they are compiled here where there are compilers. What the models say in Python
is printed, to compare.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from transfer import MEAN, STD

import framework as fw
from framework import _native, nn
from framework.io import Checkpointer
from framework.models import GPT2, resnet18

HERE = Path(__file__).resolve().parent
LIBRARY = Path(_native.__file__).parent / "library"


class Classifier(nn.Module):
    """Photos of numbers in [0, 1] to a probability for each class."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", fw.tensor(MEAN).reshape(3, 1, 1))
        self.register_buffer("std", fw.tensor(STD).reshape(3, 1, 1))

    def forward(self, photo: fw.Tensor) -> fw.Tensor:
        return self.network((photo - self.mean) / self.std).softmax(1)


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True)


def middle(photo: np.ndarray, size: int) -> fw.Tensor:
    """The middle of a photo as classify.c cuts it out: the nearest pixel for each of the input."""
    height, width, _ = photo.shape
    side = min(height, width)
    rows, top, left = np.arange(size) * side // size, (height - side) // 2, (width - side) // 2
    cut = photo[top + rows][:, left + rows].astype(np.float32) / np.float32(255)
    return fw.from_numpy(np.ascontiguousarray(cut.transpose(2, 0, 1)[None]))


def photos(data: Path, out: Path, quick: bool) -> None:
    """Train the classifier, write it, its classes and a photo that it has not seen; show what it says."""
    checkpoint = out / "photos.ckpt"
    run(sys.executable, HERE / "transfer.py", "--data", data, "--out", checkpoint, *["--quick"] * quick)
    saved, size = fw.load(checkpoint), 32 if quick else 64
    network = resnet18(num_classes=len(saved["classes"]))
    network.load_state_dict(saved["model"])
    model = Classifier(network).eval()
    print(fw.runtime.export(model, fw.zeros(1, 3, size, size), out / "photos.fwk", input_names=["photo"]))
    (out / "classes.txt").write_text("".join(f"{name}\n" for name in saved["classes"]))
    pixels = np.array(Image.open(sorted((data / "val").glob("*/*.jpg"))[0]).convert("RGB"))
    (out / "photo.ppm").write_bytes(b"P6 %d %d 255\n" % pixels.shape[1::-1] + pixels.tobytes())
    with fw.no_grad():
        scores = model(middle(pixels, size)).numpy()[0]
    for i in np.argsort(-scores, kind="stable")[:5]:
        print(f"photo: {saved['classes'][i]} {float(scores[i]).hex()}")


def letters(text: Path, out: Path, quick: bool) -> None:
    """Train the GPT, write it and its alphabet; show what it writes, the likeliest letter each time."""
    run(sys.executable, HERE / "gpt.py", "--text", text, "--out", out / "gpt", *["--quick"] * quick)
    alphabet = sorted(set(text.read_text(encoding="utf-8")))
    if not all(letter.isascii() for letter in alphabet):
        sys.exit("without_python.py: generate.cpp takes texts of ASCII letters")
    width, layers, context = (32, 2, 32) if quick else (128, 4, 64)
    model = GPT2(vocabulary=len(alphabet), context=context, layers=layers, width=width, heads=4, dropout=0.0)
    Checkpointer(out / "gpt").resume(model=model)
    example = fw.zeros(1, context, dtype=fw.int64)
    print(fw.runtime.export(model.eval(), example, out / "letters.fwk", input_names=["letters"],
                            dynamic_axes={"letters": {1: "length"}}))
    (out / "letters.txt").write_text("".join(alphabet))
    written = [alphabet.index(letter) for letter in "The "]
    with fw.no_grad():
        for _ in range(60):
            written.append(int(model(fw.tensor([written[-context:]]))[0, -1].argmax()))
    print(f"letters: {''.join(alphabet[i] for i in written)!r}")


def programs(out: Path) -> None:
    """The programs in C and C++, linked to the library beside the extension."""
    where = Path(_native.module.__file__).parent
    for compiler, standard, source in (("cc", "c99", "classify.c"), ("c++", "c++17", "generate.cpp")):
        if shutil.which(compiler) is None:
            print(f"there is no {compiler}: {source} is not compiled")
            continue
        run(compiler, f"-std={standard}", LIBRARY / source, f"-I{LIBRARY}", f"-L{where}", "-lframework",
            f"-Wl,-rpath,{where}", "-o", out / source.partition(".")[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, help="folder with train/CLASS/*.jpg and val/CLASS/*.jpg")
    parser.add_argument("--text", type=Path, help="a text of ASCII letters")
    parser.add_argument("--out", type=Path, default=Path("runs/without_python"))
    parser.add_argument("--quick", action="store_true", help="small networks, in seconds")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    programs(args.out)
    if args.photos:
        photos(args.photos, args.out, args.quick)
    if args.text:
        letters(args.text, args.out, args.quick)


if __name__ == "__main__":
    main()
