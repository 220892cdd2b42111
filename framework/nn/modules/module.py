"""Where PyTorch programs look for Module and what hooks onto all modules: names only."""

from ..hookable import register_module_backward_hook as register_module_backward_hook
from ..hookable import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from ..hookable import register_module_forward_hook as register_module_forward_hook
from ..hookable import register_module_forward_pre_hook as register_module_forward_pre_hook
from ..hookable import register_module_full_backward_hook as register_module_full_backward_hook
from ..hookable import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from ..hookable import register_module_module_registration_hook as register_module_module_registration_hook
from ..hookable import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from ..loading import IncompatibleKeys as _IncompatibleKeys
from ..module import Module as Module
