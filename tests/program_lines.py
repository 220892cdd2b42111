"""What random programs are made of: shapes, dtypes, templates of lines, and differences that are known."""

import re

SHAPES = [(), (1,), (3,), (4,), (0,), (2, 3), (3, 3), (3, 1), (1, 4), (3, 4), (0, 3), (2, 1, 3), (2, 3, 4),
          (2, 3, 3), (1, 2, 4, 4), (2, 3, 4, 5), (2, 0, 3)]
DTYPES = [*["float64"] * 8, *["float32"] * 3, *["complex128"] * 2, *["int64"] * 2, "bool", "int32", "uint8"]

# x: any tensor, f: floating or complex, r: real floating, i: integers, b: bools, z: complex, sq: square
# matrices, t3: 3 dimensions; x0: the line's first tensor again; y: one that broadcasts, s: one of its shape;
# d, e: its dims; d0: d again; ds: several; k: a small int; c: a number; p: a bool; key: an index;
# row, at: index tensors for dimension 0 and d; at0: the same; g: an index tensor for gather
UNARY = """sin cos tanh exp sigmoid abs neg square atan sinh expm1 log1p reciprocal exp2 erf
    asinh floor ceil round trunc frac relu nan_to_num isnan isfinite logical_not positive lgamma digamma
    F.gelu F.silu F.softplus F.elu F.selu F.mish F.hardtanh F.hardswish F.softsign F.logsigmoid"""
LINES = """
M.sqrt({r}); M.rsqrt({r}); M.log({r}); {x} + {y}; {x} - {y}; {x} * {y}; {x} / {y}; {f} % {y}; {f} ** 2
2 ** {f}; {c} - {f}; {c} / {f}; {x} * {c}; {x} / {c}; {x} & {y}; {x} | {y}; {x} ^ {y}; ~{x}; -{x}; {x} == {y}
{r} < {y}; {x} != {c}; {i} << 1; M.pow({r}.abs() + 0.5, {y}); M.atan2({r}, {y}); M.maximum({x}, {y})
M.minimum({x}, {y}); M.fmax({r}, {y}); M.lerp({f}, {s}, 0.3); M.addcdiv({f}, {s}, {s}, value=0.5)
M.where({b}, {x}, {y}); M.where({r} > 0, {x0}, {y}); M.clamp({r}, -0.5, 0.7); M.clamp({r}, min={y})
M.outer({x}, {y}); M.kron({x}, {x0}); M.sub({f}, {y}, alpha=2); M.logaddexp({r}, {y})
M.xlogy({f}, {y}.abs() + 0.1); M.dot({x}, {y}); M.vdot({x}, {y}); {x}.sum(); {x}.sum({d})
{x}.sum({ds}, keepdim={p}); {f}.mean({ds}); {f}.prod(); {f}.prod({d}, keepdim={p}); {f}.std({d}); {f}.var()
{r}.amax({ds}); {r}.amin({d}, keepdim={p}); {r}.max({d}).values; {r}.median({d}).values; {x}.all({d})
{x}.any(); {x}.count_nonzero({d}); {f}.norm(); {f}.norm(dim={d}); {f}.norm(1); M.logsumexp({r}, {d})
M.linalg.vector_norm({f}, 3, dim={ds}); M.quantile({r}, 0.3, dim={d}); {r}.kthvalue(1, {d}).values
{x}.cumsum({d}); {f}.cumprod({d}); M.logcumsumexp({r}, {d}); {r}.cummax({d}).values; {x}.diff(dim={d})
{r}.sort(dim={d}, stable=True); {r}.argsort(dim={d}, stable=True); {r}.topk(1, {d}).values; {x}.flip({ds})
{x}.roll({k}, {d}); {x}.roll({k}); M.rot90({x}, {k}, ({d}, {e})); {x}.reshape(-1).clone()
{x}.reshape(-1, 2) + 0; {x}.reshape({x0}.shape[::-1]) * 1; {x}.contiguous().view(-1).clone()
{x}.flatten({d}, {e}) + 0; {x}.squeeze(); {x}.squeeze({d}); {x}.unsqueeze({d}); {x}.transpose({d}, {e})
{x}.t(); {x}.permute(tuple(range({x0}.ndim))[::-1]); {x}.movedim({d}, {e}); {x}.expand(2, *{x0}.shape)
{x}.expand_as({y}); {x}.narrow({d}, 1, 2); {x}.select({d}, {k}); {x}.diagonal(); {x}.diagonal({k}, {d}, {e})
{x}.unfold({d}, 2, 1); {x}.unbind({d}); {x}.unflatten({d}, (-1, 1)); {x}.tile((2, 1))
{x}.repeat_interleave(2); {x}.clone(); {x}.detach(); {x}.chunk(2, {d}); {x}.split(2, {d})
{x}.tensor_split((1, 2), {d}); M.cat([{x}, {s}], {d}); M.cat([{x}, {x0}[:1]]); M.stack([{x}, {s}], {d})
M.hstack([{x}, {y}]); M.meshgrid({x}, {y}, indexing='ij'); {x}.tril({k})
{x}.triu({k}); {x}.diag(); M.diag_embed({x}, {k}); {x}.trace(); {x}[{key}]; {x}[{key}]; {x}[{key}]
{x}[{r} > 0]; {x}[{row}]; {x}[..., {row}]; {x}[{row}, {row}]; {x}.nonzero(); {x}.index_select({d}, {at})
{x}.gather({d}, {g}); {x}.scatter({d}, {g}, {c}); {x}.scatter_add({d}, {g}, {x0})
{f}.index_add({d}, {at}, {x0}.index_select({d0}, {at0})); {x}.index_fill({d}, {at}, {c}); {x}.take({row})
{x}.index_put(({row},), {x0}[0], accumulate={p}); {x}.masked_fill({r} > 0, {c})
{r}.masked_select({x0} < 0.5); M.select_scatter({r}, {x0}.select({d}, 0), {d0}, 0)
M.diagonal_scatter({r}, {x0}.diagonal()); {f} @ {y}; {f} @ {x0}.mT; {f}.matmul(T({x0}, {x0}.shape[-1], 2))
M.bmm({f}, {x0}.mT); M.einsum('ij,kj->ik', {f}, {x0}); M.einsum('...i,...i->...', {f}, {s})
M.matrix_power({f}, 2); M.linalg.inv({sq} + 3 * I({x0}))
M.linalg.solve({sq} + 3 * I({x0}), T({x0}, {x0}.shape[-1], 2)); M.linalg.det({sq})
M.cdist({r}, {s} + 1, p=1); M.linalg.cholesky({sq} @ {x0}.mH + 2 * I({x0}))
F.cosine_similarity({r}, {s}, dim={d}); F.softmax({r}, {d}); F.log_softmax({r}, {d})
F.normalize({r}, dim={d}); F.glu({r}, {d}); F.layer_norm({r}, {x0}.shape[-1:]); F.group_norm({r}, 1)
F.instance_norm({r}); F.linear({r}, T({x0}, 2, {x0}.shape[-1]), T({x0}, 2)); F.max_pool2d({t3}, 2, 1)
F.conv1d({t3}, T({x0}, 2, {x0}.shape[-2], 2), padding=1)
F.conv2d({t3}, T({x0}, 2, {x0}.shape[-3], 2, 2), stride=2, padding=1)
F.avg_pool2d({t3}, 3, 2, 1, count_include_pad={p})
F.interpolate({t3}, size=5, mode='linear', align_corners={p}); F.pad({x}, (1, 2))
F.pad({x}, (1, -1), value={c}); F.pad({r}, (1, 1), mode='reflect'); F.pixel_shuffle({x}, 1)
F.mse_loss({r}, {s}); F.smooth_l1_loss({r}, {s}, reduction='none')
F.binary_cross_entropy_with_logits({r}, {x0}.detach()); F.scaled_dot_product_attention({r}, {x0}, {s})
M.fft.fft({f}, dim={d}); M.fft.ifft({f}, n=5); M.fft.rfft({r}, n=6); M.fft.irfft({f}, n=5, dim={d})
M.complex({r}, {s}); M.view_as_real(M.fft.fft({r}, n=3)); {z}.real; {z}.imag; {z}.abs(); {x}.to(M.float64)
{x}.to(M.float32); {x}.type_as({y}); {f}.to(M.complex128); M.zeros_like({x}); {x}.new_zeros(2, 2)
{x}.tolist(); len({x}); bool({x}); {x}.numel()
"""
CHANGES = """
{x}.add_({y}.clone()); {x}.sub_({f}.clone(), alpha=2); {x}.mul_({y}.clone()); {x}.mul_({c}); {x}.div_({c})
{f}.pow_(2); {f}.exp_(); {f}.tanh_(); {x}.neg_(); {r}.sqrt_(); {r}.clamp_(-1, 1); {x}.zero_(); {x}.fill_(1)
{x}.copy_({y}.clone()); {x}[{key}] = 2; {x}[{key}] = {y}.clone(); {x}[{key}] += 1; {x}[{key}] *= {y}.clone()
{r}[{x0} > 0] *= 2; {x}[{row}] = 3; {x} += {y}.clone(); {x} *= {c}; {f} /= {c}
{r}.masked_fill_({x0} > 0, {c}); {x}.index_fill_({d}, {at}, 1); {x}.scatter_({d}, {g}, 2); {x}.cumsum_({d})
{x}.tril_(); {x}.squeeze_(); {x}.unsqueeze_({d}); {x}.transpose_({d}, {e}); {x}.diagonal().fill_(1)
{x}.select({d}, 0).add_({c}); {x}.narrow({d}, 0, 1).mul_({c}); {z}.real.mul_(2)
{x}.t().add_({x0}.detach().clone()); {f}.floor_()
"""
PURE = [f"{u}({{r}})" if u[:2] == "F." else f"M.{u}({{x}})" for u in UNARY.split()] + [
    line.strip() for line in re.split("[;\n]", LINES) if line.strip()]
IN_PLACE = [line.strip() for line in re.split("[;\n]", CHANGES) if line.strip()]

# "ours" or "theirs" refuses alone, and that is right: a pattern of the message and the reason
ALONE = [
    ("theirs", "not implemented|not supported|not support", "we take more dtypes"),
    ("theirs", "dtype|scalar type|did not match|can't be cast|does not match|Expected a floating",
     "mixed dtypes"),
    ("theirs", "as many dimensions|has no dimensions|Dimension out of range|3D|2D|channel|Non-empty|non-zero",
     "we take tensors of no dimensions or no elements, and repeat_interleave and pools of them"),
    ("theirs", "view is the output of a function|view of a leaf|multiple views", "views of unbind and split"),
    ("theirs", "modified by an inplace", "we keep less, or the parts that were not changed"),
    ("theirs", "invalid gradient at index|must match the size", "wrong gradients of scatter"),
    ("theirs", "oneMKL|MKL|ambiguous|cannot be converted|single memory|no larger than self", "sizes of 0"),
    ("theirs", "isFloatingType|isDifferentiableType|contiguous|non-batch|conjugated|broadcast shape", "bugs"),
    ("ours", "must be (floating|real)|wanted real operands|convert one with", "dtypes we refuse"),
    ("ours", "overlapping view|read-only", "several elements in one place are not written to"),
    ("ours", "fit into a tensor of framework.(bool|uint8)|do not fit a tensor|out of bounds for", "casts"),
    ("ours", "variance of one value|wanted at least (1|2) dim|wanted an input|singular|no convergence",
     "there is no result"),
    ("theirs", "positive-definite|with size 0", "nan in a factorization; indices into nothing"),
    ("ours", "^(roll|cummax).*out of range|of size 0", "there is no element: it does not matter"),
    ("ours", "backward of (div|mul|erfinv):", "PyTorch computes it otherwise, and keeps something else"),
    ("ours", "leaf", "PyTorch lets a leaf be changed where nothing changes"),
]
