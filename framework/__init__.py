"""A deep-learning research framework with PyTorch's public API, over NumPy and CuPy."""

from . import ops as ops
from .autograd import engine as _engine
from .autograd.mode import enable_grad as enable_grad
from .autograd.mode import inference_mode as inference_mode
from .autograd.mode import is_grad_enabled as is_grad_enabled
from .autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd.mode import no_grad as no_grad
from .autograd.mode import set_grad_enabled as set_grad_enabled
from .creation import *  # noqa: F403
from .device import Device as device
from .dtypes import *
from .dtypes import bool_ as bool
from .dtypes import complex64 as cfloat
from .dtypes import complex128 as cdouble
from .dtypes import float16 as half
from .dtypes import float32 as float
from .dtypes import float64 as double
from .dtypes import int16 as short
from .dtypes import int32 as int
from .dtypes import int64 as long
from .printing import set_printoptions as set_printoptions
from .tensor import Tensor as Tensor

globals().update(ops.namespace("framework"))
