"""Tensors of an ONNX file, also those whose numbers lie in a file beside it."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..from_data import from_numpy
from ..tensor import Tensor
from .operators.table import DTYPES
from .trace import OnnxError


def tensor_of(onnx: Any, t: Any, folder: Path | None) -> Tensor:
    """A tensor of a file, also of one whose numbers lie in a file beside it."""
    if t.data_type not in DTYPES:
        raise OnnxError(f"{t.name or 'a constant'} has the element type {t.data_type}, which is not known "
                        f"here")
    if any(n < 0 for n in t.dims):
        raise CheckpointError(f"onnx.load: {t.name or 'a tensor'} has the shape {list(t.dims)}")
    dtype = DTYPES[t.data_type]
    size = dtype.itemsize
    for n in t.dims:
        size *= n
    if t.data_location == onnx.TensorProto.EXTERNAL:
        return _external(t, folder, dtype, size)
    if t.HasField("raw_data") and len(t.raw_data) != size:
        raise CheckpointError(f"onnx.load: {t.name or 'a tensor'} of shape {list(t.dims)} needs {size} "
                              f"bytes, the file "
                              f"has {len(t.raw_data)}")
    if not t.HasField("raw_data") and size > 64 * (t.ByteSize() + 64):
        raise CheckpointError(f"onnx.load: {t.name or 'a tensor'} of shape {list(t.dims)} is not in the file")
    try:
        array = onnx.numpy_helper.to_array(t)
    except Exception as error:
        raise CheckpointError(f"onnx.load: {t.name or 'a tensor'} cannot be read: {error}") from error
    return from_numpy(np.array(array, order="C"))


def _external(t: Any, folder: Path | None, dtype: Any, size: int) -> Tensor:
    """Numbers from a file in the folder of the model, and from nowhere else."""
    entries = {e.key: e.value for e in t.external_data}
    place = entries.get("location", "")
    if folder is None:
        raise CheckpointError(f"onnx.load: the numbers of {t.name} lie in {place!r} beside the model; load "
                              f"it by its path")
    path = folder / place
    inside = os.path.realpath(folder)
    if not place or Path(place).is_absolute() or os.path.commonpath(
            [inside, os.path.realpath(path)]) != inside or not path.is_file():
        raise CheckpointError(f"onnx.load: {t.name} names {place!r}, which is no file in the folder of the "
                              f"model")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise CheckpointError(f"onnx.load: {t.name} has no numbers as offset and length") from None
    if length != size or offset < 0 or offset + size > path.stat().st_size:
        raise CheckpointError(f"onnx.load: {t.name} of shape {list(t.dims)} needs {size} bytes from "
                              f"{offset} on of {place!r}, which it does not have")
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(size)
    return from_numpy(np.frombuffer(data, dtype.numpy).reshape(tuple(t.dims)).copy())
