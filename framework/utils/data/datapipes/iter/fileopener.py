"""Pipes of files: their paths, the open files, what they hold."""

import fnmatch
import os
from collections.abc import Iterable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from .simple import IterableWrapperIterDataPipe


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders whose names match one of the ``masks``, in order."""

    def __init__(
        self,
        root: Any = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        folders = [root] if isinstance(root, (str, os.PathLike)) else root
        self.datapipe: Any = (
            IterableWrapperIterDataPipe(folders) if not isinstance(root, IterDataPipe) else root
        )
        self.masks = [masks] if isinstance(masks, str) else list(masks)
        self.recursive, self.abspath, self.length = recursive, abspath, length

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from self._in(os.path.abspath(folder) if self.abspath else os.fspath(folder))

    def _in(self, folder: str) -> Iterator[str]:
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"FileLister: there is no folder {folder!r}")
        for here, inner, names in os.walk(folder):
            inner.sort()
            for name in sorted(names):
                if not any(self.masks) or any(fnmatch.fnmatch(name, mask) for mask in self.masks):
                    yield os.path.join(here, name)
            if not self.recursive:
                return

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError("FileLister: how many files there are is not known; give length=")
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Pairs (path, open file); who takes the file closes it."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path in self.datapipe:
            mode = "rb" if self.mode == "b" else "r" if self.mode == "t" else self.mode
            yield path, open(path, mode, encoding=self.encoding)  # noqa: SIM115 - the reader closes it

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError("FileOpener: how many files there are is not known; give length=")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs (path, bytes or text) of pairs (path, open file), in pieces; files are closed at their end."""

    def __init__(self, datapipe: Iterable[tuple[str, Any]], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, file in self.datapipe:
            try:
                while piece := file.read(self.chunk):
                    yield path, piece
            finally:
                file.close()
