"""How many launches the samples of the table take on a device, forward and backward, and which of them wait:
few and none but for what stands here, with the reason. Complex numbers, which have no kernels, and empty
tensors are left out.
"""

import warnings
from collections import Counter

import numpy as np
import pytest
from table import ROWS, changes_inputs, floating_leaves, is_floating, row_id
from test_cuda import On, cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import device_code

MOST = 14  # launches of a call, and of its backward
MORE = {
    # derivatives of factors of matrices: products and triangular systems one by one
    "qr": (3, 16), "linalg.cond": (8, 19),
    "linalg.eig": (11, 48), "linalg.eigvals": (6, 15), "linalg.lstsq": (27, 26),
    "linalg.lu": (16, 36), "linalg.lu_factor": (3, 29), "linalg.lu_factor_ex": (10, 32),
    "linalg.lu_solve": (26, 35), "linalg.pinv": (15, 15), "linalg.qr": (2, 17), "linalg.svd": (7, 31),
    "lu": (98, 48), "lu_solve": (26, 33), "lu_unpack": (25, 7),
    "pca_lowrank": (18, 63), "pinverse": (13, 15), "svd_lowrank": (17, 60),
    # a step for each column, or for each position
    "geqrf": (25, 0), "linalg.householder_product": (31, 44), "orgqr": (31, 0), "ormqr": (20, 31),
    "index_reduce": (37, 44), "scatter_reduce": (44, 57),  # products
    "nn.LSTM": (46, 81),  # projected
    # several calls in a sample, or one that is a loop of its own
    "histogramdd": (20, 0), "method.__setitem__": (12, 37), "nn.GRU": (13, 22), "nn.RNN": (13, 22),
    "nn.functional.gumbel_softmax": (23, 3), "nn.functional.linear_cross_entropy": (48, 56),
    "nn.functional.multi_head_attention_forward": (36, 36), "nn.functional.rrelu": (31, 2),
    "nn.functional.scaled_dot_product_attention": (13, 20),  # all dropped
    # formulas of records
    "as_strided": (1, 20), "as_strided_": (1, 20), "as_strided_copy": (5, 15), "corrcoef": (8, 19),
    "cov": (16, 28), "cumulative_trapezoid": (5, 16), "diff": (9, 18),
    "gradient": (34, 125), "nanquantile": (18, 15),
    "quantile": (12, 15), "trapezoid": (5, 15), "unique_consecutive": (15, 0),
    "nn.functional.embedding_bag": (13, 22),
    "nn.functional.triplet_margin_loss": (12, 17),
    "nn.functional.triplet_margin_with_distance_loss": (11, 16),
}
_HOST = "the result is the host's"
_SIZE = "the size of the result depends on values"
_FAILS = "whether there is an inverse, or a factor: the error is raised at once"
_READ = "the sample reads what it got"
WAITS = {
    **dict.fromkeys(("allclose", "equal", "is_nonzero", "method.__contains__", "method.cpu", "method.apply_",
                     "method.map_", "method.is_shared", "method.share_memory_", "method.to"), _HOST),
    **dict.fromkeys(("argwhere", "bincount", "masked_select", "method.__getitem__", "nonzero",
                     "nonzero_static", "repeat_interleave", "unique", "unique_consecutive",
                     "nn.functional.one_hot"), _SIZE),
    **dict.fromkeys(("logdet", "slogdet", "norm", "inverse", "matrix_power", "cholesky", "svd",
                     "pca_lowrank", "svd_lowrank", *[f"linalg.{name}" for name in (
                         "cholesky", "cond", "eig", "eigh", "eigvals", "eigvalsh", "inv", "ldl_factor",
                         "ldl_solve", "matrix_norm", "matrix_power",
                         "matrix_rank", "slogdet", "solve", "svd", "svdvals",
                         "tensorinv", "tensorsolve")]), _FAILS),
    **dict.fromkeys(("index_put", "method.__setitem__"), "a mask beside positions, or other values for each"),
    **dict.fromkeys(("linalg.cholesky_ex", "linalg.inv_ex", "linalg.solve_ex", "nn.functional.rrelu"), _READ),
    "linalg.lstsq": "residuals are of full rank only",
}
BY_CUDNN = {"nn.LSTM", "nn.GRU", "nn.RNN"}  # where it is there, they are fewer


def counted(row, sample):
    """(launches forward, backward, waits) of a sample's second run; the first makes kernels and constants."""
    from cupy import counts

    for _ in range(2):
        inputs = [fw.from_numpy(np.array(a)).to("cuda") if isinstance(a, (np.ndarray, np.generic)) else a
                  for a in sample.inputs]
        inputs = [x.float() if is_floating(a) else x for x, a in zip(inputs, sample.inputs)]
        grown = [x for x in inputs
                 if sample.grad and isinstance(x, fw.Tensor) and x.is_floating_point()]
        for x in grown:
            x.requires_grad_()
        given = [x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in inputs]
        counts.clear()
        leaves = floating_leaves(sample.call(On("cuda:0"), *given))
        found, waits = [counts.launches.total()], Counter(counts.waits)
        seeds = [fw.ones_like(y) for y in leaves]
        counts.clear()
        if leaves and grown:
            fw.autograd.grad(leaves, grown, seeds, allow_unused=True)
        found.append(counts.launches.total())
    return (*found, waits + counts.waits)


def is_usual(sample):
    arrays = [np.asarray(a) for a in sample.inputs if isinstance(a, (np.ndarray, np.generic))]
    return all(a.size and a.dtype.kind != "c" for a in arrays) and "complex" not in sample.label


@pytest.mark.parametrize("part", range(4))
def test_launches_and_waits_of_samples(part, raw, cupy):  # noqa: F811
    kinds = [(s, char) for s in device_code.SOURCES for char in "fl" if char in s.dtypes]
    raw.prepare(device_code.prelude(), [s.text(char) for s, char in kinds])
    found, needless = [], []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for row in ROWS[part::4]:
            name, most, waited = row_id(row), [0, 0], Counter()
            for sample in filter(is_usual, row.samples):
                *launches, waits = counted(row, sample)
                most, waited = list(map(max, most, launches)), waited + waits
            if any(n > m for n, m in zip(most, MORE.get(name, (MOST, MOST)))):
                found.append(f"{name!r}: {tuple(most)},")
            if waited and name not in WAITS:
                found.append(f"{name!r} waits: {list(waited)[:2]}")
            if name in MORE.keys() - BY_CUDNN and max(most) <= MOST or name in WAITS and not waited:
                needless.append(name)
    assert not found, "more launches than before, or waits:\n" + "\n".join(found)
    assert not needless, f"these take few launches, and do not wait: {needless}"
