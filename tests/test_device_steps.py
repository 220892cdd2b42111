"""Launches and waits of training steps on a device, counted by the stand-in for CuPy."""

import numpy as np
import pytest
from device_steps import Run, counted
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

# name, dimensions of the parameters before the last one, launches of a step
OPTIMIZERS = [
    *[(name, (), 1) for name in (
        "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD",
        "Lion")],
    ("Adafactor", (), 3),
    ("Adafactor", (2,), 6),
    ("Muon", (), 4),  # of matrices of 4 shapes
]
LAUNCHES = {"mlp": 40, "resnet20": 300, "resnet50": 900, "cnn": 60, "lstm": 80, "gpt": 350, "vit": 700}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_and_waits_of_a_step(name, raw, cupy):  # noqa: F811
    """A step starts so many kernels at most, never waits, and copies nothing but what the host draws."""
    launches, waits, copies = counted(name, 1)
    text = f"{dict(launches.most_common(15))}"
    assert not waits, f"{name} waits: {dict(waits)}"
    assert launches.total() <= LAUNCHES[name], f"{name}: {launches.total()} launches: {text}"
    assert copies.total() <= 2, f"{name}: {dict(copies)}"


@pytest.mark.parametrize("name", ["mlp", "lstm", "gpt"])
def test_losses_of_steps_equal_the_cpus(name, raw, cupy):  # noqa: F811
    losses = []
    for device in ("cpu", "cuda"):
        run = Run(name, device)
        losses.append([run.step().item() for _ in range(3)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_the_launches_of_an_optimizer_do_not_depend_on_the_number_of_parameters(raw, cupy):  # noqa: F811
    from cupy import counts

    for name, dims, most in OPTIMIZERS:
        shapes = [(2 + i % 4, 3) if name == "Muon" else (*dims, 3 + i) for i in range(40)]
        params = [fw.ones(*shape, device="cuda", requires_grad=True) for shape in shapes]
        params.append(fw.ones(*(dims or (2,)), 0, device="cuda", requires_grad=True))
        for p in params:
            p.grad = fw.ones_like(p)
        optimizer = getattr(fw.optim, name)(params, lr=0.1)
        optimizer.step()
        counts.clear()
        optimizer.step()
        assert counts.launches.total() == most and not counts.waits, (name, counts.launches)


def test_every_optimizer_is_counted():
    left_out = {"LBFGS", "SparseAdam", "Optimizer"}  # the host decides; rows; the base
    assert {name for name, *_ in OPTIMIZERS} == {
        n for n, kind in vars(fw.optim).items()
        if isinstance(kind, type) and issubclass(kind, fw.optim.Optimizer)} - left_out


def gradients(*dtypes):
    """40 parameters of dtypes in turn, and an empty one, with gradients, on the CPU and on a device."""
    rng, found = np.random.default_rng(0), []
    values = [rng.standard_normal((3 + i, 2)) for i in range(40)] + [np.zeros((0, 2))]
    for device in ("cpu", "cuda"):
        kinds = [dtypes[i % len(dtypes)] for i in range(41)]
        made = [fw.zeros(v.shape).to(device, k).requires_grad_() for v, k in zip(values, kinds)]
        for p, v in zip(made, values):
            p.grad = fw.tensor(v).to(device, p.dtype)
        found.append(made)
    return found


@pytest.mark.parametrize("dtypes", [
    ("float32",), ("float64",), ("float32", "bfloat16"), ("float16",), ("bfloat16", "float16", "float64")])
def test_clipping_is_a_launch_for_each_dtype(dtypes, raw, cupy):  # noqa: F811
    """Norms of any kind, limits of values, an empty gradient among them; the CPU's numbers, and no wait."""
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    close = 2e-2 if "bfloat16" in dtypes else 4e-3 if "float16" in dtypes else 1e-5
    kinds = [getattr(fw, n) for n in dtypes]
    raw.settings.update(guarded=True)
    for backward in (False, True):
        raw.settings.update(backward=backward)
        for kind in (2.0, 1.0, float("inf"), 3.0):
            ours, theirs = gradients(*kinds)
            fw.nn.utils.get_total_norm([p.grad for p in theirs], kind)
            counts.clear()
            want, got = (fw.nn.utils.clip_grad_norm_(params, 0.7, kind) for params in (ours, theirs))
            made = {k: n for k, n in counts.launches.items() if k != "astype" and not k.startswith("cast_")}
            assert made == {"norm_of_all": len(dtypes), "scale_all": len(dtypes)} and not counts.waits
            assert got.dtype is want.dtype
            assert got.item() == pytest.approx(want.item(), rel=close)
            same(ours, theirs, close)
        ours, theirs = gradients(*kinds)
        counts.clear()
        for params in (ours, theirs):
            fw.nn.utils.clip_grad_value_(params, 0.5)
        assert counts.launches == {"clip_all": len(dtypes)} and not counts.waits
        same(ours, theirs, 0)


def same(ours, theirs, close):
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(q.grad.double().cpu().numpy(), p.grad.double().numpy(), close, close)


def test_clipping_tells_nan_and_infinity(raw, cupy):  # noqa: F811
    for value in (float("nan"), float("inf")):
        for kind in (2.0, 1.0, float("inf")):
            found = []
            for device in ("cpu", "cuda"):
                p = fw.zeros(3, device=device, requires_grad=True)
                p.grad = fw.tensor([1.0, value, 2.0], device=device)
                total = fw.nn.utils.clip_grad_norm_([p], 1.0, kind)
                found.append([total.item(), *p.grad.tolist()])
                with pytest.raises(RuntimeError, match="the total norm of the gradients is"):
                    fw.nn.utils.clip_grad_norm_([p], 1.0, kind, error_if_nonfinite=True)
            np.testing.assert_array_equal(*found)


def test_norms_have_the_dtype_of_the_gradients():
    for dtype in (fw.float16, fw.float32, fw.float64):
        p = fw.zeros(2, dtype=dtype, requires_grad=True)
        p.grad = fw.ones_like(p)
        for kind in (2.0, 1.0, 3.0, float("inf")):
            assert fw.nn.utils.get_total_norm([p.grad], kind).dtype is dtype


@pytest.mark.parametrize("how", ["mean", "ema"])
def test_averages_of_models_are_few_launches(how, raw, cupy):  # noqa: F811
    from cupy import counts

    averaging = fw.optim.swa_utils
    ends = []
    for device in ("cpu", "cuda"):
        fw.manual_seed(0)
        net = fw.nn.Sequential(*[m for _ in range(10) for m in (fw.nn.Linear(3, 3), fw.nn.BatchNorm1d(3))])
        net = net.to(device)
        mean = averaging.get_ema_multi_avg_fn(0.9) if how == "ema" else None
        average = averaging.AveragedModel(net, multi_avg_fn=mean).to(device)
        rng = np.random.default_rng(0)
        for step in range(4):
            for t in (*net.parameters(), *net.buffers()):
                t.detach().copy_(fw.tensor(rng.integers(0, 9, tuple(t.shape)), dtype=t.dtype))
            counts.clear()
            average.update_parameters(net)
            if device == "cuda" and step:  # parameters, buffers of 4 and of 8 bytes, the count
                assert counts.launches.total() == 4 and not counts.waits, (counts.launches, counts.waits)
        assert average.n_averaged.item() == 4
        average.n_averaged.fill_(0)  # by somebody else: the next one is copied
        average.update_parameters(net)
        assert average.n_averaged.item() == 1
        ends.append([t.detach().cpu().numpy() for t in (*average.parameters(), *average.buffers())])
    for a, b in zip(*ends):
        np.testing.assert_allclose(b, a, 1e-6, 1e-6)


SCHEDULES = {
    "StepLR": (1,), "ExponentialLR": (0.9,), "CosineAnnealingLR": (10,), "LinearLR": (), "PolynomialLR": (),
    "MultiplicativeLR": (lambda epoch: 0.9,), "LambdaLR": (lambda epoch: 0.9 ** epoch,),
    "CyclicLR": (0.1, 1.0), "OneCycleLR": (1.0, 99), "CosineAnnealingWarmRestarts": (3,), "ConstantLR": (),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_of_a_rate_on_the_device(name, raw, cupy):  # noqa: F811
    from cupy import counts

    ends = []
    for on_device in (False, True):
        w = fw.ones(3, device="cuda", requires_grad=True)
        w.grad = fw.ones_like(w)
        rate = fw.tensor(0.1, dtype=fw.float64, device="cuda") if on_device else 0.1
        optimizer = fw.optim.SGD([w], lr=rate, momentum=0.9)
        schedule = getattr(fw.optim.lr_scheduler, name)(optimizer, *SCHEDULES[name])
        optimizer.step()
        counts.clear()
        for _ in range(4):
            schedule.step()
            optimizer.step()
        assert not counts.waits, dict(counts.waits)
        assert not on_device or optimizer.param_groups[0]["lr"] is rate
        ends.append([*w.tolist(), float(optimizer.param_groups[0]["lr"])])
    np.testing.assert_allclose(ends[1], ends[0], 1e-6, 1e-6)


RATES = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop",
         "Lion", "Muon"]


@pytest.mark.parametrize("how", ["eager", "graph"])
@pytest.mark.parametrize("name", RATES)
def test_a_learning_rate_on_the_device_is_read_there(name, how, raw, cupy):  # noqa: F811
    """The steps of a number, also where somebody sets it between steps; no wait, and one launch more."""
    from cupy import counts, streams

    start, slope, ends = *np.random.default_rng(0).standard_normal((2, 3, 4)), []
    for device in ("cpu", "cuda"):
        w = fw.tensor(start, device=device, requires_grad=True)
        w.grad = fw.tensor(slope, device=device)
        rate = fw.tensor(0.1, dtype=fw.float64, device=device)
        more = {"weight_decay": 0.1} if name != "Rprop" else {}
        optimizer = getattr(fw.optim, name)([w], lr=rate, **more)
        optimizer.step()
        graph = fw.cuda.CUDAGraph() if how == "graph" and device == "cuda" else None
        try:
            if graph is not None:
                with fw.cuda.graph(graph):
                    optimizer.step()
            for lr in (0.1, 0.02, 0.3):
                rate.fill_(lr)
                counts.clear()
                optimizer.step() if graph is None else graph.replay()
                assert not counts.waits
                if device == "cuda" and graph is None:
                    assert counts.launches["numbers_of_rate"] == 1
        finally:
            fw.cuda.graph.default_capture_stream = None
            streams.clear()
        ends.append(w.detach().cpu().numpy())
    close = 5e-2 if name == "Muon" else 1e-12
    np.testing.assert_allclose(ends[1], ends[0], close, close)


def test_rates_that_no_number_grows_with_are_read(raw, cupy):  # noqa: F811
    from cupy import counts

    for name in ("Adafactor", "ASGD"):
        w = fw.ones(2, 3, device="cuda", requires_grad=True)
        w.grad = fw.ones_like(w)
        optimizer = getattr(fw.optim, name)([w], lr=fw.tensor(0.1, device="cuda"))
        optimizer.step()
        counts.clear()
        optimizer.step()
        assert counts.waits
