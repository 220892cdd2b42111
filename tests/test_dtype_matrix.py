"""The sample table in other dtypes beside PyTorch, and reductions over every kind of shape and dim.

Floating inputs of every row become integers, bools, float16 and bfloat16. Where PyTorch takes them, so must
we, with the same dtype and shape and values within rounding; what differs on purpose stands in
``DELIBERATE`` with its reason, and nothing may stand there that does not differ.
"""

import itertools
import warnings

import numpy as np
import pytest
from table import ROWS, flat, numpy_of, row_id

import framework as fw

torch = pytest.importorskip("torch", reason="PyTorch is what this is compared with: the compare extra")
pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")

INTEGERS = ("int64", "uint8", "bool")
DTYPES = (*INTEGERS, "float16", "bfloat16")
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}

FACTOR = "a factor that is no integer makes floats of integers; PyTorch cuts it to an integer silently"
TRUNCATED = "means of integers would be cut to integers; PyTorch does that silently"
TIES = "among equal elements any index is right"
RANDOM = "the zeros are drawn, and the drawings differ; integers are refused"
FLOATS = "a loss is floating: of integers PyTorch gives integers, which its mean refuses, and wraps uint8"
COUNTS = "True counts as 1, so the result is an integer"
ONLY_INTEGER = "PyTorch refuses integers, but not where it happens not to compute"
NO_RESULT = "2 ** -1 is no integer; PyTorch gives 0"
ROUNDED = "computed in float32 and rounded once; PyTorch rounds at each step"

# row -> (dtypes, why the result differs from PyTorch's)
DELIBERATE = {
    "add": ("bool", COUNTS),
    "sign": ("bool", COUNTS),
    "sgn": ("bool", COUNTS),
    **dict.fromkeys(("matrix_power", "linalg.matrix_power"), ("bool", COUNTS)),
    **dict.fromkeys(("addbmm", "addcmul", "addmm", "addmv", "baddbmm"), ("int64 uint8", FACTOR)),
    **dict.fromkeys(("pow", "method.pow"), ("int64", NO_RESULT)),
    **{f"nn.functional.avg_pool{d}d": ("int64", TRUNCATED) for d in (1, 2, 3)},
    **{
        f"nn.functional.{name}": ("int64 uint8 bool", ONLY_INTEGER)
        for name in ("alpha_dropout", "dropout", "dropout1d", "feature_alpha_dropout")
    },
    **{
        f"nn.functional.{name}": ("int64 uint8 bool float16 bfloat16", RANDOM)
        for name in ("dropout2d", "dropout3d")
    },
    "nn.functional.local_response_norm": ("int64", ONLY_INTEGER),
    "nn.functional.pairwise_distance": ("int64 uint8", "a distance is floating; convert the tensors"),
    **dict.fromkeys(("nn.functional.triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss"),
                    ("int64 uint8", "a distance is floating; convert the tensors")),
    **dict.fromkeys(
        ("nn.functional.hinge_embedding_loss", "nn.functional.l1_loss", "nn.functional.mse_loss"),
        ("int64 uint8", FLOATS),
    ),
    **dict.fromkeys(
        ("nn.functional.interpolate", "nn.functional.upsample_bilinear"),
        ("uint8", "images are converted first: PyTorch's uint8 path rounds its weights"),
    ),
    "einsum": ("uint8 bool", "a sum in einsum keeps the dtype, as products do"),
    "where": ("uint8", "-2 is no uint8; PyTorch takes 254"),
    **dict.fromkeys(("complex", "mul", "view_as_complex"), ("float16", "no complex numbers of two float16")),
    "median": ("bool", "the median of nothing is not True"),
    **dict.fromkeys(("kthvalue", "nanmedian"), ("uint8", TIES)),
    "topk": ("int64 uint8", TIES),
    **dict.fromkeys(
        ("det", "linalg.det"), ("float16", "LAPACK has no float16; PyTorch takes it only if empty")
    ),
    "matrix_exp": ("float16 bfloat16", "PyTorch's result is far off"),
    "special.i1": ("int64 uint8", "PyTorch overflows at 90 already, where float32 does not"),
    "signbit": ("bfloat16", "PyTorch loses the sign of nan"),
    "nn.functional.grid_sample": ("float16 bfloat16", ROUNDED),
    "nn.functional.batch_norm": ("bfloat16", ROUNDED),
    "nn.functional.group_norm": ("float16", ROUNDED),
    "nn.functional.multi_head_attention_forward": ("float16", ROUNDED),
}
# in these dtypes of these rows a drawing or a rounding may also come out equal
MAY_AGREE = {RANDOM, ROUNDED, TIES}


def is_floating(a):
    """Whether an input takes other dtypes: complex ones stay."""
    return isinstance(a, np.ndarray | np.generic) and a.dtype == np.float64


def converted(a, dtype):
    """A sample's floating array for a dtype: whole numbers for integers."""
    if not is_floating(a):
        return a
    if dtype in TOLERANCE:
        return np.asarray(a, np.float32)
    whole = np.rint(np.where(np.isfinite(a), a, 0) * 3)
    return (np.abs(whole) if dtype == "uint8" else whole).astype(dtype)


def given(M, sample, dtype):
    """The sample's inputs as tensors of the library ``M``."""
    inputs = []
    for a in sample.inputs:
        if not isinstance(a, (np.ndarray, np.generic)):
            inputs.append(a)
            continue
        t = M.from_numpy(np.array(converted(a, dtype)))
        inputs.append(t.to(getattr(M, dtype)) if is_floating(a) and dtype in TOLERANCE else t)
    return inputs


def values(x):
    """A result as a NumPy array that can be compared."""
    if isinstance(x, torch.Tensor):
        return numpy_of(x.float() if x.dtype == torch.bfloat16 else x)
    return numpy_of(x.float() if x.dtype is fw.bfloat16 else x)


def outcome(M, call, *inputs):
    """The results, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return flat(call(M, *inputs))
    except Exception as error:
        return error


def difference(ours, theirs, tolerance):
    """What differs, or an empty text; nothing is asked of us where PyTorch refuses."""
    if isinstance(theirs, Exception):
        return ""
    if isinstance(ours, Exception):
        empty = all(isinstance(z, torch.Tensor) and not z.numel() for z in theirs)
        refused = "must be floating" in str(ours) and empty
        return "" if refused else f"{type(ours).__name__}: {ours}"
    for y, z in zip(ours, theirs):
        if not isinstance(z, torch.Tensor):
            continue
        if str(y.dtype).split(".")[-1] != str(z.dtype).split(".")[-1]:
            return f"{y.dtype}, PyTorch has {z.dtype}"
        a, b = values(y), values(z)
        if a.shape != b.shape:
            return f"shape {a.shape}, PyTorch has {b.shape}"
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{a.ravel()[:4]}, PyTorch has {b.ravel()[:4]}"
    return ""


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows(dtype):
    """Every sample of the table, its floating inputs in another dtype."""
    wrong, differing, calls = [], set(), 0
    fw.manual_seed(0)
    torch.manual_seed(0)
    for row in ROWS:
        for sample in row.samples:
            if not sample.torch or not any(is_floating(a) for a in sample.inputs):
                continue
            calls += 1
            ours, theirs = [outcome(M, sample.call, *given(M, sample, dtype)) for M in (fw, torch)]
            text = difference(ours, theirs, TOLERANCE.get(dtype, 1e-4))
            if text and dtype in DELIBERATE.get(row_id(row), ("", ""))[0].split():
                differing.add(row_id(row))
            elif text:
                wrong.append(f"{row_id(row)}, {sample.label!r}: {text[:150]}")
    assert calls > 1500
    assert not wrong, f"{len(wrong)} samples differ from PyTorch in {dtype}:\n" + "\n".join(wrong)
    stale = [
        name
        for name, (dtypes, why) in DELIBERATE.items()
        if dtype in dtypes.split() and why not in MAY_AGREE and name not in differing
    ]
    assert not stale, f"in DELIBERATE, but equal to PyTorch in {dtype}: {', '.join(stale)}"


SHAPES = ((), (3,), (0,), (2, 3), (2, 0, 3), (1, 1))
DIMS = (None, 0, -1, (0, 1), (-1, 0), 1, -4)
ONE_DIM = [
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "logcumsumexp",
    "softmax",
    "log_softmax",
    "prod",
    "max",
    "min",
    "median",
    "mode",
    "sort",
    "argsort",
    "cummax",
    "cummin",
    "nanmedian",
    "diff",
    "flip",
    "unbind",
]
MANY_DIMS = [
    "sum",
    "mean",
    "amax",
    "amin",
    "logsumexp",
    "std",
    "var",
    "all",
    "any",
    "count_nonzero",
    "nansum",
    "nanmean",
    "norm",
    "squeeze",
    "flip",
]
TIED = {
    "argsort",
    "sort",
    "argmax",
    "argmin",
    "max",
    "min",
    "median",
    "nanmedian",
    "mode",
    "cummax",
    "cummin",
}
# of a tensor without elements: name -> why the result differs
EMPTY_DELIBERATE = {
    **dict.fromkeys(
        ("cummax", "cummin"), "PyTorch does not look at dim; it is out of range all the same"
    ),
    **dict.fromkeys(("median", "nanmedian"), "the median of no bools is not True"),
}


@pytest.mark.parametrize("name", sorted({*ONE_DIM, *MANY_DIMS}))
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_shapes_and_dims(name, dtype):
    """0-dim and empty tensors, negative dims, tuples, None, dims out of range: results, or refusals."""
    wrong = []
    for shape, dim, keepdim in itertools.product(SHAPES, DIMS, (False, True)):
        if isinstance(dim, tuple) and name not in MANY_DIMS:
            continue
        array = np.array(np.arange(int(np.prod(shape))).reshape(shape) * 1.7 % 3, dtype)
        keywords = {} if dim is None else {"dim": dim} if name != "flip" else {"dims": dim}
        keepdim and keywords.update(keepdim=True)

        def call(M, x, name=name, keywords=keywords):
            out = getattr(M, name)(x, **keywords)
            return out[0] if name in TIED and isinstance(out, tuple) else out

        ours, theirs = [outcome(M, call, M.from_numpy(array.copy())) for M in (fw, torch)]
        if name in TIED and not isinstance(theirs, Exception) and not isinstance(ours, Exception):
            ours = [y if y.dtype is not fw.int64 or dtype == "int64" else y * 0 for y in ours]
            theirs = [z if z.dtype != torch.int64 or dtype == "int64" else z * 0 for z in theirs]
        text = difference(ours, theirs, 1e-5)
        if isinstance(theirs, IndexError) and not isinstance(ours, Exception):
            text = f"{[y.shape for y in ours]}, PyTorch refuses: {theirs}"
        if text and not (name in EMPTY_DELIBERATE and not array.size):
            wrong.append(f"{list(shape)}, {keywords}: {text[:160]}")
    assert not wrong, f"{name} of {dtype}:\n" + "\n".join(wrong)
