"""Training in mixed precision: products in bfloat16 on the CPU, parameters in float32."""

from types import ModuleType
from typing import Any

from ..workload import Case, Loss, workload
from .language import TINY_GPT, train_gpt
from .vision import train_conv3x3

# bfloat16 has 8 bits: sums in another order are rounded to a neighbour now and then, and that adds up
TOLERANCE = 0.05


def mixed(M: ModuleType, loss: Loss) -> Loss:
    """The loss under autocast, in float32; backward comes after the block."""
    def run() -> Any:
        with M.autocast("cpu", dtype=M.bfloat16):
            value = loss()
        return value.float()
    return run


@workload("conv3x3-bf16-step", tiny={"batch": 2, "channels": 4, "size": 6}, tolerance=TOLERANCE,
          training=True)
def conv3x3_bf16_step(M: ModuleType, *, batch: int = 8, channels: int = 128, size: int = 28) -> Case:
    """conv3x3-step under autocast: 128 to 128 channels on 28x28, batch 8, bfloat16."""
    return train_conv3x3(M, batch, channels, size, lambda loss: mixed(M, loss))


@workload("gpt-bf16-step", tiny=TINY_GPT, tolerance=TOLERANCE, training=True)
def gpt_bf16_step(M: ModuleType, *, vocabulary: int = 512, width: int = 128, heads: int = 4,
                  length: int = 64, layers: int = 4, batch: int = 8) -> Case:
    """gpt-step under autocast: 4 layers, width 128, 4 heads, length 64, batch 8, AdamW, bfloat16."""
    return train_gpt(M, vocabulary, width, heads, length, layers, batch, lambda loss: mixed(M, loss))
