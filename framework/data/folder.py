"""Datasets of files in class folders: ``root/ants/1.jpg`` is a sample of the class ``ants``."""

import os
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

from ..config import need
from .dataset import Dataset
from .packed import PackedList

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def pil_loader(path: Any) -> Any:
    """The RGB image in a file, by pillow.

    The file is read at once; an RGB image is decoded when its pixels are first needed, so that a
    transform which shrinks it can have a JPEG decoded at reduced scale. Raises OSError naming the file.
    """
    Image = need("PIL.Image", "images", "reading images")
    with open(path, "rb") as file:
        content = BytesIO(file.read())
    try:
        image = Image.open(content)
        if image.mode != "RGB":
            image = image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise OSError(f"pil_loader: {os.fsdecode(path)} is not an image that pillow can read: {error}") \
            from error
    image.filename = os.fsdecode(path)
    return image


def has_file_allowed_extension(filename: str, extensions: Any) -> bool:
    """Whether a name ends in one of the extensions, in any case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


class DatasetFolder(Dataset):
    """Samples (loader(path), class number), of the files under ``root/class/...``.

    Classes are the sorted names of the folders in ``root``; files are found in subfolders too, links
    followed, and sorted. extensions, or is_valid_file(path): which files count (one of the two).
    transform and target_transform change the two parts of a sample. allow_empty: classes without files
    are no error. ``samples`` lists (path, class number), ``targets`` the class numbers.

    Raises FileNotFoundError for a root without folders, or a class without files.
    """

    def __init__(self, root: Any, loader: Callable, extensions: Any = None,
                 transform: Callable | None = None, target_transform: Callable | None = None,
                 is_valid_file: Callable | None = None, allow_empty: bool = False) -> None:
        if (extensions is None) == (is_valid_file is None):
            raise ValueError(f"{type(self).__name__}: give either extensions or is_valid_file, to tell which "
                             f"files are samples")
        self.root = os.fsdecode(root)
        self.loader, self.extensions = loader, extensions
        self.transform, self.target_transform = transform, target_transform
        self.classes, self.class_to_idx = self.find_classes(self.root)
        valid = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions))
        found = list(self.make_dataset(self.root, self.class_to_idx, valid))
        self.targets = [target for _, target in found]
        empty = [name for name, i in self.class_to_idx.items() if i not in set(self.targets)]
        if empty and not allow_empty:
            raise FileNotFoundError(
                f"{type(self).__name__}: no valid file in {self.root!r} for {', '.join(empty)}; "
                f"{f'wanted {extensions}' if extensions else 'see is_valid_file'}, or pass allow_empty=True")
        self.samples: Any = PackedList(found)

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """The names of the classes, sorted, and their numbers; override for other layouts."""
        names = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not names:
            raise FileNotFoundError(f"{type(self).__name__}: {directory!r} holds no folders; every class is "
                                    f"one")
        return names, {name: i for i, name in enumerate(names)}

    @staticmethod
    def make_dataset(directory: str, class_to_idx: dict[str, int], is_valid_file: Callable) -> Iterable:
        """(path, class number) of all files that count, in sorted order."""
        for name in sorted(class_to_idx):
            for path in _files(os.path.join(directory, name)):
                if is_valid_file(path):
                    yield path, class_to_idx[name]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return sample, target

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r}): {len(self)} files of {len(self.classes)} classes"


def _files(directory: str) -> Iterator[str]:
    for folder, names in sorted(_walk(directory)):
        for name in sorted(names):
            yield os.path.join(folder, name)


def _walk(directory: str) -> Iterator[tuple[str, list[str]]]:
    """Folders and the files in them; links are followed, but not back to where they came from."""
    for folder, below, names in os.walk(directory, followlinks=True):
        here = os.path.join(os.path.realpath(folder), "")
        below[:] = [name for name in below if not here.startswith(
            os.path.join(os.path.realpath(os.path.join(folder, name)), ""))]
        yield folder, names


class ImageFolder(DatasetFolder):
    """Images in class folders: samples (image, class number); see ``DatasetFolder``.

    The image is a pillow image in RGB (``pil_loader``) unless ``loader`` or ``transform`` makes
    something else of it. Needs pillow: pip install 'framework[images]'.

        data = fw.data.ImageFolder("hymenoptera/train", transforms.Compose([
            transforms.RandomResizedCrop(64), transforms.ToTensor()]))
    """

    def __init__(self, root: Any, transform: Callable | None = None,
                 target_transform: Callable | None = None, loader: Callable = pil_loader,
                 is_valid_file: Callable | None = None, allow_empty: bool = False) -> None:
        if loader is pil_loader:
            need("PIL.Image", "images", "ImageFolder")  # once, here, and not in every worker
        super().__init__(root, loader, IMG_EXTENSIONS if is_valid_file is None else None, transform,
                         target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
