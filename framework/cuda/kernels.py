"""Kernels compiled before they are needed."""

import copy
import re
from typing import Any

from ..backends import cuda as _backend
from ..backends import device_code
from ..config.listing import own as _own
from ..creation import ones_like
from ..nn import Module
from ..optim import cuda as _of_optimizers  # noqa: F401 - its sources are to be known
from ..random import fork_rng
from ..tensor import Tensor
from .devices import needed

_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')


def precompile(module: Module, *inputs: Any) -> None:
    """Compile kernels that a module's training needs, which its first step would wait for.

    Those of layers, losses and optimizers in the dtypes of its parameters; with ``inputs`` also those of its
    expressions, by a forward and a backward pass of a copy of it, so that parameters, averages and random
    numbers stay as they are. Compiled kernels are kept on disk, where later processes find them. Raises
    TypeError for what is no module, DeviceError without a GPU.

    >>> if fw.cuda.is_available():
    ...     fw.cuda.precompile(fw.nn.Linear(4, 2).cuda(), fw.ones(3, 4, device="cuda"))
    """
    if not isinstance(module, Module):
        raise TypeError(f"precompile: argument 'module' must be a Module, got {type(module).__name__}")
    needed()
    with _backend.current_device_kept():
        kinds = {device_code.letter(p._array.dtype) for p in module.parameters() if p.is_cuda} | {"l"}
        for source in device_code.SOURCES:
            for kind in kinds & set(source.dtypes):
                source.kernel(_KERNEL.findall(source.text(kind))[0], kind)  # with it all of its file
    if inputs:
        given = [x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs]
        with fork_rng():
            made = copy.deepcopy(module)(*given)
            for y in made if isinstance(made, list | tuple) else [made]:
                if isinstance(y, Tensor) and y.requires_grad:
                    y.backward(ones_like(y), retain_graph=True)


__dir__ = _own(globals())
