"""Views x in-place changes x hooks: what backward refuses, what it gives, and what hooks see, in one table.

Every program runs with any module of PyTorch's API: the gradients are compared with finite differences, and
all of it with PyTorch where it is installed.
"""

import numpy as np
import pytest

import framework as fw
from framework.errors import AutogradError

try:
    import torch
except ImportError:
    torch = None

X = np.array([[0.6, 1.5, -0.7], [2.0, -1.1, 0.3]])
U = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])

VIEWS = {
    "itself": lambda b: b,
    "view": lambda b: b.view(3, 2),
    "reshape": lambda b: b.reshape(6),
    "t": lambda b: b.t(),
    "transpose": lambda b: b.transpose(0, 1),
    "permute": lambda b: b.permute(1, 0),
    "movedim": lambda b: b.movedim(0, 1),
    "select": lambda b: b.select(1, 2),
    "row": lambda b: b[0],
    "slice": lambda b: b[:, 1:],
    "steps": lambda b: b[..., ::2],
    "new axis": lambda b: b[:, None],
    "narrow": lambda b: b.narrow(1, 0, 2),
    "diagonal": lambda b: b.diagonal(),
    "unsqueeze": lambda b: b.unsqueeze(0),
    "squeeze": lambda b: b[:1].squeeze(0),
    "flatten": lambda b: b.flatten(),
    "unfold": lambda b: b.unfold(1, 2, 2),
    "as_strided": lambda b: b.as_strided((2, 2), (3, 1)),
    "view of a view": lambda b: b.t()[1:].reshape(-1, 1, 2)[:, 0],
    "view_as": lambda b: b.view_as(b),
    "expand": lambda b: b.expand(2, 3),
}
SEVERAL = {"chunk": lambda b: b.chunk(2, 1)[1], "split": lambda b: b.split(2, 1)[0],
           "unbind": lambda b: b.unbind()[1]}
ALL = VIEWS | SEVERAL  # PyTorch refuses changes of the latter, one of several views made at once


def assign(M, v):
    v[...] = 2.5


def assign_first(M, v):
    v[0] = v[0] * 2


def augmented(M, v):
    v *= 3.0


CHANGES = {
    "add_": lambda M, v: v.add_(1.0),
    "mul_": lambda M, v: v.mul_(v * 2),
    "sub_ a tensor": lambda M, v: v.sub_(M.ones_like(v)),
    "zero_": lambda M, v: v.zero_(),
    "fill_": lambda M, v: v.fill_(3.0),
    "copy_": lambda M, v: v.copy_(M.ones_like(v) * 2),
    "exp_": lambda M, v: v.exp_(),
    "clamp_": lambda M, v: v.clamp_(-1.0, 1.0),
    "relu_": lambda M, v: v.relu_(),
    "masked_fill_": lambda M, v: v.masked_fill_(v > 1, 0.25),
    "assignment": assign,
    "assignment of a part": assign_first,
    "augmented": augmented,
}
NAMES = {"sub_ a tensor": "sub_", "assignment": "__setitem__|setitem",
         "assignment of a part": "__setitem__|setitem", "augmented": "mul_|__imul__"}


def leaf(M, x):
    return M.tensor(x.tolist(), dtype=M.float64, requires_grad=True)


# -- a kept value that is changed -----------------------------------------------------------------


def keep_and_change(M, view, change, detached=False):
    x = leaf(M, X)
    b = x * 1
    y = (b * b).sum()
    v = view(b.detach() if detached else b)
    CHANGES[change](M, v)
    y.backward()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("detached", [False, True])
def test_a_changed_kept_value_is_refused(change, detached):
    """Through every kind of view, of the tensor or of a detached one; named: op, shape, change."""
    for name, view in (VIEWS | (SEVERAL if detached else {})).items():
        with pytest.raises(AutogradError) as caught:
            keep_and_change(fw, view, change, detached)
        message = str(caught.value)
        assert "backward of mul" in message and "float64[2, 3]" in message, (name, message)
        assert any(n in message for n in NAMES.get(change, change).split("|")), (name, message)
        if torch is not None:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                keep_and_change(torch, view, change, detached)


@pytest.mark.parametrize("change", CHANGES)
def test_in_anomaly_mode_both_lines_are_told(change):
    with fw.autograd.detect_anomaly(), pytest.raises(AutogradError) as caught:
        keep_and_change(fw, VIEWS["slice"], change)
    message = str(caught.value)
    assert "mul ran at" in message and "in keep_and_change: y = (b * b).sum()" in message
    _, _, second = message.partition("ran at")[2].partition("ran at")
    assert "test_inplace_matrix.py" in second and message.count("ran at") == 2


def test_a_change_before_or_of_something_else_is_no_fault():
    x = leaf(fw, X)
    b = x * 1
    other = b.clone()
    b.add_(1.0)
    y = (b * b).sum()
    other.zero_()
    b.data.numpy()[0, 0] += 0.0
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (X + 1))


def test_numpy_memory_that_was_changed_can_be_told():
    """NumPy writes past the version counter; increment_version tells autograd of it."""
    x = leaf(fw, X)
    b = x * 1
    y = (b * b).sum()
    b.detach().numpy()[...] = 0
    fw.autograd.graph.increment_version(b)
    with pytest.raises(AutogradError, match="changed in place by increment_version"):
        y.backward()


# -- gradients and hooks --------------------------------------------------------------------------

HOOKS = ("none", "before", "after", "on the view", "retain before", "retain after", "retain on the view",
         "post-accumulate", "replacing")


def program(M, x, view, change, hook):
    """A changed view, then base and view in use: (loss, gradient, what the hook saw)."""
    seen = []
    x = leaf(M, x)
    if hook == "post-accumulate":
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    b = x * 2
    if hook == "before":
        b.register_hook(seen.append)
    if hook == "retain before":
        b.retain_grad()
    v = view(b)
    if hook == "retain on the view":
        v.retain_grad()
    CHANGES[change](M, v)
    if hook == "after":
        b.register_hook(seen.append)
    if hook == "replacing":
        b.register_hook(lambda g: g * 10)
    if hook == "on the view":
        v.register_hook(seen.append)
    if hook == "retain after":
        b.retain_grad()
    loss = (b * b * M.tensor(U.tolist(), dtype=M.float64)).sum() + (v * v).sum()
    loss.backward()
    seen += [t.grad for t in (b, v) if hook.startswith("retain") and t.retains_grad]
    return loss.item(), x.grad.numpy(), [np.array(s.detach().numpy()) for s in seen]


def value(x, view, change):
    with fw.no_grad():
        b = fw.from_numpy(x) * 2
        v = view(b)
        CHANGES[change](fw, v)
        return ((b * b * fw.from_numpy(U)).sum() + (v * v).sum()).item()


@pytest.mark.parametrize("view", [*VIEWS, *SEVERAL])
def test_gradients_are_those_of_finite_differences(view):
    for change in CHANGES:
        _, g, _ = program(fw, X, ALL[view], change, "none")
        for place in np.ndindex(X.shape):
            step = np.zeros_like(X)
            step[place] = 1e-5
            low, high = (value(X + s * step, ALL[view], change) for s in (-1, 1))
            np.testing.assert_allclose(g[place], (high - low) / 2e-5, rtol=1e-6, atol=1e-6, err_msg=change)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_see_what_pytorchs_see(hook):
    for name, view in VIEWS.items():
        for change in CHANGES:
            if (hook, change) == ("on the view", "assignment of a part"):
                continue  # PyTorch 2.13 crashes: a hook on a view that was written through a view of it
            ours, theirs = (program(M, X, view, change, hook) for M in (fw, torch))
            np.testing.assert_allclose(ours[0], theirs[0], err_msg=f"{name} {change}")
            np.testing.assert_allclose(ours[1], theirs[1], err_msg=f"{name} {change}")
            assert len(ours[2]) == len(theirs[2]), (name, change)
            for a, b in zip(ours[2], theirs[2]):
                np.testing.assert_allclose(a, b, err_msg=f"{name} {change}")


@pytest.mark.parametrize("view", [name for name in VIEWS if name != "itself"])
def test_a_hook_on_a_view_that_was_written_through_a_view_of_it(view):
    _, _, (seen,) = program(fw, X, VIEWS[view], "assignment of a part", "on the view")
    v = VIEWS[view](fw.from_numpy(X) * 2).numpy()
    v[0] *= 2
    np.testing.assert_allclose(seen, 2 * v)
