"""Rows of ops/index/index.py, ops/index/getitem.py and ops/index/scatter.py."""

from typing import Any

import numpy as np

from framework.errors import AutogradError, DTypeError, ShapeError

from ..base import Sample, integers, masks, normal, row

V4, M34, M345 = normal(4), normal(3, 4), normal(3, 4, 5)
MASK3, MASK34 = np.array([True, False, True]), masks(3, 4)
I2, J2 = np.array([2, 0]), np.array([1, -1])
REPEATS = np.array([0, 2, 0, 0])
T21 = np.array([[1], [0]])


def _one(label: str, call: Any, reference: Any, x: Any = M34, **more: Any) -> Sample:
    return Sample(label, call, (x,), reference, **more)


def _with(label: str, call: Any, reference: Any, *inputs: Any, **more: Any) -> Sample:
    return Sample(label, call, inputs, reference, **more)


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


def _put_reference(key: Any, value: Any) -> Any:
    def reference(x: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[key] = value
        return out
    return reference


row("__getitem__",
    *[_one(label, _get(key), lambda x, key=key: x[key], M345) for label, key in KEYS.items()],
    _with("tensor", lambda M, x, i: x[i], lambda x, i: x[i], M34, I2),
    _with("repeats", lambda M, x, i: x[i] * x[i], lambda x, i: x[i] ** 2, M34[:, :2], REPEATS),
    _with("repeats, several", lambda M, x, i: x[i, i], lambda x, i: x[i, i], M34, REPEATS),
    _with("repeats, last", lambda M, x, i: x[:, i], lambda x, i: x[:, i], M34, REPEATS),
    _with("int32", lambda M, x, i: x[i], lambda x, i: x[i], M34, I2.astype(np.int32)),
    _with("0-dim tensor", lambda M, x, i: x[i], lambda x, i: x[i], M34, np.array(1)),
    _with("0-dim in a slice", lambda M, x, i: x[i:], lambda x, i: x[i:], M34, np.array(1)),
    _with("two tensors", lambda M, x, i, j: x[i, j], lambda x, i, j: x[i, j], M34, I2, J2),
    _with("grid", lambda M, x, i, j: x[i[:, None], j], lambda x, i, j: x[i[:, None], j], M34, I2, J2),
    _with("mask", lambda M, x, m: x[m], lambda x, m: x[m], M34, MASK34),
    _with("comparison", lambda M, x: x[x > 0], lambda x: x[x > 0], M34),
    _with("list of tensors", lambda M, x, i: x[[i[0], i[1]]], lambda x, i: x[i], M34, I2, torch=False,
          why="PyTorch reads it as a tuple, or not, by its length"),
    _one("int beside apart lists", _get((0, slice(None), [1, 2])), lambda x: x[0][:, [1, 2]], M345),
    _one("int between lists", _get(([0, 1], 0, [1, 2])), lambda x: x[:, 0][[0, 1], [1, 2]], M345),
    _one("ints", lambda M, x: x[[0, 0], 1:], lambda x: x[[0, 0], 1:], integers(3, 4)),
    _one("number", lambda M, x: x[...] * 1, lambda x: x, np.array(1.5)),
    _one("number, none", lambda M, x: x[None] * 1, lambda x: x[None], np.array(1.5)),
    _one("number, true", lambda M, x: x[True] * 1, lambda x: x[None], np.array(1.5)),
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
    *[_one(label, _put(key, 2.5), _put_reference(key, 2.5), M345) for label, key in KEYS.items()
      if label not in ("list",)],
    _with("row", _row_put, lambda x, v: np.stack([x[0], v, x[2]]) ** 2, M34, V4),
    _with("slice", *_assign((slice(None), slice(1, 3))), M34, normal(3, 2)),
    _with("broadcast", *_assign(slice(1, None)), M34, V4),
    _with("leading ones", *_assign(0), M34, normal(1, 1, 4)),
    _with("number tensor", *_assign((slice(None), 0)), M34, np.array(1.5)),
    _with("positions", *_assign([2, 0]), M34, normal(2, 4)),
    _with("positions, broadcast", *_assign((slice(None), [2, 0])), M34, normal(3, 1)),
    _with("apart", *_assign(([0, 1], slice(None), [2, 3])), M345, normal(2, 4)),
    _with("mask", *_assign(MASK34), M34, normal(int(MASK34.sum()))),
    _with("mask, broadcast", *_assign(MASK3), M34, V4),
    _with("mask and list", *_assign((MASK3, [0, 1])), M34, normal(2)),
    _with("view of itself", lambda M, x: _put(slice(1, None), x[:-1])(M, x),
          lambda x: np.concatenate([x[:1], x[:-1]]), V4, torch=False, why="PyTorch refuses overlap"),
    _with("loop", _accumulate, _accumulate_reference, M34, V4),
    _with("ints", _put(1, 7), _put_reference(1, 7), integers(3, 4)),
    _with("int from float", _put(1, 2.7), _put_reference(1, 2), integers(3, 4)),
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
    _one("number", lambda M, x: M.tensor(3 in x), lambda x: np.array(3 in x), integers(3, 4)),
    errors=[("text", lambda M: "a" in M.ones(2), TypeError, "str")], namespace="")
row("index_put",
    _with("replace", lambda M, x, v, i, j: M.index_put(x, (i, j), v),
          lambda x, v, i, j: _assign((i, j))[1](x, v), M34, normal(2), I2, J2),
    _with("add", lambda M, x, v, i: x.index_put((i,), v, accumulate=True),
          lambda x, v, i: x + np.stack([3 * v, 0 * v, v]), M34, V4, REPEATS),
    _with("mask", lambda M, x, v, m: x.index_put((m,), v), lambda x, v, m: np.where(m, v, x), M34,
          np.array(1.5),
          MASK34),
    errors=[("range", lambda M: M.ones(2).index_put((M.tensor([2]),), M.ones(1)), IndexError,
    "2 is out of range"),
            ("number", lambda M: M.ones(2).index_put((M.tensor([1]),), 1.0), TypeError, "values"),
            ("slice", lambda M: M.ones(2).index_put((slice(0, 1),), M.ones(1)), IndexError, "x[key]")])
row("index_select",
    _with("rows", lambda M, x, i: M.index_select(x, 0, i), lambda x, i: x[i], M34, I2),
    _with("columns", lambda M, x, i: x.index_select(-1, i), lambda x, i: x[:, i], M34, REPEATS),
    _with("0-dim index", lambda M, x, i: x.index_select(0, i), lambda x, i: x[i][None], M34, np.array(1)),
    _with("number", lambda M, x, i: x.index_select(0, i), lambda x, i: x, np.array(1.5), np.array([0])),
    _with("nothing", lambda M, x, i: x.index_select(0, i), lambda x, i: x[:0], M34, np.zeros(0, np.int64)),
    errors=[("range", lambda M: M.ones(2).index_select(0, M.tensor([2])), IndexError, "index 2"),
            ("negative", lambda M: M.ones(2).index_select(0, M.tensor([-1])), IndexError, "index -1"),
            ("floating", lambda M: M.ones(2).index_select(0, M.ones(1)), DTypeError, "integers"),
            ("dims", lambda M: M.ones(2).index_select(0, M.zeros(1, 1).long()), ShapeError, "one dimension")])
row("index_add",
    _with("repeats", lambda M, x, y, i: M.index_add(x, 1, i, y),
          lambda x, y, i: x + np.stack([y[:, 0] + y[:, 2] + y[:, 3], 0 * x[:, 0], y[:, 1], 0 * x[:, 0]], 1),
          M34, normal(3, 4, seed=1), REPEATS),
    _with("alpha", lambda M, x, y, i: x.index_add(0, i, y, alpha=2),
          lambda x, y, i: x + 2 * np.stack([y[1], 0 * y[0], y[0]]), M34, normal(2, 4), I2),
    _with("ints", lambda M, x, y, i: x.index_add(0, i, y), lambda x, y, i: np.array([3, 0, 1, 0]),
          np.zeros(4, np.int64), np.ones(4, np.int64), REPEATS),
    errors=[("shape", lambda M: M.ones(3).index_add(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]"),
            ("dtype", lambda M: M.ones(3).index_add(0, M.tensor([0]), M.ones(1).long()), DTypeError,
            "int64")])
row("index_copy",
    _with("rows", lambda M, x, y, i: M.index_copy(x, 0, i, y), lambda x, y, i: np.stack([y[1], x[1], y[0]]),
          M34, normal(2, 4), I2),
    errors=[("shape", lambda M: M.ones(3).index_copy(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]")])
row("index_fill",
    _with("number", lambda M, x, i: M.index_fill(x, 1, i, 2.5),
          lambda x, i: _put_reference((slice(None), i), 2.5)(x),
          M34, I2),
    _with("tensor", lambda M, x, i, v: x.index_fill(0, i, v), lambda x, i, v: _put_reference(i, v)(x), M34,
          I2,
          np.array(1.5)),
    _with("a position twice", lambda M, x, i, v: x.index_fill(-1, i, v),
          lambda x, i, v: _put_reference((slice(None), i), v)(x), M34, np.array([1, 1, 3]), np.array(1.5)),
    errors=[("range", lambda M: M.ones(3).index_fill(0, M.tensor([3]), 1), IndexError, "index 3")])
row("take",
    _with("positions", lambda M, x, i: M.take(x, i), lambda x, i: x.ravel()[i], M34,
          np.array([[0, 11], [-1, 5]])),
    _with("repeats", lambda M, x, i: x.take(i), lambda x, i: x.ravel()[i], M34, REPEATS),
    errors=[("range", lambda M: M.ones(2, 2).take(M.tensor([4])), IndexError, "index 4")])
row("masked_select",
    _with("same shape", lambda M, x, m: M.masked_select(x, m), lambda x, m: x[m], M34, MASK34),
    _with("mask grows", lambda M, x, m: x.masked_select(m), lambda x, m: x[np.broadcast_to(m, (3, 4))], M34,
          MASK3[:, None]),
    _with("tensor grows", lambda M, x, m: x.masked_select(m), lambda x, m: np.broadcast_to(x, (3, 4))[m], V4,
          MASK34),
    errors=[("dtype", lambda M: M.ones(2).masked_select(M.ones(2)), DTypeError, "bool"),
            ("shape", lambda M: M.ones(2).masked_select(M.ones(3).bool()), ShapeError, "broadcast")])
row("masked_scatter",
    _with("first ones", lambda M, x, m, y: M.masked_scatter(x, m, y), lambda x, m, y: _put_reference(
        m, y.ravel()[:m.sum()])(x), M34, MASK34, normal(4, 3)),
    _with("mask grows", lambda M, x, m, y: x.masked_scatter(m, y),
          lambda x, m, y: np.stack([y[:4], x[1], y[4:8]]),
          M34, MASK3[:, None], normal(9)),
    errors=[("few", lambda M: M.ones(2).masked_scatter(M.ones(2).bool(), M.ones(1)), ShapeError,
    "chooses 2")])
row("nonzero",
    _one("rows", lambda M, x: M.nonzero(x), lambda x: np.argwhere(x), MASK34),
    _one("tuple", lambda M, x: x.nonzero(as_tuple=True), lambda x: np.nonzero(x), integers(3, 4, high=2)),
    _one("number", lambda M, x: x.nonzero(), lambda x: np.zeros((1, 0), np.int64), np.array(3)))
row("nonzero_static",
    Sample("fewer and more", lambda M, x: (M.nonzero_static(x, size=2),
                                           x.nonzero_static(size=14, fill_value=7)),
           (MASK34,), lambda x: (np.argwhere(x)[:2], np.concatenate(
               [np.argwhere(x), np.full((14 - int(x.sum()), 2), 7)])[:14]), grad=False),
    errors=[("size", lambda M: M.nonzero_static(M.ones(2), size=-1), ValueError, "-1")])
row("unravel_index",
    Sample("three dims", lambda M, x: M.unravel_index(x, (3, 4, 5)), (integers(2, 3, high=60),),
           lambda x: np.unravel_index(x, (3, 4, 5)), grad=False),
    errors=[("outside", lambda M: M.unravel_index(M.tensor([6]), (2, 3)), ValueError, "6"),
            ("floats", lambda M: M.unravel_index(M.ones(1), (2, 3)), (TypeError, ValueError), "integer")])
row("argwhere", _one("rows", lambda M, x: M.argwhere(x), lambda x: np.argwhere(x), MASK34))
row("isin",
    _with("tensors", lambda M, x, y: M.isin(x, y), lambda x, y: np.isin(x, y), integers(3, 4), I2),
    _with("number", lambda M, x: M.isin(x, 2, invert=True), lambda x: x != 2, integers(3, 4)),
    _with("of a number", lambda M, x: M.isin(2, x), lambda x: np.array((x == 2).any()), integers(3, 4)),
    errors=[("numbers", lambda M: M.isin(1, 2), TypeError, "both are numbers")])

# -- gather and scatter --------------------------------------------------------------------------

G32 = np.array([[0, 3], [2, 2], [1, 0]])  # positions along dim 1 of 3 x 4, one of them twice
G24 = np.array([[0, 1, 2, 1], [0, 0, 1, 1]])


def _loop(x: np.ndarray, index: np.ndarray, src: Any, dim: int, add: bool) -> np.ndarray:
    out = x.copy()
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        value = src[at] if isinstance(src, np.ndarray) and src.ndim else src
        out[tuple(to)] = out[tuple(to)] + value if add else value
    return out


row("gather",
    _with("dim 1", lambda M, x, i: M.gather(x, 1, i), lambda x, i: np.take_along_axis(x, i, 1), M34, G32),
    _with("dim 0", lambda M, x, i: x.gather(0, i), lambda x, i: np.take_along_axis(x, i, 0), M34, G24),
    _with("smaller", lambda M, x, i: x.gather(-1, i), lambda x, i: np.take_along_axis(x[:2], i, 1), M34, T21),
    _with("number", lambda M, x, i: x.gather(0, i), lambda x, i: x, np.array(1.5), np.array(0)),
    _with("nothing", lambda M, x, i: x.gather(0, i), lambda x, i: x[:0], M34, np.zeros((0, 4), np.int64)),
    errors=[("dims", lambda M: M.ones(2, 3).gather(0, M.tensor([0])), ShapeError, "as many dimensions"),
            ("size", lambda M: M.ones(2, 3).gather(1, M.zeros(3, 1).long()), ShapeError,
            "larger at dimension 0"),
            ("range", lambda M: M.ones(3).gather(0, M.tensor([3])), IndexError, "index 3"),
            ("dtype", lambda M: M.ones(3).gather(0, M.ones(1)), DTypeError, "integers")])
row("take_along_dim",
    _with("dim", lambda M, x, i: M.take_along_dim(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1), M34,
          G32),
    _with("negative", lambda M, x, i: M.take_along_dim(x, i - 3, 1),
          lambda x, i: np.take_along_axis(x, i - 3, 1), M34, G32),
    _with("broadcast", lambda M, x, i: x.take_along_dim(i, 1), lambda x, i: x[:, i[0]], M34, G32[:1]),
    _with("flat", lambda M, x, i: x.take_along_dim(i), lambda x, i: x.ravel()[i.ravel()], M34, G32),
    errors=[("dims", lambda M: M.ones(2, 3).take_along_dim(M.tensor([0]), 0), ShapeError, "as many")])
ONCE = np.array([[0, 3], [2, 1], [1, 0]])
row("scatter",
    _with("tensor", lambda M, x, i, y: M.scatter(x, 1, i, y), lambda x, i, y: _loop(x, i, y, 1, False), M34,
          ONCE,
          normal(3, 2)),
    _with("larger source", lambda M, x, i, y: x.scatter(0, i, y), lambda x, i, y: _loop(x, i, y, 0, False),
          M34,
          np.array([[2, 0]]), normal(2, 3), torch=False, why="PyTorch's gradient fails there"),
    _with("number", lambda M, x, i: x.scatter(1, i, 2.5), lambda x, i: _loop(x, i, 2.5, 1, False), M34, G32),
    _with("value", lambda M, x, i: x.scatter(1, i, value=2.5), lambda x, i: _loop(x, i, 2.5, 1, False), M34,
          G32),
    _with("add", lambda M, x, i, y: x.scatter(1, i, y, reduce="add"),
          lambda x, i, y: _loop(x, i, y, 1, True), M34,
          G32, normal(3, 2), torch=False, why="PyTorch has no derivative for reduce"),
    _with("add number", lambda M, x, i: x.scatter(1, i, 2.0, reduce="add"),
          lambda x, i: _loop(x, i, 2.0, 1, True),
          M34, G32, grad=False),
    _with("multiply", lambda M, x, i: x.scatter(1, i, 2.0, reduce="multiply"),
          lambda x, i: x * 2.0 ** (np.arange(4) == G32[..., None]).sum(1), M34, G32, grad=False),
    errors=[("range", lambda M: M.ones(3).scatter(0, M.tensor([3]), 1.0), IndexError, "index 3"),
            ("dtype", lambda M: M.ones(3).scatter(0, M.tensor([0]), M.ones(1).long()), DTypeError, "int64"),
            ("source", lambda M: M.ones(3).scatter(0, M.tensor([0, 1]), M.ones(1)), ShapeError, "smaller"),
            ("reduce", lambda M: M.ones(3).scatter(0, M.tensor([0]), 1.0, reduce="max"), ValueError, "'max'"),
            ("both", lambda M: M.ones(3).scatter(0, M.tensor([0])), TypeError, "exactly one")])
row("scatter_add",
    _with("repeats", lambda M, x, i, y: M.scatter_add(x, 1, i, y), lambda x, i, y: _loop(x, i, y, 1, True),
          M34, G32,
          normal(3, 2)),
    _with("dim 0", lambda M, x, i, y: x.scatter_add(0, i, y), lambda x, i, y: _loop(x, i, y, 0, True), M34,
          G24,
          normal(2, 4)),
    errors=[("range", lambda M: M.ones(3).scatter_add(0, M.tensor([-1]), M.ones(1)), IndexError, "index -1")])
