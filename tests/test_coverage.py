"""Nothing is without a test: public functions have rows, records are reached, jvp words are true."""

import importlib
import os
import pkgutil

import numpy as np
import pytest
from table import BROKEN, ROWS
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels
from test_device_products import lt  # noqa: F401 - what stands for cuBLASLt
from test_device_recurrent import rnn  # noqa: F401 - what stands for cuDNN
from watch import leaf

import framework as fw
from framework import _native
from framework.autograd.forward import push, transposed
from framework.ops import OPS, PUBLIC
from framework.ops.language.elementwise import Elementwise
from framework.ops.language.expression import array_function
from framework.seam import intercept


def test_sample_files_load():
    """A file of rows that cannot be imported tests nothing."""
    assert not BROKEN, "\n".join(
        f"{name}: {type(e).__name__}: {e}" for name, e in BROKEN.items()
    )


def test_every_public_function_has_a_row():
    """An alias is covered by the row of any name of the same function."""
    covered = {
        p.function for p in PUBLIC for r in ROWS if (p.namespace, p.name) == (r.namespace, r.name)
    }
    missing = sorted(
        {f"{p.namespace or 'method'}.{p.name}" for p in PUBLIC if p.function not in covered}
    )
    assert not missing, (
        f"{len(missing)} public functions have no row in tests/samples: {', '.join(missing)}"
    )


def test_every_row_is_of_a_public_function():
    """A row of a name that does not exist tests something else."""
    known = {(p.namespace, p.name) for p in PUBLIC}
    strange = [
        f"{r.namespace}.{r.name}"
        for r in ROWS
        if (r.namespace, r.name) not in known and not reachable(r)
    ]
    assert not strange, f"rows of no public function: {', '.join(strange)}"


def reachable(row):
    """Whether the row's name can be found in its home (creation functions and methods are no ops)."""
    home = fw.Tensor if row.namespace in ("", "Tensor") else fw
    for part in row.namespace.removeprefix("framework").split(".") if row.namespace != "Tensor" else ():
        home = getattr(home, part, None) if part else home
    return hasattr(home, row.name)


def sparse_products():
    """The product with a sparse matrix, and that at the places of one."""
    places, dense = fw.eye(3).to_sparse_csr(), fw.ones(3, 3)
    fw.sparse.mm(places, dense)
    fw.sparse.sampled_addmm(places, dense, dense)


def sparse_rows():
    """An embedding whose gradient is a sparse tensor."""
    fw.nn.Embedding(5, 3, sparse=True)(fw.tensor([1, 2])).sum().backward()


def batched():
    """The border of vmap, both ways."""
    fw.func.vmap(fw.sin)(fw.ones(2, 3))


def ruled():
    """A Function with a rule of its own for vmap."""

    class Twice(fw.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return Twice.apply(x), 0
    fw.func.vmap(Twice.apply)(fw.ones(2, 3))


def rounded():
    """An op that has a record of its own for bfloat16."""
    pytest.importorskip("ml_dtypes")
    x = fw.ones(2, dtype=fw.bfloat16)
    fw.nextafter(x, x + 1)


def turned():
    """Angles for a distribution, which no function gives."""
    fw.distributions.VonMises(0.0, 1.0).sample()


def joined():
    """Layers that run as one native call."""
    nn, image = fw.nn, fw.ones(2, 3, 8, 8)
    nn.Sequential(nn.Linear(3, 4), nn.ReLU())(fw.ones(2, 3))
    nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())(image)
    with fw.no_grad():
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()(image)


def small_numbers():
    """Layers of 8-bit numbers."""
    nn, quantize = fw.nn, fw.ao.quantization.quantize_dynamic
    quantize(nn.Linear(3, 4))(fw.ones(2, 3))
    quantize(nn.Conv1d(3, 4, 2), {nn.Conv1d})(fw.ones(2, 3, 4))


def linear_layers():
    """With an activation behind them, or between two."""
    nn, x = fw.nn, fw.ones(2, 8, device="cuda")
    layers = nn.Sequential(nn.Linear(8, 8), nn.GELU("tanh")).to("cuda")
    layers(x)
    with fw.no_grad():
        layers(x)
    nn.TransformerEncoderLayer(8, 2, 16, 0.0).to("cuda")(x[None])


def recurrent_layers():
    """Several at once, there and back."""
    x = fw.ones(5, 2, 3, device="cuda", requires_grad=True)
    fw.autograd.grad(fw.nn.LSTM(3, 4, 2).to("cuda")(x)[0].sum(), x, create_graph=True)


def norms():
    """Of order 2, whose slope is one launch."""
    x = fw.ones(3, device="cuda", requires_grad=True)
    fw.linalg.vector_norm(x).backward()


ON_GPUS = {  # what only they have, and what runs it
    **dict.fromkeys(("linear_gelu", "linear_gelu_kept", "feed_forward"), linear_layers),
    **dict.fromkeys(("recurrent_stack", "recurrent_stack_grad"), recurrent_layers),
    "vector_norm_slope of 2": norms,
}
ELSEWHERE = {  # what no public function's row can reach, and what does
    "spmm": sparse_products, "sddmm": sparse_products, "sparse_embedding": sparse_rows,
    "nextafter_bfloat16": rounded, "von_mises": turned,
    "batch_in": batched, "batch_out": batched, "batch_open": ruled, "batch_again": ruled,
    "linear_relu": joined, "conv_relu": joined, "conv_norm": joined,
    "int8_linear": small_numbers, "int8_conv": small_numbers,
    "transfer": None,  # moves between devices: tests/test_cuda.py
}


def test_every_record_is_reached(watch, request):
    """Forward or backward, some sample runs each record."""
    ran = sum("test_samples.py" in item.nodeid for item in request.session.items)
    if ran < 4 * len(ROWS) or "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("needs a run of the whole table in one process")
    if _native.module is None:
        pytest.skip("some records are of native kernels only, whose place others take without them")
    missing = sorted(op.name for op in OPS if op not in watch.seen
                     and op.name not in ELSEWHERE.keys() | ON_GPUS.keys())
    assert not missing, f"{len(missing)} records were reached by no sample: {', '.join(missing)}"


@pytest.mark.parametrize("program", sorted({p for p in ELSEWHERE.values() if p}, key=lambda p: p.__name__))
def test_records_that_no_sample_reaches(program):
    """The programs named above do run the records that they are named for."""
    if program is joined and _native.module is None:
        pytest.skip("layers are joined by the native kernels only")
    assert {name for name, wanted in ELSEWHERE.items() if wanted is program} <= ran(program)


def ran(program):
    """The names of the records that gave a result."""
    names = set()

    def look(event, proceed):
        result = proceed(*event.inputs, **event.settings)
        names.add(event.name)
        return result
    with intercept(look, shortcuts=True):
        program()
    return names


@pytest.mark.parametrize("program", sorted(set(ON_GPUS.values()), key=lambda p: p.__name__))
def test_records_that_only_gpus_have(program, raw, cupy, lt, rnn, monkeypatch):  # noqa: F811
    called, kernel_for = set(), Elementwise.kernel_for

    def look(op, arrays):  # rules call records on arrays, which no interceptor sees
        called.add(op.name)
        return kernel_for(op, arrays)
    monkeypatch.setattr(Elementwise, "kernel_for", look)
    assert {name for name, wanted in ON_GPUS.items() if wanted is program} <= ran(program) | called


def test_every_differentiable_record_infers():
    """A record without a shape rule cannot be traced or explained; what is unique only values tell."""
    for module in pkgutil.walk_packages(fw.ops.__path__, "framework.ops."):  # some are read when first used
        importlib.import_module(module.name)
    by_values = ("put_view", "_unique", "_unique_consecutive")
    missing = sorted(op.name for op in OPS if op.has_vjp and op.infer is None
                     and op.name not in by_values)
    assert not missing, f"records without infer: {', '.join(missing)}"


@pytest.mark.parametrize("word", ["linear", "multilinear", "symmetric"])
def test_jvp_word_is_true(word, watch):
    """Pushing tangents by the word gives what differentiating the reverse rule gives."""
    calls = [
        c
        for op, found in watch.calls.items()
        if op.jvp == word
        for c in found.values()
        if c.op.has_vjp and all(a.dtype.kind != "c" for a in c.arrays if isinstance(a, np.ndarray))
    ]
    rng, wrong = np.random.default_rng(3), []
    for call in calls:
        inputs = [
            leaf(a).requires_grad_()
            if isinstance(a, np.ndarray) and a.dtype.kind == "f"
            else fw.tensor(a)
            if isinstance(a, np.ndarray)
            else a
            for a in call.arrays
        ]
        tangents = [
            leaf(a, rng) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else None
            for a in call.arrays
        ]
        if all(t is None for t in tangents):
            continue
        try:
            outs = call.op.run(*inputs, **call.settings)
            if not all(y.is_floating_point() for y in (outs if isinstance(outs, tuple) else (outs,))):
                continue  # a cast to whole or complex numbers carries no tangent
            results = outs if isinstance(outs, tuple) else (outs,)
            node = results[0]._node.edges[0] if call.op.differentiable > 1 else results[0]._node
            got = push(node, inputs, tangents, results)
            want = transposed(node, tangents, results)
            for y, a, b in zip(results, got, want, strict=False):
                a, b = [np.zeros(y.shape) if t is None else t.detach().numpy() for t in (a, b)]
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
        except Exception as error:
            text = str(error).strip().replace("\n", " ")[:300]
            wrong.append(
                f"{call.op.name}{[getattr(a, 'shape', a) for a in call.arrays]} {call.settings}: "
                f"{type(error).__name__}: {text}"
            )
    assert not wrong, f"{len(wrong)} calls where jvp={word!r} is not true:\n" + "\n".join(wrong)


ELEMENTWISE = [op for op in OPS if isinstance(op, Elementwise) and op.ufunc and not op.settings]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_ufunc_is_the_expression(op):
    """The NumPy function that stands in for an expression computes the expression."""
    expression = array_function(op.expr, op._parameters, np)
    rng = np.random.default_rng(1)
    kinds = [np.int64] if op.result == "integer" else [np.float64, np.float32]
    for dtype in kinds:
        xs = [
            (rng.uniform(0.1, 0.9, 50) if dtype != np.int64 else rng.integers(0, 9, 50)).astype(dtype)
            for _ in op.inputs
        ]
        if op.name == "acosh":
            xs = [x + 1 for x in xs]
        with np.errstate(all="ignore"):
            got = getattr(np, op.ufunc)(*xs)
            want = expression(*[x.astype(np.float64) if dtype != np.int64 else x for x in xs])
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype != np.float32 else 3e-5, atol=1e-6)
