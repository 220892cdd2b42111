"""Every kernel of every source of GPUs is run, and gives the CPU's numbers: by a case of
``test_device_rooms.py``, or by a call here."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels
from test_device_rooms import CASES, OPTIMIZERS

import framework as fw
import framework.amp
import framework.distributions
import framework.nn.utils
import framework.optim
from framework import nn
from framework.backends import device_code

F = nn.functional
MORE = {"Adafactor": " adafactor_rows adafactor_columns adafactor_means adafactor_squares adafactor_lengths"}
# kernels that no case of a room runs: calls that do
CALLS = {
    "cumsum": lambda x: x.cumsum(1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
    "order_rows": lambda x: x.sort(),
    "order_tiles merge_runs take_ordered": lambda x: x.repeat(300, 1, 1).reshape(-1).sort(),
    "mode_rows": lambda x: x.mode(),
    "search_sorted": lambda x: fw.searchsorted(x[0, 0], x),
    "add_in_order": lambda x: in_order(lambda: x.index_add(0, fw.zeros_like(x[:, 0, 0]).long(), x)),
    "cast_to_e cast_to_E cast_to_d cast_to_f": lambda x: [
        x.half().float().bfloat16().double(), x.double().float(), x.clone()],
    "fill add_two": lambda x: grad_of_sum(x),
    "join": lambda x: fw.cat([x, x], 2),
    "join_packs": lambda x: fw.cat([x.reshape(-1)[:8], x.reshape(-1)[8:16]]),
    "check_range": lambda x: F.one_hot(x[0].long() * 0, 3),
    "check_reals": lambda x: x.quantile(x[0, 0].sigmoid()),
    "integers": lambda x: fw.randint(9, (3,), device=x.device),
    "draw": lambda x: fw.rand_like(x),
    "put_words": lambda x: replayed(x, lambda: F.dropout(x)),
    "polynomial": lambda x: fw.special.hermite_polynomial_h(x, 3),
    "gamma_numbers": lambda x: fw.distributions.Gamma(x.exp(), 1.0).sample(),
    "dirichlet_rows": lambda x: fw.distributions.Dirichlet(x.exp()).sample(),
    "poisson_numbers": lambda x: fw.poisson(x.exp()),
    "binomial_numbers": lambda x: fw.binomial(x.exp().ceil(), x.sigmoid()),
    "angles": lambda x: fw.distributions.VonMises(x, x.exp()).sample(),
    "pick_by_height": lambda x: x[0].exp().multinomial(3, replacement=True),
    "weighted_keys": lambda x: x[0].exp().multinomial(3),
    "norm_of_all scale_all": lambda x: clipped(x, fw.nn.utils.clip_grad_norm_),
    "clip_all": lambda x: clipped(x, fw.nn.utils.clip_grad_value_),
    "copy_all lerp_all": lambda x: averaged(x),
    "unscale_all adapt": lambda x: scaled(x),
    **{f"{name.lower()}_step{MORE.get(name, '')}": lambda x, name=name: stepped(x, name)
       for name in dict.fromkeys(name for name, _ in OPTIMIZERS if name != "AdamW")},
    "numbers_of_rate": lambda x: stepped(x, "SGD", lr=x.new_tensor(0.1)),
    "muon_step muon_momentum muon_scale muon_iterate": lambda x: stepped(x[0], "Muon"),
}


def grad_of_sum(x):
    y = x.detach().clone().requires_grad_()
    for _ in range(2):
        (y * 2 + y.exp()).sum().backward()
    return y.grad


def in_order(call):
    try:
        fw.use_deterministic_algorithms(True)
        return call()
    finally:
        fw.use_deterministic_algorithms(False)


def replayed(x, call):
    """What a graph gives when it is replayed; on the CPU, the call itself."""
    if not x.is_cuda:
        return call()
    graph = fw.cuda.CUDAGraph()
    try:
        with fw.cuda.graph(graph):
            out = call()
    finally:
        fw.cuda.graph.default_capture_stream = None
    graph.replay()
    return out


def with_grad(x):
    p = x.detach().clone().requires_grad_()
    p.grad = fw.ones_like(x)
    return p


def clipped(x, how):
    p = with_grad(x)
    how(p, 0.1)
    return p.grad


def stepped(x, name, lr=0.1):
    p = with_grad(x)
    getattr(fw.optim, name)([p], lr=lr).step()
    return p.detach()


def averaged(x):
    net = nn.ParameterList([x.detach().clone()])
    mean = fw.optim.swa_utils.AveragedModel(net)
    for _ in range(2):
        mean.update_parameters(net)
        net[0].detach().mul_(2)
    return mean.module[0].detach()


def scaled(x):
    scaler, p = fw.amp.GradScaler("cuda", enabled=x.is_cuda), x.detach().clone().requires_grad_()
    optimizer = fw.optim.SGD([p], lr=0.1)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return p.detach()


def arrays(out):
    """What a call gave, as NumPy's arrays."""
    if isinstance(out, (tuple, list)):
        return [a for part in out for a in arrays(part)]
    return [] if out is None else [out.detach().cpu().numpy()]


def test_every_kernel_of_every_source_is_run(raw, cupy):  # noqa: F811
    """A kernel that no call leads to is dead."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    fw.empty(1, dtype=fw.bfloat16)  # which the stand-in's products know from then on
    written = set()
    for source in device_code.SOURCES:
        for char in source.dtypes:
            written |= set(raw._KERNEL.findall(source.text(char)))
    cases = set().union(*[case[2] for case in CASES.values()])
    x = fw.tensor(np.random.default_rng(0).standard_normal((2, 3, 5)), dtype=fw.float32, device="cuda")
    for names, call in CALLS.items():
        counts.clear()
        fw.manual_seed(0)
        want = arrays(call(x))
        assert set(names.split()) <= set(counts.launches), f"{names}: {dict(counts.launches)}"
        fw.manual_seed(0)
        for a, b in zip(want, arrays(call(x.cpu())), strict=True):
            np.testing.assert_allclose(a, b, 2e-5, 2e-5, err_msg=names)
        assert want, names
        for backward in (False, True):  # over guarded memory, in both orders of threads
            raw.settings.update(backward=backward, guarded=True)
            fw.manual_seed(0)
            for a, b in zip(arrays(call(x)), want, strict=True):
                np.testing.assert_array_equal(a, b, names)
        raw.settings.update(backward=False, guarded=False)
        assert set(names.split()) <= written and not set(names.split()) & cases, names
    told = cases | set(" ".join(CALLS).split())
    assert not written - told, f"nobody is known to run {sorted(written - told)}"
