"""Functions of functions: gradients, Jacobians, batches; PyTorch's place for them is ``torch.func``."""

from ..config.listing import listing as _listing
from .batch import vmap as vmap
from .call import functional_call as functional_call
from .call import stack_module_state as stack_module_state
from .forward import hessian as hessian
from .forward import hvp as hvp
from .forward import jacfwd as jacfwd
from .forward import jvp as jvp
from .reverse import grad as grad
from .reverse import grad_and_value as grad_and_value
from .reverse import jacrev as jacrev
from .reverse import linearize as linearize
from .reverse import value_and_grad as value_and_grad
from .reverse import vjp as vjp

__dir__ = _listing(globals(), "")
