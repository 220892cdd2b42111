"""Samples of the table on a device whose kernels run, beside the CPU: numbers, gradients, texts of errors.

Every row in every dtype; single ones by tests/stress/cuda_dtypes.py.
"""

import warnings

import numpy as np
import pytest
from device_dtypes import DTYPES, difference
from table import ROWS, row_id
from test_cuda import On, cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_by_kernels_equal_the_cpus(dtype, part, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in ROWS[part::PARTS]:
            found += [f"{row_id(row)}, {sample.label!r}: {text}" for sample in row.samples
                      if (text := difference(row, sample, dtype, On))]
    assert not found, f"{len(found)} samples differ in {dtype}:\n" + "\n".join(found)


def laid(rng, dtype, batch, rows, columns, how):
    """A batch of matrices that lies in a certain way, as NumPy has it."""
    if how == "columns":
        return np.swapaxes(laid(rng, dtype, batch, columns, rows, "rows"), -1, -2)
    if how == "steps":  # rows with room between them, batches apart
        return laid(rng, dtype, batch, 2 * rows, columns + 3, "rows")[..., ::2, 1:-2]
    if how == "backwards":  # no step that cuBLAS knows: copied
        return laid(rng, dtype, batch, rows, columns, "rows")[..., ::-1, ::-1]
    if how == "shared":
        return np.broadcast_to(laid(rng, dtype, (), rows, columns, "rows"), (*batch, rows, columns))
    return rng.standard_normal((*batch, rows, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_products_take_operands_as_they_lie(dtype, raw, cupy):  # noqa: F811
    """Matrices and batches in any layout: NumPy's numbers by one call; copies only where there is no step."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from cupy import counts, cublas

    from framework.ops.linalg.cublas import product

    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    fw.empty(1, dtype=fw.bfloat16)
    rng, close = np.random.default_rng(0), {"float64": 1e-12, "float32": 1e-5}.get(dtype, 2e-2)
    ways = ("rows", "columns", "steps", "backwards", "shared")
    for batch, other in (((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), ()), ((), (4,)), ((2, 1), (3,))):
        for x_way in ways:
            for y_way in ways:
                x, y = laid(rng, kind, batch, 4, 5, x_way), laid(rng, kind, other, 5, 6, y_way)
                want = np.matmul(x.astype("d"), y.astype("d"))
                # a view of CuPy's is what lies so on a device; ``asarray`` would copy it in rows
                theirs = [cupy._new(a, 0) for a in (x, y)]
                counts.clear()
                got = product(*theirs)
                assert got.shape == want.shape and got.dtype == kind and counts.launches["matmul"] == 1
                np.testing.assert_allclose(got.get().astype("d"), want, close, close)
                if len(batch) < 2 and "backwards" not in (x_way, y_way):
                    assert counts.launches.total() == 1, (batch, other, x_way, y_way)
    vectors = [cupy.asarray(rng.standard_normal(s).astype(kind)) for s in ((5,), (4, 5), (3, 5, 2), (5, 1))]
    v, m, b, c = vectors
    for x, y in ((v, v), (m, v), (v, b), (m, c), (c.T, v)):
        got = product(x, y)
        want = np.matmul(x.get().astype("d"), y.get().astype("d"))
        assert got.shape == want.shape
        np.testing.assert_allclose(got.get().astype("d"), want, close, close)
    for y in (m, cupy.asarray(np.zeros((5, 0), kind))):
        assert product(m, y) is NotImplemented
    try:
        fw.set_float32_matmul_precision("high")
        product(m, c)
        product(m, b)
    finally:
        fw.set_float32_matmul_precision("highest")
    product(m, c)
    wide = {"float64": 70}.get(dtype, 68)
    assert [way for _, way, _, _ in cublas.calls[-3:]] == [*[77 if dtype == "float32" else wide] * 2, wide]
