"""Bad input that is bad for every op alike: arrays and lists for tensors, notes on failures."""

import traceback
from pathlib import Path

import numpy as np
import pytest
from table import ROWS, cast_inputs, flat, numpy_of, row_id, tensors

import framework as fw
from framework import errors

PACKAGE = str(Path(fw.__file__).parent)
FUNCTIONS = [r for r in ROWS if r.namespace and r.namespace != "Tensor"
             and any(isinstance(a, np.ndarray) for s in r.samples for a in s.inputs)]


def positions(row):
    """(sample, position) of the tensor arguments of the row's first samples with each number of inputs."""
    seen = set()
    for sample in row.samples:
        for i, a in enumerate(sample.inputs):
            if isinstance(a, np.ndarray) and (len(sample.inputs), i) not in seen:
                seen.add((len(sample.inputs), i))
                yield sample, i


def any_object_passes(sample, given, i):
    """Whether the argument is not used, or not by us (Python itself compares anything by ==)."""
    try:
        sample.call(fw, *given[:i], object(), *given[i + 1:])
    except Exception:
        return False
    return True


@pytest.mark.parametrize("kind", ["array", "list", "text"])
@pytest.mark.parametrize("row", FUNCTIONS, ids=row_id)
def test_not_a_tensor(row, kind):
    """What is no tensor is converted to the same result, or refused by a TypeError naming the argument."""
    for sample, i in positions(row):
        arrays = cast_inputs(sample, np.float64)
        given = tensors(arrays)
        want = flat(sample.call(fw, *given))
        given[i] = {"array": arrays[i], "list": arrays[i].tolist(), "text": "text"}[kind]
        try:
            got = flat(sample.call(fw, *given))
        except TypeError as error:
            text = str(error)
            ours = traceback.extract_tb(error.__traceback__)[-1].filename.startswith(PACKAGE)
            assert not ours or "must be" in text or "wanted" in text or "expected" in text, (
                f"sample {sample.label!r}, argument {i}: the message names no argument: {text}")
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if frame.filename.startswith(PACKAGE) and not isinstance(error, errors.FrameworkError):
                error.add_note(f"sample {sample.label!r} of {row_id(row)}: argument {i} given as {kind}")
                raise
        else:
            if kind == "text":
                assert any_object_passes(sample, given, i), f"{sample.label!r}: text passed for argument {i}"
                continue
            for a, b in zip(got, want):
                np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("error, bases", [
    (errors.ShapeError, (ValueError, RuntimeError)), (errors.DTypeError, (TypeError, RuntimeError)),
    (errors.DeviceError, (RuntimeError,)), (errors.AutogradError, (RuntimeError,)),
    (errors.CheckpointError, (ValueError, RuntimeError)), (errors.MissingExtraError, (ImportError,)),
])
def test_errors_are_what_habits_catch(error, bases):
    assert issubclass(error, (errors.FrameworkError, *bases))
    assert all(issubclass(error, b) for b in bases)


def test_a_failure_tells_the_call():
    with pytest.raises(errors.ShapeError) as caught:
        fw.ones(2, 3) + fw.ones(4)
    assert "add" in str(caught.value) and "[2, 3]" in str(caught.value) and "[4]" in str(caught.value)
    assert any("while running add(float32[2, 3], float32[4])" in n for n in caught.value.__notes__)


def test_bad_input_changes_nothing():
    x = fw.ones(2, 3)
    before, version = x.tolist(), x._version
    for bad in (lambda: x.add_(fw.ones(4)), lambda: x.copy_(fw.ones(7)), lambda: x.mul_("text"),
                lambda: x.add_(fw.ones(5, 2, 3))):
        with pytest.raises((errors.FrameworkError, TypeError)):
            bad()
        assert x.tolist() == before and x._version == version


@pytest.mark.parametrize("call, kind, text", [
    (lambda: bool(fw.ones(2)), errors.ShapeError, "any()"),
    (lambda: fw.ones(2).item(), errors.ShapeError, "tolist()"),
    (lambda: float(fw.ones(2)), errors.ShapeError, "one element"),
    (lambda: len(fw.tensor(1.0)), TypeError, "0-dim"),
    (lambda: [1, 2][fw.tensor(1.0)], errors.DTypeError, "integer tensor"),
    (lambda: np.asarray(fw.ones(2, requires_grad=True)), errors.AutogradError, "detach().numpy()"),
    (lambda: fw.ones(2).to("gpu"), errors.DeviceError, "'cuda:N' or 'meta'"),
    (lambda: fw.tensor([1]).requires_grad_(), errors.AutogradError, "floating"),
])
def test_sentences(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
