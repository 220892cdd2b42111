"""A GPU that is not the current one: everything runs where its tensors are, and the current one stays so."""

import warnings

import numpy as np
import pytest
from device_dtypes import difference
from device_steps import Run
from table import ROWS, row_id
from test_cuda import On, cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
import framework.amp
import framework.nn.utils
import framework.optim
from framework import nn
from framework.errors import DeviceError

THERE = "cuda:1"


@pytest.fixture
def second(raw, cupy):  # noqa: F811
    """Skipped where there is no second device."""
    if fw.cuda.device_count() < 2:
        pytest.skip("there is one GPU here")
    yield
    assert fw.cuda.current_device() == 0


@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "gpt"])
def test_training_steps(name, second):
    losses = []
    for device in ("cuda", THERE):
        run = Run(name, device)
        losses.append([run.step().item() for _ in range(2)])
        assert all(str(p.device) == str(fw.ones(1, device=device).device) for p in run.net.parameters())
    assert losses[0] == losses[1]


CALLS = {
    "mul_": lambda x: x.mul_(x + 1),
    "add, out": lambda x: fw.add(x, x, out=fw.empty_like(x)),
    "cat, out": lambda x: fw.cat([x, x], out=x.new_empty(8, 3)),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 2.0),
    "addcmul_": lambda x: x.addcmul_(x, x + 1),
    "lerp_": lambda x: x.lerp_(x + 1, 0.5),
    "fill_diagonal_": lambda x: x.fill_diagonal_(3.0),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(-1, 3),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "exponential_": lambda x: x.exponential_(),
    "mask": lambda x: x[x > 0],
    "mask set": lambda x: (x.__setitem__(x > 0, x[x > 0] * 2), x)[1],
    "orthogonal_": lambda x: nn.init.orthogonal_(x),
    "kaiming_uniform_": lambda x: nn.init.kaiming_uniform_(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name, second):
    found = []
    for device in ("cpu", THERE):
        x = fw.tensor(np.random.default_rng(0).standard_normal((4, 3)), dtype=fw.float32, device=device)
        fw.manual_seed(3)
        y = CALLS[name](x)
        assert str(y.device) == device
        found.append(y.tolist())
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-6)


@pytest.mark.parametrize("part", range(2))
def test_every_row_of_the_table(part, second):
    """Values and gradients are the CPU's, on the device of what is given."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in ROWS[part::2]:
            found += [f"{row_id(row)}, {sample.label!r}: {text}" for sample in row.samples
                      if (text := difference(row, sample, "float32", On, THERE))]
            assert fw.cuda.current_device() == 0, row_id(row)
    assert not found, f"{len(found)} samples differ:\n" + "\n".join(found)


def _square(device, **options):
    x = np.random.default_rng(0).standard_normal((4, 4)) * (np.random.default_rng(1).random((4, 4)) < 0.5)
    return fw.tensor(x, device=device, **options)


FORMS = {
    "coo": lambda x: x.to_sparse(), "csr": lambda x: x.to_sparse_csr(), "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)), "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
SPARSE = {
    "dense": lambda s, x: s.to_dense(), "product": lambda s, x: s @ x, "vector": lambda s, x: s @ x[0],
    "scaled": lambda s, x: (s * 2.0).to_dense(), "sum": lambda s, x: (s + s).to_dense(),
    "turned": lambda s, x: s.t().to_dense(), "copy": lambda s, x: s.clone().to_dense(),
    "values": lambda s, x: (s.coalesce() if s.layout is fw.sparse_coo else s).values(),
    "of another dtype": lambda s, x: s.to(fw.float32).to_dense().double(),
    "addmm": lambda s, x: fw.addmm(x, s, x), "dense first": lambda s, x: x @ s,
    "function": lambda s, x: s.sin().to_dense(), "total": lambda s, x: s.to_dense().sum(),
}
COO = {
    "rows": lambda s, x: s.index_select(0, fw.tensor([2, 0], device=x.device)).to_dense(),
    "sums of rows": lambda s, x: fw.sparse.sum(s, 1).to_dense(),
    "softmax": lambda s, x: fw.sparse.softmax(s, 1).to_dense(), "with dense": lambda s, x: x + s,
    "times dense": lambda s, x: (s * x).to_dense(), "joined": lambda s, x: fw.cat([s, s]).to_dense(),
    "product of sparse": lambda s, x: fw.sparse.mm(s, s).to_dense(),
    "made": lambda s, x: fw.sparse_coo_tensor(s.indices(), s.values(), (5, 5)).to_dense(),
    "mask": lambda s, x: x.sparse_mask(s).to_dense(), "row": lambda s, x: s[1].to_dense(),
    "rows of another form": lambda s, x: s.to_sparse_csr().to_sparse().to_dense(),
}


@pytest.mark.parametrize("form, name", [*((f, n) for f in FORMS for n in SPARSE), *(("coo", n) for n in COO)])
def test_sparse_tensors(form, name, second):
    """Numbers and gradients are the CPU's, or its error is raised."""
    found = []
    for device in ("cpu", THERE):
        x = _square(device, requires_grad=True)
        try:
            y = {**SPARSE, **COO}[name](FORMS[form](x).coalesce() if form == "coo" else FORMS[form](x), x)
            (y * y).sum().backward()
            assert str(y.device) == str(x.grad.device) == device
            found.append([y.tolist(), x.grad.tolist()])
        except Exception as error:
            if device == "cpu":
                pytest.skip(f"not there: {error}")
            raise
        assert fw.cuda.current_device() == 0
    np.testing.assert_allclose(found[1][0], found[0][0], 1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], 1e-6)


def with_grad(*shape, device):
    p = fw.ones(*shape, device=device, requires_grad=True)
    p.grad = fw.arange(p.numel(), device=device).reshape(shape).float() - 1
    return p


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "Adagrad", "NAdam",
                                  "RAdam", "Rprop", "ASGD"])
@pytest.mark.parametrize("places", [(THERE, THERE), (THERE, "cuda:0")])
def test_steps_of_optimizers(name, places, second):
    ends = []
    for devices in (("cpu", "cpu"), places):
        params = [with_grad(4, 3, device=devices[0]), with_grad(5, device=devices[1])]
        optimizer = getattr(fw.optim, name)(params, lr=0.1)
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
        ends.append([p.tolist() for p in params])
    for want, got in zip(*ends):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_clipping_over_two_devices(second):
    for kind in (2.0, 1.0, float("inf")):
        ends = []
        for devices in (("cpu", "cpu", "cpu"), (THERE, "cuda:0", THERE), ("cuda:0", THERE, "cpu")):
            params = [with_grad(4, 3, device=devices[0]), with_grad(5, device=devices[1]),
                      with_grad(3, device=devices[2])]
            total = nn.utils.clip_grad_norm_(params, 0.5, kind)
            assert str(total.device) == devices[0]
            again = nn.utils.get_total_norm([p.grad for p in params], kind)
            grads = [v for p in params for v in p.grad.flatten().tolist()]
            ends.append([total.tolist(), again.tolist(), *grads])
        for got in ends[1:]:
            np.testing.assert_allclose(got, ends[0], 1e-5)


def test_scaling_of_losses(second):
    ends = []
    for device in ("cuda:0", THERE):
        scaler, p = fw.amp.GradScaler("cuda"), with_grad(4, device=device)
        optimizer = fw.optim.Adam([p], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale((p * p).sum()).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        ends.append((p.tolist(), scaler.get_scale()))
    assert ends[0] == ends[1]


def test_two_devices_in_one_call_are_named(second):
    x, y = fw.ones(3, device="cuda:0"), fw.ones(3, device=THERE)
    for call in (
        lambda: x.add_(y),
        lambda: y.mul_(x),
        lambda: fw.add(x, x, out=y),
        lambda: fw.matmul(x, x, out=fw.ones((), device=THERE)),
        lambda: x.masked_fill_(y > 0, 1.0),
        lambda: x.lerp_(y, 0.5),
        lambda: x.addcmul_(y, y),
        lambda: x + y,
    ):
        with pytest.raises(DeviceError, match="cuda:1|different devices"):
            call()
    assert x.tolist() == y.tolist() == [1.0, 1.0, 1.0]
