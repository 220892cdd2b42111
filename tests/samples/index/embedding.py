"""Rows of ops/index/embedding.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, normal, row

TABLE, INDEX = normal(5, 3), integers(2, 4, high=5)


def call(M: Any, *args: Any, **settings: Any) -> Any:
    """F.embedding of either library."""
    return M.nn.functional.embedding(*args, **settings)


def look_up(index: Any, table: Any) -> Any:
    """The reference."""
    return table[index]


def _shrunk(index: Any, table: Any, limit: float, p: float = 2.0) -> Any:
    norms = np.linalg.norm(table, ord=p, axis=1, keepdims=True)
    return np.where(norms > limit, table * (limit / (norms + 1e-7)), table)[index]


NOT_TRUE = "by design the gradient is not that of the value; tests/test_embedding.py looks at it"
row("embedding",
    Sample("matrix", call, (INDEX, TABLE), look_up),
    Sample("vector", call, (np.array([0, 4, 4, 1, 4]), TABLE), look_up),
    Sample("scalar", call, (np.array(2), TABLE), look_up),
    Sample("empty", call, (np.zeros((0, 2), np.int64), TABLE), look_up),
    Sample("int32", lambda M, i, w: call(M, i.int(), w), (INDEX, TABLE), look_up),
    Sample("padding", lambda M, i, w: call(M, i, w, padding_idx=-1), (INDEX, TABLE), look_up, grad=False,
           why=NOT_TRUE),
    Sample("frequency", lambda M, i, w: call(M, i, w, scale_grad_by_freq=True), (INDEX, TABLE), look_up,
           grad=False, why=NOT_TRUE),
    Sample("sparse", lambda M, i, w: call(M, i, w, sparse=True), (INDEX, TABLE), look_up, grad=False,
           why="the gradient is a sparse tensor: tests/test_sparse.py"),
    Sample("each once", lambda M, i, w: call(M, i, w, 4, scale_grad_by_freq=True),
           (np.array([2, 0, 3]), TABLE), look_up),
    Sample("max_norm", lambda M, i, w: call(M, i, w.detach() * 1.0, max_norm=1.0), (INDEX, TABLE),
           lambda i, w: _shrunk(i, w, 1.0), grad=False),
    Sample("max_norm 1", lambda M, i, w: call(M, i, w.detach() * 1.0, max_norm=1.0, norm_type=1.0),
           (INDEX, TABLE), lambda i, w: _shrunk(i, w, 1.0, 1.0), grad=False),
    namespace="nn.functional", errors=[
        ("index", lambda M: call(M, M.tensor([0, 5]), M.ones(5, 3)), IndexError,
         "input[1] is 5, but the table has 5 rows"),
        ("negative", lambda M: call(M, M.tensor([[0, -1]]), M.ones(5, 3)), IndexError, "input[0, 1] is -1"),
        ("floats", lambda M: call(M, M.ones(2), M.ones(5, 3)), TypeError, "integers"),
        ("table", lambda M: call(M, M.tensor([0]), M.ones(5)), RuntimeError, "(V, D)"),
        ("padding", lambda M: call(M, M.tensor([0]), M.ones(5, 3), padding_idx=5), IndexError,
         "padding_idx=5"),
        ("not a tensor", lambda M: call(M, [0], M.ones(5, 3)), TypeError, "must be a Tensor")])

row("one_hot",
    Sample("plain", lambda M, x: M.nn.functional.one_hot(x), (np.array([0, 2, 1]),),
           lambda x: np.eye(3, dtype=np.int64)[x], grad=False),
    Sample("classes", lambda M, x: M.nn.functional.one_hot(x, num_classes=6), (INDEX,),
           lambda x: np.eye(6, dtype=np.int64)[x], grad=False),
    Sample("scalar", lambda M, x: M.nn.functional.one_hot(x, 4), (np.array(1),),
           lambda x: np.eye(4, dtype=np.int64)[x], grad=False),
    Sample("empty", lambda M, x: M.nn.functional.one_hot(x, 4), (np.zeros((0, 2), np.int64),),
           lambda x: np.zeros((0, 2, 4), np.int64), grad=False),
    namespace="nn.functional", errors=[
        ("class", lambda M: M.nn.functional.one_hot(M.tensor([0, 3]), 3), IndexError, "there are 3 classes"),
        ("negative", lambda M: M.nn.functional.one_hot(M.tensor([-1])), IndexError, "input[0] is -1"),
        ("empty", lambda M: M.nn.functional.one_hot(M.zeros(0, dtype=M.int64)), ValueError, "num_classes"),
        ("floats", lambda M: M.nn.functional.one_hot(M.ones(2)), TypeError, "integers")])
