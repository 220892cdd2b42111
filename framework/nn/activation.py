"""Activations: one small class around each function of ``nn.functional``."""

from typing import Any

from ..creation import full
from ..errors import ShapeError
from ..tensor import Tensor
from . import functional as F
from .module import Module
from .parameter import Parameter


class _Inplace(Module):
    """An activation without settings that can write into its input."""

    shows_inplace = True

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The settings that differ from the defaults."""
        return "inplace=True" if self.inplace and self.shows_inplace else ""


class ReLU(_Inplace):
    """``max(x, 0)``

    >>> fw.nn.ReLU()(fw.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.relu(input, inplace=self.inplace)


class ReLU6(_Inplace):
    """``min(max(x, 0), 6)``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.relu6(input, inplace=self.inplace)


class SELU(_Inplace):
    """Scaled ELU that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.selu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``, also called swish."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))`` (Misra 2019)."""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.mish(input, inplace=self.inplace)


class Hardswish(_Inplace):
    """``x * relu6(x + 3) / 6`` (Howard et al. 2019)."""

    shows_inplace = False

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.hardswish(input, inplace=self.inplace)


class Hardsigmoid(_Inplace):
    """``relu6(x + 3) / 6``"""

    shows_inplace = False

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.hardsigmoid(input, inplace=self.inplace)


class ELU(Module):
    """``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2016)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.elu(input, self.alpha, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class CELU(Module):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`` (Barron 2017)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.celu(input, self.alpha, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class LeakyReLU(Module):
    """``x`` where positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.leaky_relu(input, self.negative_slope, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class PReLU(Module):
    """``x`` where positive, else ``weight * x``, one learned weight or one per channel (He et al. 2015).

    >>> fw.nn.PReLU()(fw.tensor([-4.0])).detach()
    tensor([-1.])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``; channels are dimension 1."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """``x * Phi(x)``, Phi the normal distribution; approximate="tanh" (Hendrycks and Gimpel 2016).

    >>> fw.nn.GELU()(fw.tensor([0.0]))
    tensor([0.])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The settings."""
        return f"approximate='{self.approximate}'"


class Hardtanh(Module):
    """``min(max(x, min_val), max_val)``"""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise ValueError(f"Hardtanh: max_val={max_val} must be above min_val={min_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"min_val={self.min_val}, max_val={self.max_val}"
                f"{', inplace=True' if self.inplace else ''}")


class Hardshrink(Module):
    """``x`` where ``|x| > lambd``, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return str(self.lambd)


class Softshrink(Module):
    """``x`` moved towards 0 by lambd, 0 where ``|x| <= lambd``."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return str(self.lambd)


class Tanhshrink(Module):
    """``x - tanh(x)``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.tanhshrink(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and x itself where ``beta * x > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """``x / (1 + |x|)``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.softsign(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return input.sigmoid()  # type: ignore[attr-defined]


class Tanh(Module):
    """``tanh(x)``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return input.tanh()  # type: ignore[attr-defined]


class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``"""

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.logsigmoid(input)


class RReLU(Module):
    """``x`` where positive, else ``a * x``: a random in [lower, upper) in training, else their mean.

    Xu et al. 2015.

    >>> fw.nn.RReLU(0.25, 0.75).eval()(fw.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class Threshold(Module):
    """``x`` where above threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The activation of ``input``, elementwise."""
        return F.threshold(input, self.threshold, self.value, inplace=self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"threshold={self.threshold}, value={self.value}"
                f"{', inplace=True' if self.inplace else ''}")


class GLU(Module):
    """``a * sigmoid(b)`` where a and b are the halves of x along dim (Dauphin et al. 2017)."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The gated first half of ``input``."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"


class Softmax(Module):
    """``exp(x) / sum(exp(x))`` along dim.

    >>> fw.nn.Softmax(dim=0)(fw.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``input``."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of the softmax along dim, computed stably."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The log-softmax of ``input``."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"


class Softmin(Module):
    """The softmax of -x along dim."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``-input``."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """The softmax over the channels at every place of x (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """The softmax of ``input`` along its third dimension from the end."""
        if input.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: wanted an input (N, C, H, W) or (C, H, W), got {list(input.shape)}")
        return F.softmax(input, -3)
