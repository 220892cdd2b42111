"""Every kernel of every source of GPUs is run: by a case of ``test_device_rooms.py``, or by a call here."""

import numpy as np
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
    "check_range": lambda x: F.one_hot(x[0].long() * 0, 3),
    "check_reals": lambda x: x.quantile(x[0, 0].sigmoid()),
    "integers": lambda x: fw.randint(9, (3,), device=x.device),
    "draw": lambda x: fw.rand_like(x),
    "put_words": lambda x: replayed(lambda: F.dropout(x)),
    "polynomial": lambda x: fw.special.hermite_polynomial_h(x, 3),
    "gamma_numbers": lambda x: fw.distributions.Gamma(x.exp(), 1.0).sample(),
    "dirichlet_rows": lambda x: fw.distributions.Dirichlet(x.exp()).sample(),
    "poisson_numbers": lambda x: fw.poisson(x.exp()),
    "binomial_numbers": lambda x: fw.binomial(x.exp().ceil(), x.sigmoid()),
    "angles": lambda x: fw.distributions.VonMises(x, x.exp()).sample(),
    "pick_by_height": lambda x: x[0].exp().multinomial(3, replacement=True),
    "weighted_keys": lambda x: x[0].exp().multinomial(3),
    "norm_of_all scale_all": lambda x: fw.nn.utils.clip_grad_norm_(with_grad(x), 0.1),
    "unscale_all adapt": lambda x: scaled(x),
    **{f"{name.lower()}_step": lambda x, name=name: getattr(fw.optim, name)([with_grad(x)], lr=0.1).step()
       for name in dict.fromkeys(name for name, _ in OPTIMIZERS if name != "AdamW")},
}


def in_order(call):
    try:
        fw.use_deterministic_algorithms(True)
        return call()
    finally:
        fw.use_deterministic_algorithms(False)


def replayed(call):
    graph = fw.cuda.CUDAGraph()
    with fw.cuda.graph(graph):
        call()
    graph.replay()


def with_grad(x):
    p = x.detach().clone().requires_grad_()
    p.grad = fw.ones_like(x)
    return p


def scaled(x):
    scaler, p = fw.amp.GradScaler("cuda"), x.detach().clone().requires_grad_()
    optimizer = fw.optim.SGD([p], lr=0.1)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_every_kernel_of_every_source_is_run(raw, cupy):  # noqa: F811
    """A kernel that no call leads to is dead."""
    from cupy import counts

    written = set()
    for source in device_code.SOURCES:
        for char in source.dtypes:
            written |= set(raw._KERNEL.findall(source.text(char)))
    cases = set().union(*[case[2] for case in CASES.values()])
    x = fw.tensor(np.random.default_rng(0).standard_normal((2, 3, 5)), dtype=fw.float32, device="cuda")
    for names, call in CALLS.items():
        counts.clear()
        call(x)
        assert set(names.split()) <= set(counts.launches), f"{names}: {dict(counts.launches)}"
        assert set(names.split()) <= written and not set(names.split()) & cases, names
    told = cases | set(" ".join(CALLS).split())
    assert not written - told, f"nobody is known to run {sorted(written - told)}"
