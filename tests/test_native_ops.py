"""Every native kernel that the sample table reaches beside its NumPy formula, on the same arrays."""

from contextlib import contextmanager

import numpy as np
import pytest
from table import ROWS, cast_inputs, changes_inputs, cotangents, floating_leaves, row_id, tensors

import framework as fw
from framework import _native
from framework.ops.language.elementwise import Elementwise
from framework.ops.record.op import OPS

pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
TOLERANCE = {"f4": 2e-5, "f8": 1e-12, "c8": 2e-5, "c16": 1e-12, "f2": 2e-3}
# an argument of these is the memory to fill, or the state of a generator
STATEFUL = {op.name for op in OPS if "random" in op.name or "dropout" in op.name}


def copied(values):
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


def parts(out):
    return [np.asarray(y) for y in (out if isinstance(out, (tuple, list)) else (out,)) if y is not None]


def turned(a):
    return np.conj(a.swapaxes(-1, -2))


# vectors are free to turn: what they make of the values is compared, and that they are orthonormal
FREE = {"svd": lambda U, S, Vh: (S, U[..., :S.shape[-1]] * S[..., None, :] @ Vh[..., :S.shape[-1], :],
                                 turned(U) @ U, Vh @ turned(Vh)),
        "eigh": lambda w, V: (w, V * w[..., None, :] @ turned(V), turned(V) @ V)}

compared, ran = set(), set()


class Twins:
    """While on, every record's kernel runs twice: as it is, and by its NumPy formula."""

    @contextmanager
    def on(self):
        before = {op: op.cpu for op in OPS}
        for op in OPS:
            if op.name not in STATEFUL and (op.native or isinstance(op, Elementwise)):
                op.cpu = self._beside(op, op.cpu)
        try:
            yield self
        finally:
            for op, cpu in before.items():
                op.cpu = cpu

    def _beside(self, op, kernel):
        def cpu(*arrays, **settings):
            same = copied(arrays)
            out = kernel(*arrays, **settings)
            op.cpu = cpu  # an elementwise op puts its program there at its first run
            if isinstance(settings.get("out"), np.ndarray):
                del settings["out"]  # memory that the kernel wrote: the formula's result is another
            with np.errstate(all="ignore"):
                want = op.kernel(np, *same, **settings)
            seen = FREE.get(op.name, lambda *all: all)
            for got, expected in zip(seen(*parts(out)), seen(*parts(want)), strict=True):
                self._compare(op, got, expected)
            compared.add(op.name)
            return out
        return cpu

    @staticmethod
    def _compare(op, got, want):
        assert (got.shape, got.dtype) == (want.shape, want.dtype), op
        tolerance = TOLERANCE.get(got.dtype.str[1:])
        if tolerance is None:
            np.testing.assert_array_equal(got, want, err_msg=op.name)
        else:
            scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=op.name)


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_kernel_is_the_formula(row):
    ran.add(row_id(row))
    for sample in row.samples:
        for dtype in (np.float32, np.float64):
            try:
                with Twins().on():
                    forward_and_twice_back(row, sample, tensors(cast_inputs(sample, dtype), grad=sample.grad))
            except Exception as error:
                error.add_note(f"in sample {sample.label!r} of {row_id(row)} {np.dtype(dtype).name}")
                raise


def forward_and_twice_back(row, sample, xs):
    given = [x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in xs]
    leaves = floating_leaves(sample.call(fw, *given))
    inputs = [x for x in xs if isinstance(x, fw.Tensor) and x.requires_grad]
    for order in range(min(sample.order, 2) if sample.grad else 0):
        if leaves:
            again = order + 1 < sample.order
            given = seeds(leaves, again)
            found = fw.autograd.grad(leaves, inputs, given, create_graph=again, allow_unused=True)
            leaves = [g for g in found if g is not None and g.requires_grad]
            inputs = inputs + given


def seeds(leaves, grad):
    return [fw.tensor(np.asarray(c, y.numpy(force=True).dtype)).requires_grad_(grad)
            for c, y in zip(cotangents(leaves), leaves)]


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_sparse_kernels_are_their_formulas(dtype):
    """Rows of the table take dense tensors only; here are sparse ones, and rows of a table."""
    sparse = fw.sparse  # its records are made when it is first named
    fw.manual_seed(0)
    dense = fw.rand(40, 30, dtype=dtype) * (fw.rand(40, 30) > 0.7)
    with Twins().on():
        for layout in ("to_sparse", "to_sparse_csr"):
            x = getattr(dense, layout)().requires_grad_()
            y = fw.rand(30, 7, dtype=dtype, requires_grad=True)
            (x @ y).square().sum().backward()
            assert y.grad is not None and x.grad is not None
        pattern = dense.to_sparse_csr()
        sparse.sampled_addmm(pattern, fw.rand(40, 5, dtype=dtype), fw.rand(5, 30, dtype=dtype))
        table = fw.rand(50, 6, dtype=dtype, requires_grad=True)
        fw.nn.functional.embedding(fw.tensor([[3, 3], [0, 49]]), table, sparse=True).sum().backward()
    assert {"spmm", "sddmm", "sparse_embedding"} <= compared


def test_no_native_kernel_was_left_out():
    if len(ran) < len(ROWS):
        pytest.skip("knows only after the whole table in one process")
    quantized = {"int8_conv", "int8_linear"}  # tests/test_quantization.py compares them
    # of tensors in no graph alone: tests/test_native_choices.py, test_native_made.py
    ungraphed = {"reflected", "kron", "index_reduce", "repeat_each", "quantile"}
    narrow = {"nextafter_bfloat16"}  # tests/test_native_sixteen_bits.py
    missing = {op.name for op in OPS if op.native} - STATEFUL - quantized - ungraphed - narrow - compared
    assert not missing, f"no sample reaches the kernels of {sorted(missing)}"


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32, np.float64, np.complex128])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 5])
def test_short_rows_are_copied_as_elements(dtype, width):
    """Rows of 8 to 64 bytes that lie side by side in both places, also those that begin anywhere."""
    x = np.arange(3 * 4 * 5 * (width + 1)).reshape(3, 4, 5, width + 1).astype(dtype)[..., 1:]
    for axes in ((1, 0, 2, 3), (2, 1, 0, 3), (0, 2, 1, 3)):
        turned = x.transpose(axes)
        found = fw.from_numpy(turned).contiguous().numpy() if dtype is not np.complex128 else \
            _native.module.contiguous(turned)
        assert found.flags.c_contiguous and found.tobytes() == turned.tobytes()


@pytest.mark.skipif(_native.module is None, reason="needs the native extension")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64"])
def test_filled_tensors_are_of_that_number_whatever_their_size(dtype):
    kind = getattr(fw, dtype)
    for shape in ((), (0,), (1,), (3, 5), (7, 1, 9), (200, 331)):
        like = fw.zeros(shape, dtype=kind)
        for number in (0, 1, -3):
            full = fw.full(shape, number, dtype=kind)
            for made in (fw.full_like(like, number), full, like.clone().fill_(number)):
                assert made.dtype is kind and made.shape == shape
                assert bool((made.double() == number).all()), (shape, number)
    assert bool(fw.full_like(fw.zeros(5), -0.0).signbit().all())
    assert bool(fw.full_like(fw.zeros(5), np.nan).isnan().all())


@pytest.mark.skipif(_native.module is None, reason="needs the native extension")
def test_filled_declines_what_is_no_number_shape_or_dtype():
    filled, like = _native.module.filled, _native.module.filled_like
    f4 = np.dtype("float32")
    for shape in (None, "ab", (-1,), (1 << 40, 1 << 40), [2.5], (2, "x"), range(3)):
        assert filled(shape, f4, 1.0) is NotImplemented
    for dtype in (None, "float32", np.float32, *map(np.dtype, (">f4", "O", "S3", [("a", "f4")]))):
        assert filled((2,), dtype, 1.0) is NotImplemented
    for number in ("1", [], 1e300, 1 << 2000, np.float32(1), object()):
        assert filled((2,), f4, number) is NotImplemented
        assert like(fw.zeros(2), number) is NotImplemented
    for number in (128, -129, 1 << 70, 1.5):
        assert filled((2,), np.dtype("int8"), number) is NotImplemented
    for x in (None, 3, np.zeros(2), object()):
        assert like(x, 1) is NotImplemented
    for wrong in ((), (1,), (1, 2, 3, 4)):
        with pytest.raises(TypeError):
            filled(*wrong)
        with pytest.raises(TypeError):
            like(*wrong)


def test_ones_like_another_order_of_memory_lie_in_it():
    x = fw.zeros(2, 3, 4, 5).to(memory_format=fw.channels_last)
    for made in (fw.ones_like(x), fw.full_like(x, 2.0), fw.empty_like(x)):
        assert made.stride() == x.stride()
    assert fw.ones_like(fw.zeros(3, 4).T).stride() == (1, 4)
    assert fw.ones_like(fw.zeros(3, 1).expand(3, 4)).is_contiguous()


@pytest.mark.parametrize("change", [lambda y: y.neg_(), lambda y: y.relu_(), lambda y: y.sin_(),
                                    lambda y: y.mul_(y),
                                    lambda y: fw.nn.functional.threshold(y, 0.1, 0.3, inplace=True)])
def test_a_recorded_write_may_be_written_over_and_keeps_what_backward_wants(change):
    x = fw.tensor(np.linspace(-2, 2, 50), requires_grad=True)
    y, z = x * 1.0, x * 1.0
    w = z.clone()
    place = y.data_ptr()
    assert change(y) is y and y.data_ptr() == place
    y.mul_(3.0)  # what backward wants of the write before stands aside
    change(w)
    expected, = fw.autograd.grad((w * 3.0).sum(), x)
    found, = fw.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(y.detach().numpy(), w.detach().numpy() * 3.0)


@pytest.mark.parametrize("setting", [0.1, 0.0, -1.0, np.nan, np.inf])
def test_threshold_and_softshrink_of_numbers_are_their_formulas(setting):
    x = np.array([-np.inf, -1.5, -0.1, -0.0, 0.0, 0.1, 0.2, 3.0, np.inf, np.nan] * 13, np.float32)
    for value in (0.5, np.nan, -0.0):
        out = fw.nn.functional.threshold(fw.from_numpy(x), setting, value).numpy()
        np.testing.assert_array_equal(out, np.where(x <= np.float32(setting), np.float32(value), x))
    if setting >= 0 and np.isfinite(setting):
        out = fw.nn.functional.softshrink(fw.from_numpy(x), setting).numpy()
        limit = np.float32(setting)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(out, x - np.minimum(np.maximum(x, -limit), limit))
