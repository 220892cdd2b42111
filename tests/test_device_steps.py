"""Launches and waits of training steps on a device, counted by the stand-in for CuPy."""

import pytest
from device_steps import Run, counted
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

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

    for make in (
        fw.optim.SGD,
        fw.optim.Adam,
        fw.optim.AdamW,
        fw.optim.RMSprop,
        fw.optim.Adagrad,
        fw.optim.Adadelta,
        fw.optim.Adamax,
    ):
        params = [fw.ones(3 + i, device="cuda", requires_grad=True) for i in range(40)]
        for p in params:
            p.grad = fw.ones_like(p)
        optimizer = make(params, lr=0.1)
        optimizer.step()
        counts.clear()
        optimizer.step()
        assert counts.launches.total() == 1 and not counts.waits, (make, counts.launches)
