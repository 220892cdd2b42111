"""A complex parameter is optimized as the pairs of its real and imaginary parts, by every optimizer."""

import copy

import numpy as np
import pytest
from optimizer_rows import ROWS

import framework as fw
from framework import optim
from framework.errors import CheckpointError

CASES = [pytest.param(row, options, id=f"{row.name}-{options}")
         for row in ROWS.values() if not row.real for options in row.variants]
STEPS = 5
rng = np.random.default_rng(3)
START, CENTER = [rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)) for _ in range(2)]


def run(module, row, options, p, center, steps=STEPS, optimizer=None):
    """Parabolas in both parts, one steeper than the other; the optimizer afterwards."""
    optimizer = optimizer or getattr(module.optim, row.name)([p], **options)

    def closure():
        optimizer.zero_grad()
        z = p - center if p.is_complex() else module.view_as_complex(p) - center
        loss = (z.real ** 2 + 3 * z.imag ** 2).sum()
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return optimizer


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


@pytest.mark.parametrize("row, options", CASES)
def test_steps_are_those_of_the_pairs(row, options):
    for memory in (START.copy(), np.array(1 + 2j), START[:, :0].copy(), START.copy().T[:, ::2]):
        start = memory.copy()
        z, center = fw.from_numpy(memory).requires_grad_(), fw.tensor(start + 1 - 2j)
        p = fw.tensor(pairs(start), requires_grad=True)
        run(fw, row, options, z, center)
        run(fw, row, options, p, center)
        np.testing.assert_array_equal(pairs(memory), p.detach().numpy())
        assert not start.size or np.abs(memory - start).max() > 0


@pytest.mark.parametrize("row, options", CASES)
def test_steps_are_pytorchs(row, options):
    torch = pytest.importorskip("torch", reason="compares with PyTorch: the compare extra")
    if row.ours & set(options) or not row.theirs:
        pytest.skip("PyTorch does not have it")
    z, w = fw.tensor(START, requires_grad=True), torch.tensor(START, requires_grad=True)
    ours = run(fw, row, options, z, fw.tensor(CENTER)).state[z]
    theirs = run(torch, row, options, w, torch.tensor(CENTER)).state[w]
    np.testing.assert_allclose(z.detach().numpy(), w.detach().numpy(), 1e-6, 1e-6)
    for name in set(ours) & set(theirs) - {"step", "eta", "mu", "mu_product"} if row.name != "LBFGS" else ():
        assert ours[name].is_complex() and theirs[name].is_complex(), name
        np.testing.assert_allclose(ours[name].numpy(), theirs[name].numpy(), 1e-6, 1e-6, err_msg=name)


@pytest.mark.parametrize("row, options", CASES)
def test_resume_is_bitwise_equal(row, options):
    center = fw.tensor(CENTER)
    z = fw.tensor(START, requires_grad=True)
    run(fw, row, options, z, center, 2 * STEPS)
    half = fw.tensor(START, requires_grad=True)
    saved = copy.deepcopy(run(fw, row, options, half, center).state_dict())
    again = fw.tensor(half.detach().numpy(), requires_grad=True)
    optimizer = getattr(optim, row.name)([again])
    optimizer.load_state_dict(saved)
    run(fw, row, options, again, center, STEPS, optimizer)
    np.testing.assert_array_equal(again.detach().numpy(), z.detach().numpy())


def test_real_state_does_not_fit_a_complex_parameter():
    p, z = fw.ones(2, requires_grad=True), fw.ones(2, dtype=fw.complex64, requires_grad=True)
    first, second = optim.Adam([p]), optim.Adam([z])
    p.grad = fw.ones(2)
    first.step()
    with pytest.raises(CheckpointError, match="exp_avg is .*float32 in the checkpoint, .* needs .*complex64"):
        second.load_state_dict(first.state_dict())
    assert not second.state


def test_parameters_of_both_kinds():
    """LBFGS makes one vector of all; each parameter gets back what is its own."""
    x = fw.zeros(2, dtype=fw.float64, requires_grad=True)
    z = fw.zeros(3, dtype=fw.complex128, requires_grad=True)
    optimizer = optim.LBFGS([x, z])

    def closure():
        optimizer.zero_grad()
        loss = ((x - 2) ** 2).sum() + ((z - (1 + 3j)).abs() ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), [2, 2])
    np.testing.assert_allclose(z.detach().numpy(), [1 + 3j] * 3)
