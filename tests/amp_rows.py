"""Operations for tests of autocast: by name a function of (module, float tensors), and their shapes."""

NAMES = {
    "matmul": ((4, 4), (4, 4)),
    "mm": ((4, 4), (4, 4)),
    "bmm": ((2, 4, 4), (2, 4, 4)),
    "mv": ((4, 4), (4,)),
    "dot": ((4,), (4,)),
    "vdot": ((4,), (4,)),
    "outer": ((4,), (4,)),
    "inner": ((4, 4), (4, 4)),
    "addmm": ((4, 4),) * 3,
    "addmv": ((4,), (4, 4), (4,)),
    "addr": ((4, 4), (4,), (4,)),
    "baddbmm": ((2, 4, 4),) * 3,
    "addbmm": ((4, 4), (2, 4, 4), (2, 4, 4)),
    "kron": ((4, 4), (4, 4)),
    "linalg.vecdot": ((4, 4), (4, 4)),
    "linalg.cross": ((4, 3), (4, 3)),
    "tensordot": ((4, 4, 4), (4, 4)),
    "nn.functional.linear": ((4, 4), (4, 4), (4,)),
    "nn.functional.bilinear": ((4, 4), (4, 4), (3, 4, 4)),
    "nn.functional.conv1d": ((1, 2, 8), (3, 2, 3)),
    "nn.functional.conv2d": ((1, 2, 6, 6), (3, 2, 3, 3), (3,)),
    "nn.functional.conv3d": ((1, 2, 4, 4, 4), (3, 2, 3, 3, 3)),
    "nn.functional.conv_transpose1d": ((1, 2, 8), (2, 3, 3)),
    "nn.functional.conv_transpose2d": ((1, 2, 6, 6), (2, 3, 3, 3), (3,)),
    "nn.functional.conv_transpose3d": ((1, 2, 4, 4, 4), (2, 3, 3, 3, 3)),
    "nn.functional.scaled_dot_product_attention": ((2, 4, 4),) * 3,
    "nn.functional.prelu": ((1, 2, 6, 6), (2,)),
    "relu": ((4, 4),),
    "nn.functional.gelu": ((4, 4),),
    "exp": ((4, 4),),
    "log": ((4, 4),),
    "add": ((4, 4), (4, 4)),
    "mul": ((4, 4), (4, 4)),
    "div": ((4, 4), (4, 4)),
    "sum": ((4, 4),),
    "mean": ((4, 4),),
    "prod": ((4, 4),),
    "norm": ((4, 4),),
    "var": ((4, 4),),
    "std": ((4, 4),),
    "rsqrt": ((4, 4),),
    "erfinv": ((4, 4),),
    "nn.functional.normalize": ((4, 4),),
    "nn.functional.mse_loss": ((4, 4), (4, 4)),
    "nn.functional.l1_loss": ((4, 4), (4, 4)),
    "nn.functional.smooth_l1_loss": ((4, 4), (4, 4)),
    "nn.functional.huber_loss": ((4, 4), (4, 4)),
    "nn.functional.binary_cross_entropy": ((4, 4), (4, 4)),
    "nn.functional.binary_cross_entropy_with_logits": ((4, 4), (4, 4)),
    "nn.functional.kl_div": ((4, 4), (4, 4)),
    "nn.functional.poisson_nll_loss": ((4, 4), (4, 4)),
    "nn.functional.gaussian_nll_loss": ((4, 4),) * 3,
    "nn.functional.hinge_embedding_loss": ((4, 4), (4, 4)),
    "nn.functional.soft_margin_loss": ((4, 4), (4, 4)),
    "nn.functional.margin_ranking_loss": ((4,),) * 3,
    "nn.functional.cosine_embedding_loss": ((4, 4), (4, 4), (4,)),
    "nn.functional.triplet_margin_loss": ((4, 4),) * 3,
    "nn.functional.cross_entropy": ((4, 4), (4, 4)),
    "nn.functional.multilabel_soft_margin_loss": ((4, 4), (4, 4)),
    "cdist": ((4, 4), (4, 4)),
    "dist": ((4, 4),) * 2,
    "nn.functional.cosine_similarity": ((4, 4), (4, 4)),
    "nn.functional.pairwise_distance": ((4, 4), (4, 4)),
    "trace": ((4, 4),),
    "polar": ((4, 4), (4, 4)),
    "view_as_complex": ((4, 2),),
    "fft.fft": ((4, 4),),
    "fft.rfft": ((4, 4),),
    "fft.ifft2": ((4, 4),),
    "fft.fftn": ((4, 4),),
    "fft.irfft": ((4, 4),),
    "fft.hfft": ((4, 4),),
    "linalg.inv": ((4, 4),),
    "inverse": ((4, 4),),
    "linalg.inv_ex": ((4, 4),),
    "pinverse": ((4, 4),),
    "linalg.solve": ((4, 4), (4, 4)),
    "linalg.svd": ((4, 4),),
    "linalg.svdvals": ((4, 4),),
    "linalg.eig": ((4, 4),),
    "linalg.eigh": ((4, 4),),
    "linalg.eigvals": ((4, 4),),
    "linalg.eigvalsh": ((4, 4),),
    "linalg.qr": ((4, 4),),
    "linalg.lstsq": ((4, 4), (4, 4)),
    "linalg.cond": ((4, 4),),
    "linalg.matrix_rank": ((4, 4),),
    "linalg.tensorsolve": ((4, 4), (4,)),
    "linalg.vector_norm": ((4, 4),),
    "linalg.householder_product": ((4, 4), (4,)),
    "cholesky_inverse": ((4, 4),),
    "cholesky_solve": ((4, 4), (4, 4)),
    "linalg.det": ((4, 4),),
    "linalg.slogdet": ((4, 4),),
    "matrix_exp": ((4, 4),),
    "atan2": ((4, 4), (4, 4)),
    "addcmul": ((4, 4),) * 3,
    "median": ((4, 4),),
    "sort": ((4, 4),),
    "cov": ((4, 4),),
    "corrcoef": ((4, 4),),
    "nn.functional.dropout": ((4, 4),),
}

CALLS = {
    "@": (lambda M, a, b: a @ b, (4, 4), (4, 4)),
    "einsum": (lambda M, a, b: M.einsum("ij,jk->ik", a, b), (4, 4), (4, 4)),
    "einsum of elements": (lambda M, a, b: M.einsum("ij,ij->ij", a, b), (4, 4), (4, 4)),
    "multi_dot": (lambda M, a, b: M.linalg.multi_dot([a, b, a]), (4, 4), (4, 4)),
    "matrix_power": (lambda M, a: M.linalg.matrix_power(a, 3), (4, 4)),
    "conv2d same": (lambda M, x, w: M.nn.functional.conv2d(x, w, padding="same"), (1, 2, 6, 6), (3, 2, 3, 3)),
    "softmax": (lambda M, x: M.nn.functional.softmax(x, -1), (4, 4)),
    "log_softmax": (lambda M, x: M.nn.functional.log_softmax(x, -1), (4, 4)),
    "softmax in float32": (lambda M, x: M.nn.functional.softmax(x, -1, dtype=M.float32), (4, 4)),
    "cumsum": (lambda M, x: x.cumsum(0), (4, 4)),
    "prod of rows": (lambda M, x: x.prod(0), (4, 4)),
    "logsumexp": (lambda M, x: x.logsumexp(0), (4, 4)),
    "pow": (lambda M, x: x**2, (4, 4)),
    "layer_norm": (lambda M, x, w, b: M.nn.functional.layer_norm(x, (4,), w, b), (4, 4), (4,), (4,)),
    "rms_norm": (lambda M, x, w: M.nn.functional.rms_norm(x, (4,), w), (4, 4), (4,)),
    "group_norm": (lambda M, x, w, b: M.nn.functional.group_norm(x, 2, w, b), (1, 2, 6, 6), (2,), (2,)),
    "batch_norm": (
        lambda M, x, w, b: M.nn.functional.batch_norm(x, M.zeros(2), M.ones(2), w, b, True),
        (1, 2, 6, 6),
        (2,),
        (2,),
    ),
    "batch_norm eval": (
        lambda M, x, w, b: M.nn.functional.batch_norm(x, M.zeros(2), M.ones(2), w, b, False),
        (1, 2, 6, 6),
        (2,),
        (2,),
    ),
    "instance_norm": (
        lambda M, x, w, b: M.nn.functional.instance_norm(x, weight=w, bias=b),
        (1, 2, 6, 6),
        (2,),
        (2,),
    ),
    "local_response_norm": (lambda M, x: M.nn.functional.local_response_norm(x, 2), (1, 2, 6, 6)),
    **{
        f"{kind}_pool{d}d": (
            lambda M, x, name=f"{kind}_pool{d}d": getattr(M.nn.functional, name)(x, 2),
            (1, 2, *(4,) * d),
        )
        for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
        for d in (1, 2, 3)
    },
    "max_unpool2d": (
        lambda M, x: M.nn.functional.max_unpool2d(*M.nn.functional.max_pool2d(x, 2, return_indices=True), 2),
        (1, 2, 6, 6),
    ),
    **{
        f"pad {mode} {d}d": (
            lambda M, x, mode=mode, d=d: M.nn.functional.pad(x, (1, 1) * d, mode),
            (1, 2, *(4,) * d),
        )
        for mode in ("reflect", "replicate", "constant", "circular")
        for d in (1, 2, 3)
    },
    "interpolate": (
        lambda M, x: M.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        (1, 2, 6, 6),
    ),
    "grid_sample": (
        lambda M, x, g: M.nn.functional.grid_sample(x, g, align_corners=False),
        (1, 2, 6, 6),
        (1, 3, 3, 2),
    ),
    "affine_grid": (
        lambda M, x: M.nn.functional.affine_grid(x, (1, 1, 3, 3), align_corners=False),
        (1, 2, 3),
    ),
    "cross_entropy": (lambda M, x: M.nn.functional.cross_entropy(x, M.arange(4)), (4, 4)),
    "nll_loss": (lambda M, x: M.nn.functional.nll_loss(x, M.arange(4)), (4, 4)),
    "multi_margin_loss": (lambda M, x: M.nn.functional.multi_margin_loss(x, M.arange(4)), (4, 4)),
    "multilabel_margin_loss": (
        lambda M, x: M.nn.functional.multilabel_margin_loss(x, M.zeros(4, 4, dtype=M.int64)),
        (4, 4),
    ),
    "ctc_loss": (
        lambda M, x: M.nn.functional.ctc_loss(
            x.log_softmax(-1), M.tensor([[1, 2]]), M.tensor([4]), M.tensor([2])
        ),
        (4, 1, 4),
    ),
    "quantile": (lambda M, x: M.quantile(x, 0.5), (4, 4)),
    "nanquantile": (lambda M, x: M.nanquantile(x, 0.5), (4, 4)),
    "stft": (lambda M, x: M.stft(x, 8, return_complex=True, window=M.ones(8)), (1, 32)),
    "cholesky": (lambda M, x: M.linalg.cholesky(x @ x.mT + 4 * M.eye(4)), (4, 4)),
    "tensorinv": (lambda M, x: M.linalg.tensorinv(x.reshape(2, 2, 4), 2), (4, 4)),
    "stack": (lambda M, a, b: M.stack([a, b]), (4, 4), (4, 4)),
    "cat": (lambda M, a, b: M.cat([a, b]), (4, 4), (4, 4)),
    "hstack": (lambda M, a, b: M.hstack([a, b]), (4, 4), (4, 4)),
    "index_copy": (lambda M, a, b: a.index_copy(0, M.arange(4), b), (4, 4), (4, 4)),
    "where": (lambda M, a, b: M.where(a > 0.5, a, b), (4, 4), (4, 4)),
    "embedding": (lambda M, w: M.nn.functional.embedding(M.arange(4), w), (4, 4)),
    "clamp": (lambda M, a: a.clamp(0, 1), (4, 4)),
    "unfold": (lambda M, x: M.nn.functional.unfold(x, 2), (1, 2, 6, 6)),
    "addmm_": (lambda M, a, b: a.clone().addmm_(b, b), (4, 4), (4, 4)),
    "mm out": (lambda M, a, b: M.mm(a, b, out=M.empty(4, 4)), (4, 4), (4, 4)),
    **{
        name: (lambda M, x, name=name: getattr(M.nn, name)(4, 4)(x), shape)
        for name, shape in (
            ("RNN", (2, 4, 4)),
            ("LSTM", (2, 4, 4)),
            ("GRU", (2, 4, 4)),
            ("RNNCell", (4, 4)),
            ("LSTMCell", (4, 4)),
            ("GRUCell", (4, 4)),
        )
    },
    "MultiheadAttention": (lambda M, x: M.nn.MultiheadAttention(4, 2)(x, x, x), (2, 4, 4)),
}


def named(name):
    """The function of a dotted name, of (module, tensors)."""

    def call(M, *tensors):
        found = M
        for part in name.split("."):
            found = getattr(found, part)
        return found(*tensors)

    return call


ROWS = {**{name: (named(name), *shapes) for name, shapes in NAMES.items()}, **CALLS}
