"""Masked branches: where the incoming gradient is exactly 0 the gradient is 0, not NaN, in every order.

The cases are those that users of several frameworks reported: the function is infinite, or not defined, or
its derivative is, at elements that ``where`` (or an index, or a weight of 0) leaves out.
"""

import numpy as np
import pytest

import framework as fw

F = fw.nn.functional
INF, NAN = float("inf"), float("nan")

# name -> (function, elements that are left out, elements that are not)
ELEMENTWISE = {
    "sqrt": (lambda x: x.sqrt(), [-1.0, 0.0], [4.0]),
    "sqrt of a norm": (lambda x: (x * x).sqrt(), [0.0], [4.0, -2.0]),
    "sqrt of abs": (lambda x: x.abs().sqrt(), [0.0], [-2.0]),
    "rsqrt": (lambda x: x.rsqrt(), [-1.0, 0.0], [2.0]),
    "log": (lambda x: x.log(), [-1.0, 0.0], [2.0]),
    "log1p": (lambda x: x.log1p(), [-2.0, -1.0], [2.0]),
    "log2 and log10": (lambda x: x.log2() + x.log10(), [-1.0, 0.0], [2.0]),
    "x log x": (lambda x: x * x.log(), [-1.0, 0.0], [2.0]),
    "x log x in one": (lambda x: fw.xlogy(x, x), [-1.0, 0.0], [2.0]),
    "entr": (lambda x: fw.special.entr(x), [-1.0, 0.0], [2.0]),
    "x (log x - 1)": (lambda x: x * (x.log() - 1), [0.0], [2.0]),
    "1 / x": (lambda x: 1 / x, [0.0], [2.0]),
    "sin x / x": (lambda x: x.sin() / x, [0.0], [2.0]),
    "x / x": (lambda x: x / (x * x), [0.0], [2.0]),
    "reciprocal": (lambda x: x.reciprocal(), [0.0], [2.0]),
    "x ** -2": (lambda x: x**-2, [0.0], [2.0]),
    "x ** 0.5": (lambda x: x**0.5, [-1.0, 0.0], [2.0]),
    "x ** 1.5": (lambda x: x**1.5, [-1.0, 0.0], [2.0]),
    "x ** x": (lambda x: x**x, [-1.5, 0.0], [2.0]),
    "acos": (lambda x: x.acos(), [1.0, -1.0, 2.0], [0.3]),
    "asin": (lambda x: x.asin(), [1.0, -1.0, 2.0], [0.3]),
    "acosh": (lambda x: x.acosh(), [1.0, 0.5], [2.0]),
    "atanh": (lambda x: x.atanh(), [1.0, -1.0, 2.0], [0.3]),
    "atan2": (lambda x: fw.atan2(x, 2 * x * x), [0.0], [2.0]),
    "exp that overflows": (lambda x: x.exp(), [1000.0], [2.0]),
    "log(1 + exp x)": (lambda x: (1 + x.exp()).log(), [1000.0], [2.0]),
    "exp(exp x)": (lambda x: x.exp().exp(), [1000.0], [0.5]),
    "lgamma": (lambda x: x.lgamma(), [0.0, -1.0], [2.5]),
    "digamma": (lambda x: x.digamma(), [0.0, -1.0], [2.5]),
    "logit": (lambda x: x.logit(), [0.0, 1.0], [0.3]),
    "erfinv": (lambda x: x.erfinv(), [1.0, -1.0, 2.0], [0.3]),
    "ndtri": (lambda x: fw.special.ndtri(x), [0.0, 1.0], [0.3]),
    "hypot": (lambda x: fw.hypot(x, x), [0.0], [2.0]),
    "logaddexp": (lambda x: fw.logaddexp(x, x.log()), [-1.0, 0.0], [2.0]),
    "nan in the data": (lambda x: (x * x).tanh() + x.square() * 3, [NAN], [0.7]),
    "mse_loss of nan": (lambda x: F.mse_loss(x, fw.ones_like(x), reduction="none"), [NAN], [0.7]),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("how", ["where", "index", "masked_fill", "assigned"])
def test_elementwise(name, how):
    """To third order: 0 where masked, and elsewhere what the function gives alone."""
    function, left_out, kept = ELEMENTWISE[name]
    bad = fw.tensor([True] * len(left_out) + [False] * len(kept))
    x = fw.tensor(left_out + kept, dtype=fw.float64, requires_grad=True)
    alone = fw.tensor(kept, dtype=fw.float64, requires_grad=True)
    masks = {
        "where": lambda y: fw.where(bad, 0.0, y),
        "index": lambda y: y[~bad],
        "masked_fill": lambda y: y.masked_fill(bad, 0.0),
        "assigned": lambda y: (y * 1).index_put_((bad,), zero),
    }
    zero = fw.tensor(0.0, dtype=fw.float64)
    y, z = masks[how](function(x)).sum(), function(alone).sum()
    for order in (1, 2, 3):
        (g,), (h,) = (
            fw.autograd.grad(y, x, create_graph=True),
            fw.autograd.grad(z, alone, create_graph=True),
        )
        got = g.detach().numpy()
        np.testing.assert_array_equal(got[: len(left_out)], 0.0, err_msg=f"order {order}")
        np.testing.assert_allclose(
            got[len(left_out) :], h.detach().numpy(), rtol=1e-9, err_msg=f"order {order}"
        )
        if not g.requires_grad or not h.requires_grad:
            return
        y, z = g.sum(), h.sum()


ROWS = fw.tensor([False, True])
HIDDEN = fw.tensor([[True, True], [False, True]])
# of 2x2 numbers, whose first row is left out
BY_ROWS = {
    "norm": (lambda x: x.norm(dim=1), [0.0, 0.0]),
    "vector_norm": (lambda x: fw.linalg.vector_norm(x, dim=1), [0.0, 0.0]),
    "norm of order 3": (lambda x: x.norm(3, dim=1), [0.0, 0.0]),
    "norm of order 0.5": (lambda x: x.norm(0.5, dim=1), [0.0, 0.0]),
    "largest norm": (lambda x: x.norm(INF, dim=1), [0.0, 0.0]),
    "std": (lambda x: x.std(dim=1), [1.0, 1.0]),
    "logsumexp of nothing": (lambda x: x.masked_fill(HIDDEN, -INF).logsumexp(1), [1.0, 1.0]),
    "softmax of nothing": (lambda x: x.masked_fill(HIDDEN, -INF).softmax(1)[:, 0], [1.0, 1.0]),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, fw.ones_like(x), dim=1), [0.0, 0.0]),
    "pairwise_distance": (lambda x: F.pairwise_distance(x, fw.zeros_like(x), eps=0.0), [0.0, 0.0]),
    "normalize": (lambda x: F.normalize(x, dim=1)[:, 0], [0.0, 0.0]),
    "mean over a weight of 0": (lambda x: x.sum(1) / (x * x).sum(1), [0.0, 0.0]),
    "log of a product": (lambda x: x.prod(1).log(), [0.0, 0.0]),
    "variance": (lambda x: x.var(1).sqrt(), [2.0, 2.0]),
}


@pytest.mark.parametrize("name", BY_ROWS)
def test_rows(name):
    """To second order: 0 in the row that is left out, and in the other what it gives alone."""
    function, left_out = BY_ROWS[name]
    grads = []
    for first in (left_out, [0.3, 0.4]):
        x = fw.tensor([first, [3.0, 4.5]], dtype=fw.float64, requires_grad=True)
        y = fw.where(ROWS, function(x), 0.0).sum()
        (g,) = fw.autograd.grad(y, x, create_graph=True)
        (h,) = fw.autograd.grad((g * g).sum(), x) if g.requires_grad else (fw.zeros_like(g),)
        grads.append([g.detach().numpy(), h.numpy()])
    for masked, plain in zip(*grads):
        np.testing.assert_array_equal(masked[0], 0.0)
        np.testing.assert_allclose(masked[1], plain[1], rtol=1e-12)


CHOOSERS = {
    "max": lambda y: y.max(),
    "amax": lambda y: y.amax(),
    "max of dim": lambda y: y.max(0).values,
    "topk": lambda y: y.topk(1).values.sum(),
    "sort": lambda y: y.sort().values[-1],
    "select": lambda y: y[1],
    "split": lambda y: y.split([1, 2])[1].sum(),
    "unbind": lambda y: y.unbind()[1],
    "take": lambda y: y.take(fw.tensor([1])).sum(),
    "gather": lambda y: y.gather(0, fw.tensor([2])).sum(),
    "nansum": lambda y: fw.where(y < 0, NAN, y).nansum(),
    "clamp": lambda y: y.clamp(min=0.5).sum(),
    "narrow": lambda y: y.narrow(0, 1, 2).sum(),
    "masked_select": lambda y: y.masked_select(y > 0).sum(),
    "index_select": lambda y: y.index_select(0, fw.tensor([1, 2])).sum(),
    "maximum": lambda y: fw.maximum(y, fw.tensor([0.5, 0.5, 0.5], dtype=y.dtype)).sum(),
    "scatter": lambda y: y.scatter(0, fw.tensor([0]), 1.0).sum(),
}


@pytest.mark.parametrize("name", CHOOSERS)
def test_choosers(name):
    """What an op leaves out gets no gradient, too, where a factor of x * y is infinite."""
    x = fw.tensor([0.0, 2.0, 3.0], dtype=fw.float64, requires_grad=True)
    y = (x - 1) * fw.where(x == 0, INF, x)
    (g,) = fw.autograd.grad(CHOOSERS[name](y), x)
    assert g[0].item() == 0 and fw.isfinite(g).all()


def test_a_finite_gradient_of_zero_is_no_mask():
    """An incoming 0 that is a value like others keeps its derivative."""
    x, g = fw.tensor([2.0], requires_grad=True), fw.tensor([0.0], requires_grad=True)
    (first,) = fw.autograd.grad(fw.where(fw.tensor([True]), x.log() * x, 0.0), x, g, create_graph=True)
    (second,) = fw.autograd.grad(first, g)
    np.testing.assert_allclose(second.numpy(), np.log(2.0) + 1, rtol=1e-6)


def test_nan_that_is_not_masked_stays():
    x = fw.tensor([0.0, 1.0], requires_grad=True)
    (x.sqrt() * fw.tensor([NAN, 1.0]))[:1].sum().backward()
    assert np.isnan(x.grad.numpy()[0])


# -- the sixth derivative ------------------------------------------------------------------------
# Differentiating norm(x), summing the gradient and differentiating that, six times in all, gives for each i
# the derivative of |x| five times in the direction (1, 1, 1) and once in x_i. The digits are mpmath's:
#     diff(lambda s, t: sqrt(sum((p + s + t * (j == i)) ** 2 for j, p in enumerate(POINT))), (0, 0), (5, 1))

POINT = (1.0, 2.0, -0.5)
SIXTH = (
    -4.3453053534459074942351168799,
    -1.43694530032147758981399254283,
    -8.7078454331325523508668033855,
)


@pytest.mark.parametrize(
    "norm",
    [lambda x: x.norm(), lambda x: fw.linalg.vector_norm(x), lambda x: (x * x).sum().sqrt()],
    ids=["norm", "vector_norm", "sqrt of the sum"],
)
def test_sixth_derivative_of_norm(norm):
    x = fw.tensor(POINT, dtype=fw.float64, requires_grad=True)
    y = norm(x)
    for _ in range(6):
        (y,) = fw.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(y.detach().numpy(), SIXTH, rtol=1e-12)


def test_the_digits_are_mpmaths():
    mpmath = pytest.importorskip("mpmath", reason="tells the digits of the sixth derivative")
    with mpmath.workdps(60):
        for i, digits in enumerate(SIXTH):

            def norm(s, t, i=i):
                return mpmath.sqrt(
                    sum((mpmath.mpf(p) + s + t * (j == i)) ** 2 for j, p in enumerate(POINT))
                )

            assert float(mpmath.diff(norm, (0, 0), (5, 1))) == pytest.approx(digits, rel=1e-15)
