"""Operands for operations of two tensors that broadcast."""

from ....dtypes import DType, float32
from ..fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from .unary import MAX_ELEMENTS, sizes, steps


class BinaryOpFuzzer(Fuzzer):
    """Tensors "x" and "y" of one to three dimensions, that broadcast in about a third of their dimensions.

    >>> from framework.utils.benchmark.op_fuzzers.binary import BinaryOpFuzzer
    >>> tensors, about, params = next(BinaryOpFuzzer(seed=0, most=1 << 12).take(1))
    >>> tensors["x"].ndim == tensors["y"].ndim == params["dim"]
    True
    """

    def __init__(
        self, seed: int | None, dtype: DType = float32, cuda: bool = False, most: int = MAX_ELEMENTS
    ) -> None:
        others = [
            FuzzedParameter(f"y_k{i}", distribution={ParameterAlias(f"k{i}"): 0.8, 1: 0.2}) for i in range(3)
        ]
        super().__init__(
            [sizes("k"), others, steps("x"), steps("y")],
            [
                FuzzedTensor(
                    "x",
                    ("k0", "k1", "k2"),
                    ("x_step_0", "x_step_1", "x_step_2"),
                    0.75,
                    min(4 * 1024, most // 16),
                    most,
                    1 << 30,
                    "dim",
                    dtype=dtype,
                    cuda=cuda,
                ),
                FuzzedTensor(
                    "y",
                    ("y_k0", "y_k1", "y_k2"),
                    ("y_step_0", "y_step_1", "y_step_2"),
                    0.75,
                    None,
                    most,
                    1 << 30,
                    "dim",
                    dtype=dtype,
                    cuda=cuda,
                ),
            ],
            seed=seed,
        )
