"""Every name has the forms PyTorch gives it: function, method, in place, out=.

``FORMS`` is the list; beside an installed PyTorch it is derived anew and compared.
"""

import inspect
from functools import reduce

import numpy as np
import pytest

import framework as fw

# (namespace, forms) -> names. function: in the namespace; method: of Tensor; inplace: the method ``name_``;
# function_: ``name_`` in the namespace; out: the function takes ``out=``
FORMS = {
    ("fft", "function"): ("fftshift ifftshift"),
    ("fft", "function out"): ("fft fft2 fftn ifft ifft2 ifftn irfft irfft2 irfftn rfft rfft2 rfftn"),
    ("framework", "function"): (
        "einsum empty_like full_like meshgrid ones_like rand_like randn_like zeros_like atleast_1d "
        "atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist "
        "combinations cumulative_trapezoid gradient randint_like scalar_tensor std_mean trapezoid "
        "trapz tril_indices triu_indices var_mean"
    ),
    ("framework", "function inplace function_"): ("fill"),
    ("framework", "function inplace out"): ("normal"),
    ("framework", "function method"): (
        "allclose bool broadcast_to chunk clone diagonal double equal flatten flip float half int "
        "isclose isfinite isinf isnan long movedim permute repeat_interleave reshape roll select "
        "split tile trace unbind unique zero_ argwhere bfloat16 bincount corrcoef count_nonzero cov "
        "diag_embed diagflat dist dsplit fliplr flipud hsplit logdet matrix_exp narrow pinverse "
        "positive ravel rot90 split_with_sizes tensor_split unflatten unique_consecutive vsplit"
    ),
    ("framework", "function method inplace"): (
        "masked_fill squeeze t transpose unsqueeze index_fill masked_scatter"
    ),
    ("framework", "function method inplace function_"): ("index_put as_strided"),
    ("framework", "function method inplace function_ out"): (
        "abs atan ceil clamp cos erf exp floor log log1p log2 neg reciprocal round rsqrt sigmoid sin "
        "sqrt square tanh trunc acos acosh addmv asin asinh atanh clamp_max clamp_min cosh deg2rad "
        "erfc exp2 expm1 frac gcd i0 lcm log10 logit nan_to_num rad2deg sinc sinh tan xlogy"
    ),
    ("framework", "function method inplace out"): (
        "add addmm atan2 bernoulli bitwise_and bitwise_not bitwise_or cumprod cumsum div eq "
        "floor_divide ge gt index_add le lerp logical_and logical_not logical_or lt mul ne pow "
        "remainder scatter scatter_add sign sub tril triu addbmm addcdiv addcmul addr baddbmm "
        "bitwise_left_shift bitwise_right_shift bitwise_xor copysign digamma erfinv float_power fmod "
        "heaviside hypot index_copy index_reduce lgamma logical_xor polygamma scatter_reduce "
        "true_divide"
    ),
    ("framework", "function method out"): (
        "all amax amin any argmax argmin argsort bmm diag dot gather index_select log_softmax "
        "logsumexp masked_select matmul max maximum mean min minimum mm nonzero norm outer prod "
        "softmax sort std sum topk var where aminmax cholesky_solve cross cummax cummin diff fmax "
        "fmin histc histogram inner isneginf isposinf kron kthvalue logaddexp logaddexp2 "
        "logcumsumexp median mode msort multinomial mv nanmean nanmedian nanquantile nansum quantile "
        "signbit take take_along_dim"
    ),
    ("framework", "function out"): (
        "arange cat empty eye full hstack linspace ones randint randn stack vstack zeros bucketize "
        "column_stack dstack isin logspace searchsorted tensordot"
    ),
    ("framework", "inplace"): ("uniform exponential"),
    ("framework", "method"): (
        "T __getitem__ __radd__ __rmatmul__ __rmul__ __rsub__ contiguous expand item mT new_ones "
        "new_zeros repeat to view __rmod__ __rpow__ expand_as new_empty new_full reshape_as unfold "
        "view_as"
    ),
    ("linalg", "function method"): ("diagonal"),
    ("linalg", "function method out"): ("cholesky norm cross det matrix_power slogdet"),
    ("linalg", "function out"): (
        "eigh inv qr solve svd vector_norm cond eig eigvals eigvalsh lstsq lu lu_factor lu_solve "
        "matrix_norm matrix_rank multi_dot pinv solve_triangular svdvals vecdot"
    ),
    ("nn.functional", "function"): (
        "adaptive_avg_pool1d adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy "
        "binary_cross_entropy_with_logits conv1d conv2d conv_transpose2d cosine_similarity "
        "cross_entropy dropout dropout2d embedding gelu glu group_norm hardswish huber_loss "
        "instance_norm interpolate kl_div l1_loss layer_norm linear max_pool1d max_pool2d mse_loss "
        "nll_loss one_hot pad relu6 rms_norm scaled_dot_product_attention silu softplus "
        "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "alpha_dropout avg_pool1d avg_pool3d bilinear conv3d conv_transpose1d conv_transpose3d "
        "cosine_embedding_loss ctc_loss dropout3d embedding_bag gaussian_nll_loss grid_sample "
        "hardsigmoid hinge_embedding_loss local_response_norm logsigmoid margin_ranking_loss "
        "max_pool3d mish multi_head_attention_forward multilabel_soft_margin_loss pairwise_distance "
        "pixel_shuffle pixel_unshuffle poisson_nll_loss smooth_l1_loss soft_margin_loss softmin "
        "softshrink softsign tanhshrink triplet_margin_loss"
    ),
    ("nn.functional", "function function_"): ("elu hardtanh leaky_relu celu selu threshold"),
    ("nn.functional", "function method"): ("hardshrink prelu unfold"),
    ("nn.functional", "function method inplace function_"): ("relu"),
    ("nn.functional", "function out"): ("normalize"),
    ("special", "function method inplace out"): ("polygamma"),
    ("special", "function out"): ("entr erfcx log_ndtr ndtr ndtri xlog1py"),
}
LEGACY = "PyTorch's method has the arguments of a function it gave up, or only raises; use fw.linalg"
UNSAID = "PyTorch's parser takes it, its documentation does not have it"
# (namespace, name) -> {form of PyTorch: why there is none here}
ABSENT = {
    **{
        ("linalg", name): {"method": LEGACY}
        for name in ("eig", "lstsq", "lu", "lu_solve", "qr", "solve", "svd")
    },
    **{
        ("nn.functional", name): {"out": UNSAID}
        for name in (
            "adaptive_avg_pool1d",
            "avg_pool1d",
            "hardshrink",
            "pixel_shuffle",
            "pixel_unshuffle",
        )
    },
    ("framework", "unique_consecutive"): {"out": "a slip of the schema: PyTorch's parser takes none"},
}
NAMES = {
    (namespace, name): set(forms.split())
    for (namespace, forms), names in FORMS.items()
    for name in names.split()
}


def home(namespace):
    """Our module of that name."""
    return fw if namespace == "framework" else reduce(getattr, namespace.split("."), fw)


def forms(place, tensor, name, takes_out):
    """The forms that a name has: its home, the class of tensors, whether the function takes out=."""
    operator = name.endswith("_")
    found = {
        "function": hasattr(place, name),
        "method": hasattr(tensor, name),
        "inplace": not operator and hasattr(tensor, f"{name}_"),
        "function_": not operator and hasattr(place, f"{name}_"),
        "out": hasattr(place, name) and takes_out(getattr(place, name)),
    }
    return {form for form, there in found.items() if there}


def takes_out(function):
    """Whether a function of ours takes out=."""
    return (
        callable(function)
        and not inspect.isclass(function)
        and "out" in inspect.signature(function).parameters
    )


def test_the_list_is_long():
    assert len(NAMES) == sum(len(names.split()) for names in FORMS.values()) == 434


@pytest.mark.parametrize("namespace", sorted({namespace for namespace, _ in NAMES}))
def test_forms_are_there(namespace):
    missing = []
    for (at, name), wanted in NAMES.items():
        if at == namespace:
            lacking = wanted - forms(home(at), fw.Tensor, name, takes_out)
            missing += [f"{name}: {', '.join(sorted(lacking))}"] if lacking else []
    assert not missing, f"forms missing in {namespace}: {'; '.join(missing)}"


@pytest.mark.parametrize("namespace", sorted({namespace for namespace, _ in NAMES}))
def test_the_list_is_pytorchs(namespace):
    torch = pytest.importorskip(
        "torch", reason="PyTorch tells which forms there are: the compare extra"
    )
    from test_signatures import home_of, overloads

    wrong = []
    for (at, name), listed in NAMES.items():
        if at != namespace:
            continue
        theirs = forms(
            home_of(at),
            torch.Tensor,
            name,
            lambda _, at=at, name=name: any("out" in takes.names for takes in overloads(at, name)),
        )
        given_up = set(ABSENT.get((at, name), ()))
        if theirs - given_up != listed or not given_up <= theirs:
            wrong.append(
                f"{name}: PyTorch has {sorted(theirs)}, listed are {sorted(listed)}, "
                f"given up {sorted(given_up)}"
            )
    assert not wrong, "\n".join(wrong)


def test_copy_of_a_number():
    assert fw.zeros(2).copy_(2).tolist() == [2.0, 2.0]
    assert fw.zeros(2, dtype=fw.int64).copy_(2.7).tolist() == [2, 2]
    x = fw.ones(2, requires_grad=True)
    y = (x * 2).copy_(3.0)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="copy_"):
        y.copy_("2")
    with pytest.raises(fw.errors.AutogradError, match="copy_"):
        x.copy_(1)


def test_functions_of_elements_that_change_what_they_are_of():
    """The numbers are those of before, in memory that nobody else has."""
    array = np.zeros(4)
    x = fw.from_numpy(array)

    def grows(v):
        if array.size == 4:
            array.resize(200_000, refcheck=False)
        return v
    with pytest.raises(fw.errors.ShapeError):
        x.apply_(grows)
    other = np.arange(5.0)

    def shrinks(a, b):
        if other.size == 5:
            other.resize(1, refcheck=False)
        return a + b
    assert fw.zeros(5).map_(fw.from_numpy(other), shrinks).tolist() == [0, 1, 2, 3, 4]
    y = fw.arange(4.0)

    def writes(v):
        y.add_(10)
        return v
    assert y.apply_(writes).tolist() == [0, 1, 2, 3]
    for made, error in ([[1.0], ValueError], [[1, 2], ValueError], ["a", ValueError]):
        with pytest.raises(error, match="apply_: the function must give a number"):
            fw.zeros(4).apply_(lambda v, made=made: made)
    with pytest.raises(TypeError):
        fw.arange(3).apply_(lambda v: [v])
    seen = iter([1, 2.5, np.float32(3), True])
    assert fw.zeros(4).apply_(lambda v: next(seen)).tolist() == [1, 2.5, 3, 1]
