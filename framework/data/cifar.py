"""CIFAR-10 and CIFAR-100, from the binary files as they are distributed (never from the pickled ones)."""

import os
from collections.abc import Sequence

import numpy as np

from .datasets import LabelledImages
from .download import fetch

_PIXELS = 3 * 32 * 32


class CIFAR10(LabelledImages):
    """Small colour pictures of ten kinds: samples (image, label), the image a uint8 tensor (3, 32, 32).

    root: the directory of the .bin files (also ``root/cifar-10-batches-bin``), any number of training
    files. train: data_batch_*.bin, else test_batch.bin. transform(image) and target_transform(label)
    make what the sample holds. download: fetch the archive into ``root`` if the files are not there.
    ``data`` and ``targets`` are all images and labels as tensors.

    Raises FileNotFoundError naming the files, ValueError for a file that is not what its name says.

    A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
    """

    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    _folder = "cifar-10-batches-bin"
    _files = {True: [f"data_batch_{i}.bin" for i in range(1, 6)], False: ["test_batch.bin"]}
    _more: tuple[str, ...] = ()
    _label_bytes = 1
    _archive = ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530")

    def _paths(self, names: Sequence[str]) -> list[str]:
        places = [os.path.join(folder, name) for name in names
                  for folder in (self.root, os.path.join(self.root, self._folder))]
        return [path for path in places if os.path.isfile(path)]

    def _found(self) -> bool:
        return bool(self._paths(self._files[self.train]))

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        paths = self._paths(self._files[self.train])
        if not paths:
            raise FileNotFoundError(
                f"{self._kind}: there is none of {', '.join(self._files[self.train])} in {self.root!r} (nor "
                f"in its {self._folder}/); give the directory of the binary version, or download=True")
        records = np.concatenate([self._records(path) for path in paths])
        images = np.ascontiguousarray(records[:, self._label_bytes:]).reshape(-1, 3, 32, 32)
        return images, records[:, self._label_bytes - 1]

    def _records(self, path: str) -> np.ndarray:
        flat = np.fromfile(path, np.uint8)
        size = self._label_bytes + _PIXELS
        if not flat.size or flat.size % size:
            raise ValueError(f"{self._kind}: {path} has {flat.size} bytes, wanted a multiple of {size} (a "
                             f"label and 3x32x32 pixels); the file is cut short or something else")
        return flat.reshape(-1, size)

    def _download(self) -> None:
        import tarfile
        url, checksum = self._archive
        archive = os.path.join(self.root, url.rpartition("/")[2])
        fetch([url], archive, checksum)
        folder = os.path.join(self.root, self._folder)
        os.makedirs(folder, exist_ok=True)
        with tarfile.open(archive) as tar:
            for name in (*self._files[True], *self._files[False], *self._more):
                source = tar.extractfile(f"{self._folder}/{name}")  # these members only, under our names
                assert source is not None
                with open(os.path.join(folder, name), "wb") as out:
                    out.write(source.read())


class CIFAR100(CIFAR10):
    """Small colour pictures of a hundred kinds, labelled by the fine ones; see ``CIFAR10``.

    ``classes`` are the names in fine_label_names.txt, or numbers where that file is not there.
    """

    classes = [str(i) for i in range(100)]
    _folder = "cifar-100-binary"
    _files = {True: ["train.bin"], False: ["test.bin"]}
    _more = ("fine_label_names.txt",)
    _label_bytes = 2  # the coarse one, then the fine one
    _archive = ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                "md5:03b5dce01913d631647c71ecec9e9cb8")

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        for path in self._paths(self._more):
            with open(path, encoding="utf-8") as file:
                self.classes = file.read().split()
        return super()._read()
