"""Training in mixed precision: products in bfloat16 on the CPU, parameters in float32."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..workload import Case, fill, forward_flops, integers, normal, training, workload
from .language import gpt

# bfloat16 has 8 bits: sums in another order are rounded to a neighbour now and then, and that adds up
TOLERANCE = 0.05


def mixed(M: ModuleType, loss: Callable[[], Any]) -> Callable[[], Any]:
    """The loss under autocast; backward comes after the block."""

    def run() -> Any:
        with M.autocast("cpu", dtype=M.bfloat16):
            return loss()

    return run


@workload(
    "conv3x3-bf16-step", tiny={"batch": 2, "channels": 4, "size": 6}, tolerance=TOLERANCE, training=True
)
def conv3x3_bf16_step(M: ModuleType, *, batch: int = 8, channels: int = 128, size: int = 28) -> Case:
    """conv3x3-step under autocast: 128 to 128 channels on 28x28, batch 8, bfloat16."""
    model = fill(M, M.nn.Conv2d(channels, channels, 3, padding=1))
    x = normal(M, batch, channels, size, size, requires_grad=True)
    forward, _ = forward_flops(M, model, lambda: model(x))

    def loss() -> Any:
        x.grad = None
        return model(x).square().mean()

    case = training(M, model, mixed(M, loss), M.optim.SGD(model.parameters(), lr=1e-4), forward=forward)
    of_step = case.values
    case.values = lambda value: [value.float(), *of_step(value)[1:], x.grad]
    return case


@workload(
    "gpt-bf16-step",
    tiny={"vocabulary": 11, "width": 8, "heads": 2, "length": 5, "layers": 2, "batch": 2},
    tolerance=TOLERANCE,
    training=True,
)
def gpt_bf16_step(
    M: ModuleType,
    *,
    vocabulary: int = 512,
    width: int = 128,
    heads: int = 4,
    length: int = 64,
    layers: int = 4,
    batch: int = 8,
) -> Case:
    """gpt-step under autocast: 4 layers, width 128, 4 heads, length 64, batch 8, AdamW, bfloat16."""
    model = fill(M, gpt(M, vocabulary, width, heads, length, layers))
    x, y = integers(M, vocabulary, batch, length), integers(M, vocabulary, batch * length, seed=1)

    def loss() -> Any:
        return M.nn.functional.cross_entropy(model(x).reshape(-1, vocabulary), y)

    attention = layers * 2 * 2.0 * batch * length * length * width
    return training(
        M,
        model,
        mixed(M, loss),
        M.optim.AdamW(model.parameters(), lr=1e-4),
        forward=forward_flops(M, model, loss)[0] + attention,
    )
