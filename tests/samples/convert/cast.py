"""Rows of ops/convert/cast.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError

from ..base import Sample, integers, normal, row

M23, IMAGES = normal(2, 3), normal(2, 3, 2, 2)

row("to",
    Sample("dtype", lambda M, x: x.to(M.float64), (M23,), lambda x: x),
    Sample("to single and back", lambda M, x: x.to(M.float64).to(dtype=M.float64) * 2, (M23,),
          lambda x: x * 2),
    Sample("ints", lambda M, x: x.to(M.int64), (M23 * 10,), lambda x: x.astype(np.int64), grad=False),
    Sample("device", lambda M, x: x.to("cpu") * 1, (M23,), lambda x: x),
    Sample("device and dtype", lambda M, x: x.to("cpu", M.float64), (integers(2, 3),),
           lambda x: x.astype(float)),
    Sample("like another", lambda M, x, y: x.to(y), (M23, normal(1)), lambda x, y: x),
    Sample("copy", lambda M, x: x.to(x.dtype, copy=True), (M23,), lambda x: x),
    errors=[("dtype", lambda M: M.ones(2).to(np.dtype("U1")), DTypeError, "not supported")],
    namespace="")
row("cpu", Sample("here", lambda M, x: x.cpu() * 1, (M23,), lambda x: x), namespace="")
row("cuda", namespace="")  # needs a device: the CUDA tests have it
row("type_as", Sample("ints", lambda M, x, y: x.type_as(y), (M23 * 10, integers(2)),
                      lambda x, y: x.astype(np.int64), grad=False),
    Sample("floating", lambda M, x, y: x.type_as(y), (integers(3), M23), lambda x, y: x.astype(float),
           grad=False), namespace="")


def _caster(name: str, dtype: Any, x: np.ndarray = M23 * 10, tol: float = 1.0) -> None:
    row(name, Sample("floats", lambda M, x: getattr(x, name)(), (x,), lambda x: x.astype(dtype), grad=False,
                     tol=tol),
        Sample("ints", lambda M, x: getattr(x, name)(), (integers(2, 3),), lambda x: x.astype(dtype),
               grad=False), namespace="")


_caster("float", np.float32)
_caster("half", np.float16)
row("bfloat16", namespace="")  # needs the lowprecision extra: tests/test_bfloat16.py
_caster("int", np.int32)
_caster("long", np.int64)
_caster("short", np.int16)
_caster("byte", np.uint8, np.abs(M23) * 10)
_caster("char", np.int8)
_caster("bool", np.bool_)
_caster("cfloat", np.complex64)
_caster("cdouble", np.complex128, tol=1e4)
row("double", Sample("floats", lambda M, x: x.double() * 2.0, (M23,), lambda x: x * 2, tol=1e4,
                     why="the float32 run converts rounded numbers"),
    Sample("ints", lambda M, x: x.double(), (integers(2, 3),), lambda x: x.astype(float)), namespace="")
row("clone", Sample("copy", lambda M, x: M.clone(x), (M23,), lambda x: x),
    Sample("channels last", lambda M, x: x.clone(memory_format=M.channels_last), (IMAGES,), lambda x: x),
    Sample("transposed", lambda M, x: x.t().clone(), (M23,), lambda x: x.T),
    Sample("number", lambda M, x: x.clone(), (np.array(1.5),), lambda x: x),
    errors=[("not a tensor", lambda M: M.clone([1.0]), TypeError, "list")])
row("contiguous", Sample("transposed", lambda M, x: x.t().contiguous(), (M23,), lambda x: x.T),
    Sample("already", lambda M, x: x.contiguous() * 1, (M23,), lambda x: x),
    Sample("channels last", lambda M, x: x.contiguous(memory_format=M.channels_last), (IMAGES,),
           lambda x: x),
    namespace="", errors=[
        ("a matrix", lambda M: M.ones(2, 3).contiguous(memory_format=M.channels_last), RuntimeError, "4 dim"),
        ("no format", lambda M: M.ones(2, 3).contiguous(memory_format=3), TypeError, "memory_format")])
row("detach_", Sample("cut", lambda M, x: (x * 2).detach_(), (M23,), lambda x: x * 2, grad=False),
    errors=[("view", lambda M: M.ones(2)[0:1].detach_(), RuntimeError, "view")], namespace="")
