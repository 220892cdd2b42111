"""Which operations run in which dtype under autocast on the CPU; those of PyTorch, by name.

Everything that stands in no list runs in the dtypes that it gets, promoting them where it does so anyway.
``tests/test_amp.py`` holds the lists against PyTorch's results.
"""

from typing import Any


def _named(namespace: str, names: str) -> set[str]:
    return {f"{namespace}.{name}" for name in names.split()}


# products, which sum up in float32 whatever they are given: in the block's dtype
LOWER = {
    *_named("framework", "matmul mm bmm addmm addbmm baddbmm inner tensordot"),
    *_named("linalg", "vecdot multi_dot"),
    *_named("nn.functional", """
        linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu
        scaled_dot_product_attention multi_head_attention_forward"""),
}

# sums of many small terms, and what has no short floating form: in float32
FLOAT32 = {
    *_named("nn.functional", """
        binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
        hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
        multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d max_unpool1d max_unpool2d max_unpool3d
        grid_sample local_response_norm pdist"""),
    *_named("framework", """
        cdist cholesky cholesky_inverse cholesky_solve inverse nanquantile orgqr pinverse polar prod quantile
        stft istft trace view_as_complex"""),
    *_named("linalg", """
        cholesky cholesky_ex cond det eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq lu
        lu_factor lu_solve matrix_rank pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv
        tensorsolve"""),
    *_named("fft", """
        fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn
        ihfftn"""),
}

WIDEST = _named("framework", "index_copy")  # cat and stack do so by themselves


def pads_by_values(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> bool:
    """Whether ``pad`` is one that PyTorch counts among the operations of float32."""
    return mode == "replicate" or mode == "reflect" and len(pad) <= 4


def einsum_sums(equation: Any, *operands: Any) -> bool:
    """Whether an einsum is a product of matrices, or several: an index of two operands is summed."""
    if not isinstance(equation, str):
        return True
    left, arrow, right = equation.replace(" ", "").partition("->")
    letters = [c for term in left.split(",") for c in set(term) if c.isalpha()]
    return any(letters.count(c) > 1 and c not in right for c in letters)
