"""Rows of ops/inplace_functions.py."""

from typing import Any

import numpy as np

from .base import Sample, integers, normal, positive, row

A, POS = normal(2, 3), positive(2, 3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
N, K = integers(2, 3, low=1), integers(2, 3, low=1, seed=4)
NOT_A_TENSOR = TypeError, "must be a Tensor"


def _form(name: str, x: np.ndarray, *args: Any, **settings: Any) -> None:
    """In place on a copy, as a function and as the out-of-place form; integers stay integers here."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    rest = [a for a in args if not isinstance(a, np.ndarray)]

    def call(M: Any, x: Any, *xs: Any) -> Any:
        return getattr(M, name)(x.clone(), *xs, *rest, **settings)

    def reference(x: np.ndarray, *xs: np.ndarray) -> np.ndarray:
        import framework

        form = getattr(framework, name[:-1])
        return form(*[framework.tensor(a) for a in (x, *xs)], *rest, **settings).numpy()

    derivative = name not in ("acosh_", "asinh_", "atanh_", "arccosh_", "arcsinh_", "arctanh_", "i0_")
    row(
        name,
        Sample(
            "function",
            call,
            (x, *arrays),
            reference,
            torch=derivative,
            why="" if derivative else "PyTorch has no second derivative of these in place",
        ),
        errors=[("not a tensor", lambda M: getattr(M, name)([1.0], *rest, *arrays), *NOT_A_TENSOR)],
    )


for _name in [
    "abs_",
    "arcsinh_",
    "arctan_",
    "asinh_",
    "atan_",
    "ceil_",
    "cos_",
    "cosh_",
    "deg2rad_",
    "erf_",
    "erfc_",
    "exp2_",
    "exp_",
    "expm1_",
    "fix_",
    "floor_",
    "frac_",
    "neg_",
    "negative_",
    "rad2deg_",
    "relu_",
    "round_",
    "sigmoid_",
    "sin_",
    "sinc_",
    "sinh_",
    "square_",
    "tanh_",
    "trunc_",
    "nan_to_num_",
    "i0_",
]:
    _form(_name, A)
for _name in ["acos_", "arccos_", "asin_", "arcsin_", "atanh_", "arctanh_", "tan_"]:
    _form(_name, UNIT)
for _name in ["log10_", "log1p_", "log2_", "log_", "reciprocal_", "rsqrt_", "sqrt_"]:
    _form(_name, POS)
_form("acosh_", POS + 1)
_form("arccosh_", POS + 1)
_form("logit_", UNIT**2)
_form("clamp_", A, -0.5, 0.7)
_form("clip_", A, -0.5, 0.7)
_form("clamp_max_", A, 0.2)
_form("clamp_min_", A, -0.2)
_form("fill_", A, 2.5)
_form("gcd_", N, K)
_form("lcm_", N, K)
_form("xlogy_", A, POS)
_form("addmv_", normal(2, seed=3), normal(2, 3, seed=5), normal(3, seed=6))
row(
    "zero_",
    Sample("function", lambda M, x: M.zero_(x.clone()), (A,), np.zeros_like),
    errors=[("not a tensor", lambda M: M.zero_([1.0]), *NOT_A_TENSOR)],
)
row(
    "detach_",
    Sample("function", lambda M, x: M.detach_(x * 2), (A,), lambda x: 2 * x, grad=False),
    errors=[("view", lambda M: M.detach_(M.ones(2)[:1]), RuntimeError, "view")],
)
row(
    "index_put_",
    Sample(
        "function",
        lambda M, x, i, v: M.index_put_(x.clone(), (i,), v),
        (A, np.array([1]), normal(3, seed=8)),
        lambda x, i, v: np.stack([x[0], v]),
    ),
    errors=[("not a tensor", lambda M: M.index_put_([1.0], (), 0.0), *NOT_A_TENSOR)],
)
row(
    "index_put_",
    Sample(
        "method",
        lambda M, x, i, j, v: (x * 1).index_put_((i, j), v),
        (A, np.array([1, 0]), np.array([2, -1]), normal(2, seed=9)),
        lambda x, i, j, v: (y := x.copy(), y.__setitem__((i, j), v))[0],
    ),
    Sample(
        "method, added",
        lambda M, x, i, j, v: (x * 1).index_put_((i, j), v, accumulate=True),
        (A, np.array([1, 1]), np.array([2, 2]), normal(2, seed=9)),
        lambda x, i, j, v: (y := x.copy(), np.add.at(y, (i, j), v))[0],
    ),
    namespace="",
    errors=[("range", lambda M: M.ones(2).index_put_((M.tensor([2]),), M.ones(1)), IndexError, "2")],
)


def _functional(name: str, reference: Any, *args: Any) -> None:
    row(
        name,
        Sample(
            "function", lambda M, x: getattr(M.nn.functional, name)(x.clone(), *args), (A,), reference
        ),
        Sample(
            "given",
            lambda M, x: getattr(M.nn.functional, name)(y := x.clone(), *args) is y,
            (A,),
            lambda x: True,
            grad=False,
        ),
        namespace="nn.functional",
        errors=[
            (
                "leaf",
                lambda M: getattr(M.nn.functional, name)(M.ones(2, requires_grad=True), *args),
                RuntimeError,
                "leaf",
            )
        ],
    )


_functional("elu_", lambda x: np.where(x > 0, x, np.expm1(x)))
_functional("celu_", lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), 2.0)
_functional(
    "selu_", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))
)
_functional("leaky_relu_", lambda x: np.where(x > 0, x, 0.2 * x), 0.2)
_functional("hardtanh_", lambda x: np.clip(x, -0.5, 0.7), -0.5, 0.7)
_functional("threshold_", lambda x: np.where(x > 0.1, x, -3.0), 0.1, -3.0)


def _view_form(
    name: str, x: np.ndarray, reference: Any, *args: Any, label: str = "method", namespace: str = ""
) -> list[Sample]:
    def call(M: Any, x: Any) -> Any:
        y = x * 1
        part = y.reshape(-1)[1:]  # another view of the same memory, alive meanwhile
        z = getattr(y, name)(*args)
        return (z, y, part) if name != "as_strided_" else (z, y)

    def both(x: np.ndarray) -> tuple:
        y = reference(x)
        return (y, y, x.reshape(-1)[1:]) if name != "as_strided_" else (y, y)

    return [
        Sample(label, call, (x,), both),
        Sample(
            f"{label}, changed afterwards",
            lambda M, x: getattr((x * 1), name)(*args).mul_(3.0),
            (x,),
            lambda x: 3 * reference(x),
        ),
        Sample(
            f"{label}, of a view",
            lambda M, x: (
                (b := x * 1, getattr(b[:1], name)(*args).mul_(2.0))[0]
                if name != "as_strided_"
                else x * 1
            ),
            (x,),
            lambda x: np.concatenate([x[:1] * 2, x[1:]]) if name != "as_strided_" else x,
        ),
    ]


C = normal(2, 1, 3)
LEAF = "cannot be changed in place"
row(
    "squeeze_",
    *_view_form("squeeze_", C, lambda x: x.squeeze(1), 1),
    namespace="",
    errors=[("leaf", lambda M: M.ones(1, 2, requires_grad=True).squeeze_(), RuntimeError, LEAF)],
)
row(
    "unsqueeze_",
    *_view_form("unsqueeze_", A, lambda x: x[:, None], 1),
    namespace="",
    errors=[("dim", lambda M: M.ones(2).unsqueeze_(5), IndexError, "dim=5")],
)
row(
    "t_",
    *_view_form("t_", A, lambda x: x.T),
    namespace="",
    errors=[("ndim", lambda M: M.ones(2, 2, 2).t_(), ValueError, "at most 2 dimensions")],
)
row(
    "transpose_",
    *_view_form("transpose_", C, lambda x: x.swapaxes(0, 2), 0, 2),
    namespace="",
    errors=[("dim", lambda M: M.ones(2).transpose_(0, 5), IndexError, "dim1=5")],
)
row(
    "swapaxes_",
    *_view_form("swapaxes_", C, lambda x: x.swapaxes(1, 2), 1, 2),
    namespace="",
    errors=[("dim", lambda M: M.ones(2).swapaxes_(0, 5), IndexError, "5")],
)
row(
    "as_strided_",
    Sample(
        "function",
        lambda M, x: M.as_strided_(x * 1, (2, 2), (1, 2)),
        (A,),
        lambda x: np.stack([x.ravel()[[0, 2]], x.ravel()[[1, 3]]]),
        noncontiguous=False,
        why="strides are of the memory",
    ),
    Sample(
        "method",
        lambda M, x: (x * 1).as_strided_((3,), (2,), 1),
        (A,),
        lambda x: x.ravel()[1::2],
        noncontiguous=False,
        why="strides are of the memory",
    ),
    errors=[
        (
            "view alive",
            lambda M: (y := M.ones(4), y[1:], y.as_strided_((2,), (1,)))[2],
            RuntimeError,
            "other views",
        )
    ],
)
