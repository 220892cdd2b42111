"""Kernels that read and write 16 bytes at a time: the CPU's numbers wherever the operands begin and end."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
import framework.optim
from framework import nn

F = nn.functional
CLOSE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 5e-2, "float16": 5e-3}
LENGTHS = (1, 3, 4, 8, 15, 16, 33, 64, 257)


def normed(x, n, wide):
    """Norms of rows of n with weights for each element, of x's dtype or wider."""
    kind = fw.float32 if wide and x.dtype in (fw.bfloat16, fw.float16) else x.dtype
    weight, bias = (fw.linspace(a, 1.5, n).to(x.device, kind).requires_grad_() for a in (0.5, -1.0))
    return [F.layer_norm(x, (n,), weight, bias), F.rms_norm(x, (n,), weight), F.layer_norm(x, (n,))]


def channels(x, n):
    """Norms of images with n positions, with weights for each channel; groups, batches, given averages."""
    images = x.reshape(-1, 2, n)
    weight, bias = (fw.tensor([a, 2.0], dtype=x.dtype, device=x.device).requires_grad_() for a in (0.5, -1.0))
    mean, var = (fw.tensor([a, 1.5], dtype=x.dtype, device=x.device) for a in (0.1, 1.0))
    return [F.group_norm(images, 1, weight, bias), F.group_norm(images, 2, weight, bias),
            F.batch_norm(images, None, None, weight, bias, training=True),
            F.batch_norm(images, mean, var, weight, bias)]


def scored(x, n):
    """Cross entropies of n classes."""
    target = fw.arange(x.shape[0], device=x.device) % n
    weight = fw.linspace(0.5, 1.5, n).to(x.device, x.dtype)
    return [F.cross_entropy(x, target),
            F.cross_entropy(x, target, weight, label_smoothing=0.25, reduction="none")]


def lost(x, n):
    """Means of losses, sums over rows and over all."""
    other = x.detach() * 0.5
    return [F.mse_loss(x, other), F.smooth_l1_loss(x, other, reduction="sum"), x.sum(1), x.amax(1), x.mean(),
            (x.square() * other).sum()]


CASES = {
    "softmax": lambda x, n: [F.softmax(x, 1), F.log_softmax(x, 1), F.softmax(x, 0)],
    "norms": lambda x, n: [*normed(x, n, False), *normed(x, n, True)],
    "channels": channels,
    "losses": lost,
    "entropies": scored,
}

KERNELS = {  # that cases run
    "softmax": {"softmax", "softmax_grad"},
    "norms": {"norm_rows", "norm_grad", "fold"},
    "channels": {"norm_rows", "norm_grad", "norm_fixed"},
    "losses": {"fold"},
    "entropies": {"cross_entropy", "cross_entropy_grad"},
}


def results(case, values, device, dtype, shifted):
    """What a case gives for rows that begin where 16 bytes do, or one element further; and x's gradient."""
    room = fw.empty(values.size + 1, dtype=dtype, device=device)
    x = room[1:] if shifted else room[:-1]
    x = x.reshape(values.shape)
    x.copy_(fw.tensor(values).to(device, dtype))
    x.requires_grad_()
    found = CASES[case](x, values.shape[1])
    fw.manual_seed(3)
    sum(((y * fw.randn(y.shape, device="cpu").to(y.device, y.dtype)).sum().float() for y in found),
        fw.zeros((), device=device)).backward()
    return [*found, x.grad]


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("case", CASES)
def test_rows_wherever_they_begin(case, dtype, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    rng, kind, close = np.random.default_rng(0), getattr(fw, dtype), CLOSE[dtype]
    for n in LENGTHS:
        values = rng.standard_normal((4, n))
        for shifted, guarded in ((False, False), (False, True), (True, False)):
            raw.settings.update(guarded=guarded, backward=guarded)
            counts.clear()
            got, want = (results(case, values, device, kind, shifted) for device in ("cuda", "cpu"))
            assert KERNELS[case] <= set(counts.launches)
            for a, b in zip(got, want, strict=True):
                a, b = (y.detach().cpu().double().numpy() for y in (a, b))
                np.testing.assert_allclose(a, b, close, close * (1 + np.abs(b).max()))


@pytest.mark.parametrize("dtype", CLOSE)
def test_coins_wherever_elements_begin(dtype, raw, cupy):  # noqa: F811
    """Dropout's numbers are the CPU's to the bit."""
    pytest.importorskip("ml_dtypes")
    for n in (1, 15, 16, 17, 64, 333):
        for start in (0, 1, 8):
            x = fw.arange(1, n + start + 1).to(getattr(fw, dtype))
            found = []
            for there in (x, x.to("cuda")):
                fw.manual_seed(5)
                found.append(F.dropout(there[start:], 0.3).cpu())
            assert fw.equal(*found)


BIG = {"eps": 1e-3}  # that float16 holds: there the CPU rounds at each operation, the kernels once
OPTIMIZERS = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [BIG, {"amsgrad": True, "weight_decay": 0.1, **BIG}],
    "AdamW": [BIG],
    "RMSprop": [BIG, {"momentum": 0.9, **BIG}, {"centered": True, **BIG}],
    "Adagrad": [BIG],
    "Adadelta": [BIG],
    "Adamax": [BIG],
    "NAdam": [BIG],
    "RAdam": [BIG],
    "Rprop": [{}],
    "ASGD": [{"t0": 1}],
    "Lion": [{}],
}


def stepped(make, device, dtype, shifted):
    """Parameters after steps, by an optimizer that averages, clips and unscales what it is given."""
    rng, parameters = np.random.default_rng(0), []
    for n in (1, 13, 64, 4100):
        room = fw.empty(n + 1, dtype=dtype, device=device)
        p = room[1:] if shifted else room[:-1]
        p.copy_(fw.tensor(rng.standard_normal(n)).to(device, dtype))
        parameters.append(p.requires_grad_())
    optimizer = make(parameters)
    for _ in range(3):
        for p in parameters:
            p.grad = fw.tensor(rng.standard_normal(p.numel())).to(device, dtype)
        nn.utils.clip_grad_norm_(parameters, 20.0)
        nn.utils.clip_grad_value_(parameters, 1.5)
        optimizer.step()
    with fw.no_grad():
        fw._foreach_lerp_(parameters, [p.grad for p in parameters], 0.25)
        fw._foreach_copy_([p.grad for p in parameters], parameters)
    return [*parameters, *[p.grad for p in parameters]]


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_wherever_parameters_begin(name, dtype, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    for options in OPTIMIZERS[name]:
        def make(parameters, options=options):
            return getattr(framework.optim, name)(parameters, **options)
        want = stepped(make, "cpu", getattr(fw, dtype), False)
        for shifted in (False, True):
            got = stepped(make, "cuda", getattr(fw, dtype), shifted)
            for a, b in zip(got, want, strict=True):
                a, b = (x.detach().cpu().double().numpy() for x in (a, b))
                np.testing.assert_allclose(a, b, 4 * CLOSE[dtype], 4 * CLOSE[dtype])


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", CLOSE)
def test_floating_dtypes_become_each_other_in_one_launch(dtype, backward, raw, cupy):  # noqa: F811
    """The CPU's bits, wherever the elements begin; float64 becomes 16 bits by CuPy, which rounds once."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    raw.settings.update(backward=backward, guarded=True)
    rng = np.random.default_rng(0)
    odd = [np.nan, np.inf, -np.inf, -0.0, 1e-7, 6e-8, 65504, 65520, 3e38, 1e-40]
    numbers = np.concatenate([odd, rng.standard_normal(60) * np.exp(rng.standard_normal(60) * 8)])
    source = fw.tensor(numbers, dtype=fw.float64).to(getattr(fw, dtype))
    there = source.cuda()
    for to in CLOSE:
        if dtype == "float64" and to.endswith("16"):
            continue
        for start, end in ((0, 70), (1, 70), (3, 20), (4, 5), (0, 1)):
            counts.clear()
            got = there[start:end].to(getattr(fw, to)) if to != dtype else there[start:end].clone()
            assert counts.launches.total() == 1 and next(iter(counts.launches)).startswith("cast_to_")
            want = source[start:end].to(getattr(fw, to))
            assert got.dtype is want.dtype and not counts.waits
            np.testing.assert_array_equal(got.cpu().double().numpy(), want.double().numpy(), f"{to} {start}")
    assert there[:0].half().shape == (0,) and there[::2].half().tolist() == pytest.approx(
        source[::2].half().tolist(), nan_ok=True)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64", "complex64"])
def test_arrays_one_after_another_in_one_launch(dtype, backward, raw, cupy):  # noqa: F811
    """Of sizes that 16 bytes divide and of others, wherever they begin, empty ones among them."""
    from cupy import counts

    raw.settings.update(backward=backward, guarded=True)
    numbers = np.arange(4000) % 101
    source = fw.tensor(numbers).to(getattr(fw, dtype))
    there = source.cuda()

    def parts(base, start, shapes):
        found = []
        for shape in shapes:
            n = int(np.prod(shape))
            found.append(base[start:start + n].reshape(shape))
            start += n
        return found

    used = set()
    for dim, shapes in ((0, [(16,), (32,), (48,)]), (0, [(3, 5), (0, 5), (1, 5)]), (1, [(2, 16), (2, 48)]),
                        (1, [(4, 3, 2), (4, 1, 2), (4, 2, 2)]), (2, [(2, 3, 16)] * 8), (-1, [(5, 1)] * 3)):
        for start in (0, 1, 16):
            given = parts(there, start, shapes)
            counts.clear()
            got = fw.cat(given, dim)
            assert counts.launches.total() == 1, dict(counts.launches)
            used |= set(counts.launches)
            want = fw.cat(parts(source, start, shapes), dim)
            assert got.dtype is want.dtype and got.cpu().tolist() == want.tolist(), (dim, shapes, start)
    assert used == {"join", "join_packs"}
    many = parts(there, 0, [(3, 4)] * 9)  # more than a launch takes, and what does not lie in rows
    assert fw.cat(many).cpu().tolist() == fw.cat([t.cpu() for t in many]).tolist()
    turned = [t.t() for t in many[:2]]
    assert fw.cat(turned).cpu().tolist() == fw.cat([t.cpu() for t in turned]).tolist()
    with pytest.raises(ValueError, match="must agree in all dimensions but 0"):
        fw.cat([many[0], many[1].reshape(4, 3)])
