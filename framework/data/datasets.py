"""Datasets on disk: MNIST and its kin, from the idx files as they are distributed."""

import gzip
import math
import os
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..config.listing import own as _own
from ..tensor import Tensor, wrap
from .dataset import Dataset, rows_of
from .download import fetch

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Any) -> np.ndarray:
    """The array in an idx file, gzipped or not.

    An idx file is two 0 bytes, a type code, the number of dimensions, each size as 4 big-endian bytes,
    and the elements. Raises FileNotFoundError, or ValueError that names what was found and wanted.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "x.idx")
    >>> with open(file, "wb") as f: n = f.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    >>> fw.data.read_idx(file).tolist()
    [5, 7]
    """
    name = os.fsdecode(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"read_idx: there is no file {name!r}")
    with open(name, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        try:
            return _parse(file, name)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"read_idx: {name}: the gzip data is damaged or cut short ({error}); fetch "
                             f"the file again") from None


def _parse(file: Any, name: str) -> np.ndarray:
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES:
        raise ValueError(f"read_idx: {name}: the file begins with {head.hex(' ') or 'nothing'}, wanted "
                         f"00 00, a type code ({', '.join(f'{t:02x}' for t in _TYPES)}) and the number of "
                         f"dimensions; this is no idx file")
    sizes = file.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise ValueError(f"read_idx: {name}: the file ends inside its header of {head[3]} dimensions")
    shape = tuple(int.from_bytes(sizes[i:i + 4], "big") for i in range(0, len(sizes), 4))
    dtype = np.dtype(_TYPES[head[2]])
    wanted = math.prod(shape) * dtype.itemsize
    data = _read_up_to(file, wanted + 1)
    if len(data) != wanted:
        found = f"{len(data)} bytes" if len(data) < wanted else "more"
        raise ValueError(f"read_idx: {name}: the header says {dtype.name}{list(shape)}, which takes "
                         f"{wanted} bytes; found {found}: the file is cut short or damaged")
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _read_up_to(file: Any, count: int) -> bytearray:
    """At most ``count`` bytes; memory grows with what is there, not with what a header claims."""
    data = bytearray()
    while len(data) < count and (piece := file.read(min(1 << 20, count - len(data)))):
        data += piece
    return data


class LabelledImages(Dataset):
    """Images and labels held in memory, as ``data`` and ``targets``; what MNIST and CIFAR have in common.

    A subclass says where its files are (``_found``), how to read them (``_read``) and fetch them
    (``_download``).
    """

    classes: list[str]

    def __init__(self, root: Any, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False) -> None:
        self.root, self.train = os.fsdecode(root), train
        self.transform, self.target_transform = transform, target_transform
        if download and not self._found():
            self._download()
        images, labels = self._read()
        if labels.size and labels.max() >= len(self.classes):
            raise ValueError(f"{self._kind}: the labels in {self.root} hold {int(labels.max())}, wanted 0 to "
                             f"{len(self.classes) - 1}")
        self.data: Tensor = wrap(images)
        self.targets: Tensor = wrap(labels.astype(np.int64))

    @property
    def _kind(self) -> str:
        return type(self).__name__

    def _found(self) -> bool:
        raise NotImplementedError

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _download(self) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = wrap(self.data._array[index])
        label: Any = int(self.targets._array[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label

    def can_take(self) -> bool:
        """Whether ``take`` gives what collating samples would: without transforms it does."""
        return (self.transform is None and self.target_transform is None
                and type(self).__getitem__ is LabelledImages.__getitem__)

    def take(self, indices: Sequence[int]) -> list[Tensor]:
        """The collated batch of these samples, read at once."""
        rows = np.asarray(indices, np.int64)
        return [rows_of(self.data, rows), rows_of(self.targets, rows)]

    def __repr__(self) -> str:
        return f"{self._kind}({self.root!r}, train={self.train}): {len(self)} images"


class MNIST(LabelledImages):
    """Handwritten digits: samples (image, label), the image a uint8 tensor of shape (28, 28).

    root: the directory with the four idx files (also ``root/raw`` and ``root/MNIST/raw``), gzipped or
    not. train: the 60,000 training images, else the 10,000 for testing. transform(image) and
    target_transform(label) make what the sample holds, e.g. ``lambda x: x.float() / 255``. download:
    fetch files that are not there into ``root/MNIST/raw``, checked by their checksums.
    ``data`` and ``targets`` are all images and labels as tensors.

    Raises FileNotFoundError naming the file, ValueError for one that is not what its name says.

    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", 1998.
    """

    classes = [str(i) for i in range(10)]
    _mirrors: tuple[str, ...] = ("https://ossci-datasets.s3.amazonaws.com/mnist/",
                                 "https://storage.googleapis.com/cvdf-datasets/mnist/")
    _checksums = {
        "train-images-idx3-ubyte.gz":
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz":
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz":
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz":
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}

    def _names(self) -> tuple[str, str]:
        stem = "train" if self.train else "t10k"
        return f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"

    def _found(self) -> bool:
        return all(self._find(name) for name in self._names())

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        images, labels = (self._array(name, dims) for name, dims in zip(self._names(), (3, 1)))
        if len(images) != len(labels):
            raise ValueError(f"{self._kind}: {self.root} holds {len(images)} images in {self._names()[0]} "
                             f"but {len(labels)} labels; the files do not belong together")
        return images, labels

    def _array(self, name: str, dims: int) -> np.ndarray:
        path = self._find(name)
        if path is None:
            raise FileNotFoundError(
                f"{self._kind}: there is no {name} or {name}.gz in {self.root!r} (nor in its raw/ and "
                f"{self._kind}/raw/); give the directory of the idx files, or download=True")
        array = read_idx(path)
        if array.ndim != dims or array.dtype != np.uint8:
            raise ValueError(f"{self._kind}: {path}: wanted uint8 with {dims} dimensions, found "
                             f"{array.dtype}{list(array.shape)}")
        return array

    def _find(self, name: str) -> str | None:
        folders = [self.root, *(os.path.join(self.root, *sub) for sub in (
            ("raw",), (self._kind, "raw")))]
        for folder in folders:
            for form in (name, f"{name}.gz", name.replace("-idx", ".idx")):
                path = os.path.join(folder, form)
                if os.path.isfile(path):
                    return path
        return None

    def _download(self) -> None:
        for name in self._names():
            fetch([base + name + ".gz" for base in self._mirrors],
                  os.path.join(self.root, self._kind, "raw", name + ".gz"), self._checksums[name + ".gz"])


class FashionMNIST(MNIST):
    """Zalando's pictures of clothes, in MNIST's format; see ``MNIST``.

    H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", 2017.
    """

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
               "Ankle boot"]
    _mirrors = ("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/")
    _checksums = {"train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                  "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
                  "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
                  "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310"}


__dir__ = _own(globals())
