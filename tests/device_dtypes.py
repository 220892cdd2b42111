"""A sample of the table on a device in a dtype, beside the CPU: values, first gradients, texts of errors."""

import re

import numpy as np
from table import changes_inputs, cotangents, flat, floating_leaves, is_floating, numpy_of

import framework as fw

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")
ROUNDING = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
LEAVES_THE_DEVICE = {"cpu", "to", "__contains__", "broadcast_shapes"}
LATER = re.compile(r" \(found on cuda:\d, told when the host waited for it\)")
# among equal elements any index is right, and so the gradient of any: values are compared
ANY_OF_EQUALS = {"topk", "kthvalue", "median", "nanmedian"}
# a device is not waited for to see a 0 among the divisors, at which the CPU raises
UNSEEN_ZERO = {"remainder", "fmod", "floor_divide", "__mod__", "__rmod__", "__floordiv__", "__rfloordiv__",
               "__imod__", "__ifloordiv__"}


def run(row, sample, dtype, device, home):
    """What the sample gives on a device, its floating inputs in ``dtype``: (dtype, array)s, or the error."""
    inputs = [fw.from_numpy(np.array(a)).to(device) if isinstance(a, (np.ndarray, np.generic)) else a
              for a in sample.inputs]
    inputs = [x.to(getattr(fw, dtype)) if is_floating(a) and not x.is_complex() else x
              for x, a in zip(inputs, sample.inputs)]
    for x in inputs:
        if sample.grad and isinstance(x, fw.Tensor) and (x.is_floating_point() or x.is_complex()):
            x.requires_grad_()
    try:
        fw.manual_seed(0)
        given = [x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in inputs]
        out = sample.call(home(device), *given)
        found = list(flat(out))
        stays = device != "cpu" and row.name not in LEAVES_THE_DEVICE
        if stays and any(isinstance(x, fw.Tensor) for x in inputs):
            for y in found:
                assert not isinstance(y, fw.Tensor) or y.is_cuda, "the result left the device"
        leaves = floating_leaves(out)
        grown = [x for x in inputs if isinstance(x, fw.Tensor) and x.requires_grad]
        if leaves and grown:
            seeds = [fw.tensor(g, dtype=y.dtype, device=y.device) for g, y in zip(cotangents(leaves), leaves)]
            found += fw.autograd.grad(leaves, grown, seeds, allow_unused=True)
        seen = [(str(y.dtype), numpy_of(y.double() if y.dtype is fw.bfloat16 else y))
                if isinstance(y, fw.Tensor) else (type(y).__name__, numpy_of(y)) for y in found]
        if device != "cpu":
            fw.cuda.synchronize()  # what kernels found wrong is told here
    except Exception as error:
        return error
    return seen


def difference(row, sample, dtype, home, device="cuda:0"):
    """What differs between a device and the CPU, in words; nothing if nothing does."""
    with np.errstate(all="ignore"):
        want, got = run(row, sample, dtype, "cpu", home), run(row, sample, dtype, device, home)
    if isinstance(want, ZeroDivisionError) and row.name in UNSEEN_ZERO and not isinstance(got, Exception):
        return ""
    if row.name in ANY_OF_EQUALS and not isinstance(want, Exception) and not isinstance(got, Exception):
        want, got = want[:1], got[:1]
    if isinstance(want, Exception) or isinstance(got, Exception):
        texts = [re.sub(r"cuda:\d|cpu", "device", LATER.sub("", repr(x))) for x in (want, got)]
        return "" if texts[0] == texts[1] else f"{got!r}, wanted {want!r}"[:400]
    if [d for d, _ in want] != [d for d, _ in got]:
        return f"dtypes {[d for d, _ in got]}, wanted {[d for d, _ in want]}"
    for (_, a), (_, b) in zip(got, want):
        if np.shape(a) != np.shape(b):
            return f"shape {np.shape(a)}, wanted {np.shape(b)}"
        if np.asarray(b).dtype.kind in "fciub" and np.size(b):
            finite = np.asarray(b)[np.isfinite(b)]
            most = np.abs(finite.astype(complex)).max() if finite.size else 0.0
            if not np.allclose(a, b, 0, ROUNDING.get(dtype, 1e-6) * sample.tol * (1 + most), equal_nan=True):
                return "other numbers"
    return ""
