"""Rows of ops/shape/view.py and ops/write/strided.py."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from framework.errors import ShapeError

from ..base import Sample, integers, normal, row

M23, M234, M33 = normal(2, 3), normal(2, 3, 4), normal(3, 3)
EMPTY = np.zeros((2, 0, 3))


def _one(label: str, call: Any, reference: Any, x: Any = M234, **more: Any) -> Sample:
    return Sample(label, call, (x,), reference, **more)


row("reshape",
    _one("tuple", lambda M, x: M.reshape(x, (4, 6)), lambda x: x.reshape(4, 6)),
    _one("minus one", lambda M, x: x.reshape(-1, 2), lambda x: x.reshape(-1, 2)),
    _one("to nothing", lambda M, x: x.reshape(()), lambda x: x.reshape(()), normal(1, 1)),
    _one("from nothing", lambda M, x: M.reshape(x, (1, 1)), lambda x: x.reshape(1, 1), np.array(2.5)),
    _one("transposed", lambda M, x: x.t().reshape(6), lambda x: x.T.reshape(6), M23),
    _one("empty", lambda M, x: M.reshape(x, (0, 5)), lambda x: x.reshape(0, 5), EMPTY),
    _one("ints", lambda M, x: M.reshape(x, (3, 2)), lambda x: x.reshape(3, 2), integers(2, 3)),
    errors=[("count", lambda M: M.ones(2, 3).reshape(4), ShapeError, "[2, 3] (6 elements)"),
            ("two unknown", lambda M: M.ones(2, 3).reshape(-1, -1), ShapeError, "one -1"),
            ("indivisible", lambda M: M.ones(2, 3).reshape(4, -1), ShapeError, "does not fit"),
            ("not an int", lambda M: M.ones(2).reshape(2.0), TypeError, "float")])
row("view",
    _one("shape", lambda M, x: x.view(6, 4) * 2, lambda x: x.reshape(6, 4) * 2, noncontiguous=False),
    _one("minus one", lambda M, x: x.view(-1), lambda x: x.reshape(-1), noncontiguous=False),
    errors=[("needs a copy", lambda M: M.ones(2, 3).t().view(6), ShapeError, "reshape()")],
    namespace="")
row("view_as", Sample("shape", lambda M, x, y: x.view_as(y), (M23, normal(3, 2)),
                      lambda x, y: x.reshape(3, 2), noncontiguous=False), namespace="")
row("reshape_as", Sample("shape", lambda M, x, y: x.reshape_as(y), (M23, normal(3, 2)),
                         lambda x, y: x.reshape(3, 2)), namespace="")
row("expand_as", Sample("shape", lambda M, x, y: x.expand_as(y), (normal(3), M23),
                        lambda x, y: np.broadcast_to(x, (2, 3))), namespace="")
row("permute",
    _one("tuple", lambda M, x: M.permute(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    _one("numbers, negative", lambda M, x: x.permute(-1, 1, 0), lambda x: x.transpose(2, 1, 0)),
    _one("empty", lambda M, x: x.permute(2, 1, 0), lambda x: x.transpose(2, 1, 0), EMPTY),
    _one("no dims", lambda M, x: M.permute(x, ()), lambda x: x, np.array(1.5)),
    errors=[("too few", lambda M: M.ones(2, 3).permute(0), ShapeError, "needs 2 dims"),
            ("twice", lambda M: M.ones(2, 3).permute(0, 0), ShapeError, "twice"),
            ("range", lambda M: M.ones(2, 3).permute(0, 2), IndexError, "dims=2")])
row("transpose",
    _one("two dims", lambda M, x: M.transpose(x, 0, -1), lambda x: x.swapaxes(0, 2)),
    _one("number", lambda M, x: M.transpose(x, 0, 0), lambda x: x, np.array(1.5)),
    _one("swapdims", lambda M, x: x.swapdims(0, 1), lambda x: x.swapaxes(0, 1)),
    errors=[("range", lambda M: M.ones(2, 3).transpose(0, 2), IndexError, "dim1=2")])
row("swapaxes",
    _one("two dims", lambda M, x: M.swapaxes(x, 0, 1), lambda x: x.swapaxes(0, 1)),
    _one("by name", lambda M, x: x.swapaxes(axis0=-1, axis1=0), lambda x: x.swapaxes(0, 2)),
    errors=[("range", lambda M: M.ones(2, 3).swapaxes(0, 2), IndexError, "dim1=2")])
row("t",
    _one("matrix", lambda M, x: M.t(x), lambda x: x.T, M23),
    _one("vector", lambda M, x: x.t(), lambda x: x, normal(3)),
    errors=[("three dims", lambda M: M.ones(2, 3, 4).t(), ShapeError, "[2, 3, 4]")])
row("T", _one("matrix", lambda M, x: x.T, lambda x: x.T, M23), namespace="")
row("mT", _one("batch", lambda M, x: x.mT, lambda x: x.swapaxes(1, 2)),
    errors=[("vector", lambda M: M.ones(2).mT, ShapeError, "2 dimensions")], namespace="")
row("movedim",
    _one("one", lambda M, x: M.movedim(x, 0, -1), lambda x: np.moveaxis(x, 0, -1)),
    _one("several", lambda M, x: x.movedim((0, 1), (1, 2)), lambda x: np.moveaxis(x, (0, 1), (1, 2))),
    _one("moveaxis", lambda M, x: M.moveaxis(x, (2, 0), (0, 1)), lambda x: np.moveaxis(x, (2, 0), (0, 1))),
    errors=[("counts", lambda M: M.ones(2, 3).movedim((0, 1), 0), ShapeError, "2 source"),
            ("twice", lambda M: M.ones(2, 3).movedim((0, 0), (0, 1)), ShapeError, "twice")])
row("unsqueeze",
    _one("front", lambda M, x: M.unsqueeze(x, 0), lambda x: x[None]),
    _one("back", lambda M, x: x.unsqueeze(-1), lambda x: x[..., None]),
    _one("number", lambda M, x: x.unsqueeze(0), lambda x: x[None], np.array(1.5)),
    errors=[("range", lambda M: M.ones(2).unsqueeze(2), IndexError, "dim=2")])
row("squeeze",
    _one("all", lambda M, x: M.squeeze(x), lambda x: x.squeeze(), normal(1, 3, 1)),
    _one("one dim", lambda M, x: x.squeeze(-1), lambda x: x.squeeze(-1), normal(1, 3, 1)),
    _one("dim of another size", lambda M, x: x.squeeze(1), lambda x: x, normal(1, 3, 1)),
    _one("several", lambda M, x: x.squeeze((0, 2)), lambda x: x.squeeze(), normal(1, 3, 1)),
    errors=[("range", lambda M: M.ones(2).squeeze(1), IndexError, "dim=1")])
row("flatten",
    _one("all", lambda M, x: M.flatten(x), lambda x: x.reshape(-1)),
    _one("from one", lambda M, x: x.flatten(1), lambda x: x.reshape(2, 12)),
    _one("range", lambda M, x: x.flatten(0, 1), lambda x: x.reshape(6, 4)),
    _one("number", lambda M, x: x.flatten(), lambda x: x.reshape(1), np.array(1.5)),
    _one("empty", lambda M, x: x.flatten(1), lambda x: x.reshape(2, 0), EMPTY),
    errors=[("order", lambda M: M.ones(2, 3).flatten(1, 0), ShapeError, "start_dim=1")])
row("ravel", _one("all", lambda M, x: M.ravel(x), lambda x: x.ravel()),
    _one("empty", lambda M, x: x.ravel(), lambda x: x.ravel(), EMPTY))
row("unflatten",
    _one("sizes", lambda M, x: x.unflatten(-1, (2, 2)), lambda x: x.reshape(2, 3, 2, 2)),
    _one("unknown", lambda M, x: M.unflatten(x, 0, (-1, 1)), lambda x: x.reshape(2, 1, 3, 4)),
    errors=[("sizes", lambda M: M.ones(2, 6).unflatten(1, (4, 2)), ShapeError, "does not fit")])
row("select",
    _one("dim", lambda M, x: M.select(x, 1, 2), lambda x: x[:, 2]),
    _one("negative", lambda M, x: x.select(-1, -1), lambda x: x[..., -1]),
    _one("to a number", lambda M, x: x.select(0, 1), lambda x: x[1], normal(3)),
    errors=[("range", lambda M: M.ones(2, 3).select(1, 3), IndexError, "index=3")])
row("narrow",
    _one("dim", lambda M, x: M.narrow(x, 1, 1, 2), lambda x: x[:, 1:3]),
    _one("nothing", lambda M, x: x.narrow(0, 2, 0), lambda x: x[2:]),
    _one("negative", lambda M, x: x.narrow(-1, -3, 2), lambda x: x[..., 1:3]),
    errors=[("range", lambda M: M.ones(3).narrow(0, 2, 2), IndexError, "length=2")])
row("diagonal",
    _one("matrix", lambda M, x: M.diagonal(x), lambda x: x.diagonal(), M33),
    _one("above", lambda M, x: x.diagonal(1), lambda x: x.diagonal(1), M23),
    _one("below", lambda M, x: x.diagonal(-1), lambda x: x.diagonal(-1), normal(3, 2)),
    _one("batch", lambda M, x: x.diagonal(0, -2, -1), lambda x: x.diagonal(0, 1, 2)),
    _one("first and last", lambda M, x: x.diagonal(1, 2, 0), lambda x: x.diagonal(1, 2, 0)),
    _one("beyond", lambda M, x: x.diagonal(3), lambda x: x.diagonal(3), M33),
    _one("ints", lambda M, x: x.diagonal(), lambda x: x.diagonal(), integers(3, 3)),
    errors=[("same dim", lambda M: M.ones(2, 2).diagonal(0, 1, 1), ShapeError, "dim1=1"),
            ("vector", lambda M: M.ones(2).diagonal(), IndexError, "dim2=1")])
row("unfold",
    _one("apart", lambda M, x: x.unfold(0, 2, 2), lambda x: sliding_window_view(x, 2)[::2], normal(6)),
    _one("overlap", lambda M, x: x.unfold(1, 2, 1), lambda x: sliding_window_view(x, 2, 1)),
    _one("steps", lambda M, x: x.unfold(-1, 3, 2), lambda x: sliding_window_view(x, 3)[::2], normal(8)),
    _one("size 0", lambda M, x: x.unfold(0, 0, 1), lambda x: np.zeros((4, 0)), normal(3)),
    _one("number", lambda M, x: x.unfold(0, 1, 1), lambda x: x.reshape(1), np.array(1.5)),
    errors=[("long", lambda M: M.ones(2).unfold(0, 3, 1), ShapeError, "size=3"),
            ("step", lambda M: M.ones(2).unfold(0, 1, 0), ValueError, "step")],
    namespace="")
row("storage_offset", Sample("slice", lambda M, x: M.tensor(x[1:, 2:].storage_offset()), (M23,),
                             lambda x: np.array(5), grad=False, noncontiguous=False), namespace="")
row("as_strided",
    _one("overlap", lambda M, x: M.as_strided(x, (3, 2), (1, 1)),
         lambda x: as_strided(x, (3, 2), (8, 8)), normal(4), noncontiguous=False),
    _one("from a slice", lambda M, x: (x * 1)[1:].as_strided((2, 2), (1, 1), 3),
         lambda x: x.reshape(-1)[[[3, 4], [4, 5]]], M23, noncontiguous=False),
    _one("of a transpose", lambda M, x: (x * 1).t().as_strided((2, 2), (1, 2), 1),
         lambda x: x.reshape(-1)[[[1, 3], [2, 4]]], M23, noncontiguous=False),
    _one("number", lambda M, x: x.as_strided((), (), 2), lambda x: x[2], normal(3), noncontiguous=False),
    errors=[("outside", lambda M: M.ones(3).as_strided((2, 2), (2, 1)), ShapeError, "3 elements"),
            ("counts", lambda M: M.ones(3).as_strided((2,), (2, 1)), ShapeError, "equally many")])
row("select_scatter",
    Sample("row", lambda M, x, y: M.select_scatter(x, y, 0, 1), (M23, normal(3)),
           lambda x, y: np.stack([x[0], y])),
    Sample("column", lambda M, x, y: x.select_scatter(y, -1, -1), (M23, normal(2)),
           lambda x, y: np.column_stack([x[:, :2], y])),
    errors=[("shape", lambda M: M.ones(2, 3).select_scatter(M.ones(2), 0, 0), ShapeError, "[3]"),
            ("range", lambda M: M.ones(2, 3).select_scatter(M.ones(3), 0, 2), IndexError, "size 2")])
row("as_strided_scatter",
    Sample("every second", lambda M, x, y: M.as_strided_scatter(x, y, (2, 2), (3, 1), 1), (M23, normal(2, 2)),
           lambda x, y: np.concatenate([x[:, :1], y], 1), torch=False,
           why="its gradient reaches what was replaced; the values are compared below", noncontiguous=False),
    Sample("values", lambda M, x, y: x.as_strided_scatter(y, (2,), (2,)), (M23, normal(2)),
           lambda x, y: np.array([y[0], x[0, 1], y[1], *x[1]]).reshape(2, 3), grad=False,
           noncontiguous=False),
    Sample("twice", lambda M, x, y: M.as_strided_scatter(x, y, (2, 2), (1, 1)), (M23, normal(2, 2)),
           lambda x, y: np.concatenate([y.ravel()[[0, 2, 3]], x.ravel()[3:]]).reshape(2, 3), torch=False,
           why="which of the values for one place stays is left open; ours is the last", noncontiguous=False),
    errors=[("shape", lambda M: M.as_strided_scatter(M.ones(4), M.ones(3), (2,), (1,)), ShapeError, "[2]")])
row("slice_scatter",
    Sample("part", lambda M, x, y: M.slice_scatter(x, y, 0, 1, 3), (normal(4), normal(2)),
           lambda x, y: np.concatenate([x[:1], y, x[3:]])),
    Sample("steps", lambda M, x, y: x.slice_scatter(y, 1, step=2), (M23, normal(2, 2)),
           lambda x, y: np.stack([y[:, 0], x[:, 1], y[:, 1]], 1)),
    errors=[("shape", lambda M: M.ones(4).slice_scatter(M.ones(3), 0, 1, 3), ShapeError, "[2]")])
row("diagonal_scatter",
    Sample("main", lambda M, x, y: M.diagonal_scatter(x, y), (M33, normal(3)),
           lambda x, y: x - np.diag(np.diag(x)) + np.diag(y)),
    Sample("above", lambda M, x, y: x.diagonal_scatter(y, 1), (M33, normal(2)),
           lambda x, y: x - np.diag(np.diag(x, 1), 1) + np.diag(y, 1)),
    errors=[("shape", lambda M: M.ones(2, 2).diagonal_scatter(M.ones(3)), ShapeError, "[2]")])
