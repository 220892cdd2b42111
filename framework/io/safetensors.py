"""Flat dicts of tensors as safetensors files, which other programs write and read."""

from typing import Any

from ..backends import move
from ..device import as_device
from ..tensor import Tensor, wrap
from .file_layout import CODES, read_header
from .files import open_source, write_target
from .stream import map_arrays, read_arrays, write_layout


def save_safetensors(tensors: dict[str, Tensor], path: Any, metadata: dict[str, str] | None = None
                     ) -> None:
    """Write a flat dict of tensors as a safetensors file that other tools read; atomically.

    metadata: extra text. complex128 has no place in the layout and raises TypeError.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.io.save_safetensors({"w": fw.ones(2)}, file)
    """
    for name, x in tensors.items():
        if not isinstance(name, str) or not isinstance(x, Tensor) or name == "__metadata__":
            raise TypeError(f"save_safetensors: wanted a dict from text to Tensor, found {name!r}: "
                            f"{type(x).__name__}")
        if x.dtype.name not in CODES:
            raise TypeError(f"save_safetensors: tensor {name!r} is {x.dtype}, which the layout does not "
                            f"have; use framework.save, or convert it")
    extra = dict(metadata or {})
    if {"seal", "blocks", "checksum"} & set(extra) or not all(
            isinstance(t, str) for t in (*extra, *extra.values())):
        raise TypeError("save_safetensors: metadata must map text to text, without the keys 'seal', "
                        "'blocks' and 'checksum'")
    arrays = {name: x._array for name, x in tensors.items()}
    write_target(path, lambda file, patch: write_layout(file, arrays, extra, patch=patch),
                 "save_safetensors")


def load_safetensors(path: Any, device: Any = "cpu", *, mmap: bool = False) -> dict[str, Tensor]:
    """The tensors of any safetensors file, by name.

    mmap: map the file instead of reading it, see ``framework.load``. Checksums are verified where the
    file has them and it is read. Raises CheckpointError for a file that is not sound,
    FileNotFoundError where there is none.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.io.save_safetensors({"w": fw.ones(2)}, file)
    >>> fw.io.load_safetensors(io.BytesIO(file.getvalue()))["w"]
    tensor([1., 1.])
    """
    place = as_device(device)
    with open_source(path, "load_safetensors") as source:
        what = f"load_safetensors: {source.name}"
        if mmap and not source.ours:
            raise TypeError("load_safetensors: mmap=True needs a path, not an open file")
        header = read_header(source.file, source.size, what)
        arrays = map_arrays(source.file, header, what, False) if mmap else \
            read_arrays(source.file, header, what, source.ours)
    return {name: wrap(move(array, place)) for name, array in arrays.items()}
