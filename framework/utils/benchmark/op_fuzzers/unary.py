"""Operands for operations of one tensor."""

from typing import Any

from ....dtypes import DType, float32
from ..fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias, dims_of

MIN_DIM, MAX_DIM = 16, 16 * 1024**2  # sizes of a dimension
MAX_ELEMENTS = 64 * 1024**2


def sizes(names: str) -> list[Any]:
    """The parameters of sizes ("k0", "k1", "k2" for "k"), of which small ones and equal ones are frequent."""
    found: list[Any] = [FuzzedParameter("dim", distribution=dims_of(3), strict=False)]
    for name in names:
        found += [FuzzedParameter(f"{name}_any_{i}", MIN_DIM, MAX_DIM, "loguniform") for i in range(3)]
        found += [
            FuzzedParameter(f"{name}_pow2_{i}", distribution={2**p: 1 / 21 for p in range(4, 25)})
            for i in range(3)
        ]
        found += [
            FuzzedParameter(
                f"{name}{i}",
                distribution={
                    ParameterAlias(f"{name}_any_{i}"): 0.8,
                    ParameterAlias(f"{name}_pow2_{i}"): 0.2,
                },
            )
            for i in range(3)
        ]
    return found


def steps(name: str) -> list[Any]:
    """The parameters of the steps of a tensor ("x_step_0" for "x"), most of which are 1."""
    return [
        FuzzedParameter(f"{name}_step_{i}", distribution={1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04})
        for i in range(3)
    ]


class UnaryOpFuzzer(Fuzzer):
    """A tensor "x" of one to three dimensions, about half of them contiguous."""

    def __init__(self, seed: int | None, dtype: DType = float32, cuda: bool = False) -> None:
        super().__init__(
            [sizes("k"), steps("x")],
            [
                FuzzedTensor(
                    "x",
                    ("k0", "k1", "k2"),
                    ("x_step_0", "x_step_1", "x_step_2"),
                    0.75,
                    4 * 1024,
                    MAX_ELEMENTS,
                    1 << 30,
                    "dim",
                    dtype=dtype,
                    cuda=cuda,
                )
            ],
            seed=seed,
        )
