"""Rows of ops/index/getitem.py and setitem.py."""

from typing import Any

import numpy as np

from framework.errors import AutogradError, DTypeError, ShapeError

from ..base import Sample, complex_twins, integers, masks, normal, row
from . import I2, J2, M34, M345, MASK3, MASK34, REPEATS, T21, V4, many, one, put_reference

# one key, the same for NumPy; keys of which PyTorch has another opinion stand apart
KEYS: dict[str, Any] = {
    "int": 1, "negative": -1, "slice": slice(1, None), "steps": slice(None, None, 2), "none": None,
    "ellipsis": Ellipsis, "two ints": (1, 2), "int last": (Ellipsis, 1), "slices": (slice(0, 2), slice(1, 3)),
    "new dims": (None, 0, Ellipsis, None), "empty slice": slice(2, 1), "beyond": slice(1, 99),
    "all ints": (1, 2, -1), "nothing": (), "true": True, "false": False, "list": [2, 0, 2], "range": range(2),
    "no positions": [], "array": I2, "numpy int": np.int64(1), "list and slice": ([0, 1], slice(1, 3)),
    "slice and list": (slice(None), [3, 0]), "adjacent lists": ([0, 1], [2, 3]),
    "lists that broadcast": ([[0], [2]], [1, 3]), "apart": ([0, 1], slice(None), [2, 3]),
    "last two": (slice(None), [0, 1], [2, 3]), "none between": ([0, 1], None, [2, 3]),
    "list and int": ([0, 2], 1), "ellipsis and list": (Ellipsis, [0, -1]), "mask": MASK3,
    "list of bools": [True, False, True], "mask of two dims": MASK34, "mask and slice": (MASK3, slice(1, 3)),
    "mask second": (slice(0, 2), np.array([True, False, False, True])), "mask and list": (MASK3, [0, 1]),
    "no choice": np.zeros(3, bool), "mask of all": masks(3, 4, 5), "two dims of positions": T21,
}


def _get(key: Any) -> Any:
    return lambda M, x: x[key] * 1


def _put(key: Any, value: Any) -> Any:
    def call(M: Any, x: Any) -> Any:
        x[key] = value
        return x
    return call


row("__getitem__",
    *[one(label, _get(key), lambda x, key=key: x[key], M345) for label, key in KEYS.items()],
    many("tensor", lambda M, x, i: x[i], lambda x, i: x[i], M34, I2),
    many("repeats", lambda M, x, i: x[i] * x[i], lambda x, i: x[i] ** 2, M34[:, :2], REPEATS),
    many("repeats, several", lambda M, x, i: x[i, i], lambda x, i: x[i, i], M34, REPEATS),
    many("repeats, last", lambda M, x, i: x[:, i], lambda x, i: x[:, i], M34, REPEATS),
    many("int32", lambda M, x, i: x[i], lambda x, i: x[i], M34, I2.astype(np.int32)),
    many("0-dim tensor", lambda M, x, i: x[i], lambda x, i: x[i], M34, np.array(1)),
    many("0-dim in a slice", lambda M, x, i: x[i:], lambda x, i: x[i:], M34, np.array(1)),
    many("two tensors", lambda M, x, i, j: x[i, j], lambda x, i, j: x[i, j], M34, I2, J2),
    many("grid", lambda M, x, i, j: x[i[:, None], j], lambda x, i, j: x[i[:, None], j], M34, I2, J2),
    many("mask", lambda M, x, m: x[m], lambda x, m: x[m], M34, MASK34),
    many("comparison", lambda M, x: x[x > 0], lambda x: x[x > 0], M34),
    many("list of tensors", lambda M, x, i: x[[i[0], i[1]]], lambda x, i: x[i], M34, I2, torch=False,
          why="PyTorch reads it as a tuple, or not, by its length"),
    one("int beside apart lists", _get((0, slice(None), [1, 2])), lambda x: x[0][:, [1, 2]], M345),
    one("int between lists", _get(([0, 1], 0, [1, 2])), lambda x: x[:, 0][[0, 1], [1, 2]], M345),
    one("ints", lambda M, x: x[[0, 0], 1:], lambda x: x[[0, 0], 1:], integers(3, 4)),
    one("number", lambda M, x: x[...] * 1, lambda x: x, np.array(1.5)),
    one("number, none", lambda M, x: x[None] * 1, lambda x: x[None], np.array(1.5)),
    one("number, true", lambda M, x: x[True] * 1, lambda x: x[None], np.array(1.5)),
    errors=[
        ("range", lambda M: M.ones(2, 3)[2], IndexError, "2 is out of range for dimension 0 of size 2"),
        ("range, second", lambda M: M.ones(2, 3)[:, -4], IndexError, "dimension 1 of size 3"),
        ("range, last", lambda M: M.ones(2, 3)[..., 3], IndexError, "dimension 1 of size 3"),
        ("too many", lambda M: M.ones(2)[0, 0], IndexError, "2 indices for a tensor of 1 dimensions"),
        ("number", lambda M: M.tensor(1.0)[0], IndexError, "0 dimensions"),
        ("positions", lambda M: M.ones(2, 3)[:, [0, 3]], IndexError,
        "index 3 is out of range for dimension 1"),
        ("mask", lambda M: M.ones(3)[M.tensor([True])], IndexError, "mask of shape [1]"),
        ("floats", lambda M: M.ones(3)[M.ones(1)], IndexError, ".long()"),
        ("reverse", lambda M: M.ones(3)[::-1], ValueError, "flip"),
        ("text", lambda M: M.ones(3)["a"], IndexError, "str"),
        ("two ellipses", lambda M: M.ones(3)[..., ...], IndexError, "one Ellipsis"),
        ("lists", lambda M: M.ones(3, 3)[[0, 1], [0, 1, 2]], IndexError, "broadcast"),
        ("bytes", lambda M: M.ones(3)[M.tensor([1, 0, 1], dtype=M.uint8)], IndexError, ".bool()")],
    namespace="")


def _row_put(M: Any, x: Any, v: Any) -> Any:
    x[1] = v
    return x * x


def _accumulate(M: Any, x: Any, v: Any) -> Any:
    for i in range(3):
        x[i] += v * (x[i - 1] * 1)  # the product keeps a copy, not a view that changes
    return x


def _accumulate_reference(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return _accumulate(np, x.copy(), v)


def _assign(key: Any) -> tuple[Any, Any]:
    def call(M: Any, x: Any, v: Any) -> Any:
        x[key] = v
        return x

    def reference(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[key] = v
        return out
    return call, reference


row("__setitem__",
    *[one(label, _put(key, 2.5), put_reference(key, 2.5), M345) for label, key in KEYS.items()
      if label not in ("list",)],
    many("row", _row_put, lambda x, v: np.stack([x[0], v, x[2]]) ** 2, M34, V4),
    many("slice", *_assign((slice(None), slice(1, 3))), M34, normal(3, 2)),
    many("broadcast", *_assign(slice(1, None)), M34, V4),
    many("leading ones", *_assign(0), M34, normal(1, 1, 4)),
    many("number tensor", *_assign((slice(None), 0)), M34, np.array(1.5)),
    many("positions", *_assign([2, 0]), M34, normal(2, 4)),
    many("positions, broadcast", *_assign((slice(None), [2, 0])), M34, normal(3, 1)),
    many("apart", *_assign(([0, 1], slice(None), [2, 3])), M345, normal(2, 4)),
    many("mask", *_assign(MASK34), M34, normal(int(MASK34.sum()))),
    many("mask, broadcast", *_assign(MASK3), M34, V4),
    many("mask and list", *_assign((MASK3, [0, 1])), M34, normal(2)),
    many("view of itself", lambda M, x: _put(slice(1, None), x[:-1])(M, x),
          lambda x: np.concatenate([x[:1], x[:-1]]), V4, torch=False, why="PyTorch refuses overlap"),
    many("loop", _accumulate, _accumulate_reference, M34, V4),
    many("ints", _put(1, 7), put_reference(1, 7), integers(3, 4)),
    many("int from float", _put(1, 2.7), put_reference(1, 2), integers(3, 4)),
    errors=[
        ("range", lambda M: _put(2, 1.0)(M, M.ones(2)), IndexError,
        "2 is out of range for dimension 0 of size 2"),
        ("positions", lambda M: _put([0, 3], 1.0)(M, M.ones(2)), IndexError, "3 is out of range"),
        ("shape", lambda M: _put(0, M.ones(2))(M, M.ones(2, 3)), ShapeError, "[2] does not broadcast"),
        ("shape, mask", lambda M: _put([True, True], M.ones(3))(M, M.ones(2)), ShapeError, "[3]"),
        ("dtype", lambda M: _put([0], M.ones(1))(M, M.tensor([1, 2])), DTypeError, "float32"),
        ("complex", lambda M: _put(0, 1j)(M, M.ones(2)), DTypeError, "complex"),
        ("text", lambda M: _put(0, "a")(M, M.ones(2)), TypeError, "str"),
        ("leaf", lambda M: _put(0, 1.0)(M, M.ones(2, requires_grad=True)), AutogradError, "leaf")],
    namespace="")
row("__contains__",
    one("number", lambda M, x: M.tensor(3 in x), lambda x: np.array(3 in x), integers(3, 4)),
    errors=[("text", lambda M: "a" in M.ones(2), TypeError, "str")], namespace="")
row("index_put",
    many("replace", lambda M, x, v, i, j: M.index_put(x, (i, j), v),
          lambda x, v, i, j: _assign((i, j))[1](x, v), M34, normal(2), I2, J2),
    many("add", lambda M, x, v, i: x.index_put((i,), v, accumulate=True),
          lambda x, v, i: x + np.stack([3 * v, 0 * v, v]), M34, V4, REPEATS),
    many("mask", lambda M, x, v, m: x.index_put((m,), v), lambda x, v, m: np.where(m, v, x), M34,
          np.array(1.5),
          MASK34),
    errors=[("range", lambda M: M.ones(2).index_put((M.tensor([2]),), M.ones(1)), IndexError,
    "2 is out of range"),
            ("number", lambda M: M.ones(2).index_put((M.tensor([1]),), 1.0), TypeError, "values"),
            ("slice", lambda M: M.ones(2).index_put((slice(0, 1),), M.ones(1)), IndexError, "x[key]")])
V5 = normal(5)
AT = np.array([0, 7, -1, 3, 5])


def _put_flat(x: Any, i: Any, y: Any, add: bool = False) -> Any:
    out = x.copy().reshape(-1)
    if add:
        np.add.at(out, i, y)
    else:
        out[i] = y
    return out.reshape(x.shape)


row(
    "put",
    Sample("plain", lambda M, x, i, y: M.put(x, i, y), (M34, AT, V5), _put_flat),
    Sample(
        "add",
        lambda M, x, i, y: x.put(i, y, accumulate=True),
        (M34, np.array([0, 0, 1, 1, -1]), V5),
        lambda x, i, y: _put_flat(x, i, y, True),
    ),
    Sample("shaped", lambda M, x, i, y: M.put(x, i.reshape(1, 5), y), (M34, AT, V5), _put_flat),
    Sample("in place", lambda M, x, i, y: x.clone().put_(i, y), (M34, AT, V5), _put_flat),
    errors=[
        ("sizes", lambda M: M.put(M.ones(2), M.tensor([0]), M.ones(2)), ShapeError, "1 elements"),
        ("dtype", lambda M: M.put(M.ones(2), M.tensor([0]), M.tensor([1])), DTypeError, "int64"),
        ("range", lambda M: M.put(M.ones(2), M.tensor([2]), M.ones(1)), IndexError, "2"),
    ],
)
row(
    "put_",
    Sample("plain", lambda M, x, i, y: x.put_(i, y), (M34, AT, V5), _put_flat),
    Sample("added up", lambda M, x, i, y: x.put_(i, y, accumulate=True),
           (M34, np.array([0, 0, 1, 1, -1]), V5), lambda x, i, y: _put_flat(x, i, y, True)),
    namespace="",
    errors=[("range", lambda M: M.ones(2).put_(M.tensor([2]), M.ones(1)), IndexError, "2"),
            ("sizes", lambda M: M.ones(3).put_(M.tensor([0, 1]), M.ones(1)), ShapeError, "equally many")],
)
complex_twins("put")
