"""What depends on an elementwise program's settings only is computed once, if they are numbers."""

import numpy as np
import pytest

from framework import _native
from framework.ops.language.program import compile_program, native_kernel

pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")


def test_the_steps_of_settings_come_first():
    text = "x * (low + 2) + (low + 2) * high"
    made = compile_program(text, ("x", "low", "high"), ("low", "high"))
    assert str(made) == ("x, low, high -> add r0 = low, 2; mul r1 = r0, high; mul_add result = x, r0, r1")
    assert made.once == 2
    assert compile_program("low * 2", ("low",), ("low",)).once == 0  # the result is always written


def formula(x, low, high):
    return np.where(low < 0, x * (low + 2) + (low + 2) * high, 0)


@pytest.mark.parametrize("n", [1, 63, 5000, 300_001])
def test_settings_may_be_numbers_or_arrays(n, each_threads):
    run = native_kernel("where(low < 0, x * (low + 2) + (low + 2) * high, 0)", ("x", "low", "high"), len,
                        ("low", "high"))
    x, many = np.random.default_rng(0).normal(size=(2, n))
    one = np.array(-0.25)
    for low, high in ((-0.5, 0.75), (many, 0.75), (-0.5, many), (many, x), (one, many), (one, one)):
        np.testing.assert_array_equal(run(x, low, high), formula(x, low, high))
