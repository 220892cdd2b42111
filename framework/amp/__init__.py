"""Mixed precision: products in bfloat16 or float16, what needs the precision in float32.

``autocast`` chooses the dtype of each operation inside a block; ``GradScaler`` keeps small gradients of
float16 from becoming 0; ``custom_fwd`` and ``custom_bwd`` say how a ``Function`` of one's own behaves in
such a block.
"""

from ..config.listing import listing as _listing
from .function import custom_bwd as custom_bwd
from .function import custom_fwd as custom_fwd
from .grad_scaler import GradScaler as GradScaler
from .mode import autocast as autocast
from .mode import autocast_decrement_nesting as autocast_decrement_nesting
from .mode import autocast_increment_nesting as autocast_increment_nesting
from .mode import clear_autocast_cache as clear_autocast_cache
from .mode import get_autocast_dtype as get_autocast_dtype
from .mode import is_autocast_available as is_autocast_available
from .mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from .mode import is_autocast_enabled as is_autocast_enabled
from .mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from .mode import set_autocast_dtype as set_autocast_dtype
from .mode import set_autocast_enabled as set_autocast_enabled
from .per_device import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .per_device import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from .per_device import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .per_device import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from .per_device import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from .per_device import set_autocast_gpu_dtype as set_autocast_gpu_dtype

__dir__ = _listing(globals(), "")
