"""The few names of PyTorch's C++ core that programs use: those about ``__torch_function__``."""

from .ops.record.torch_function import DisableTorchFunction as DisableTorchFunction
from .ops.record.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .ops.record.torch_function import disabled as _disabled_torch_function_impl  # noqa: F401
