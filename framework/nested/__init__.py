"""Nested tensors: sequences of different lengths in one tensor, without padding (PyTorch's jagged layout).

Their shape is (batch, j, ...), where j is ragged. Elementwise functions, linear layers, embeddings, norms,
softmax, attention, reductions, ``cat``, ``split`` and losses take them; any other function says so, and
names a way. ``framework.nn.utils.ragged`` has conversions and recurrent layers. See docs/batches.md.
"""

from ..config.listing import listing as _listing
from . import functions as functions
from .make import as_nested_tensor as as_nested_tensor
from .make import masked_select as masked_select
from .make import narrow as narrow
from .make import nested_tensor as nested_tensor
from .make import nested_tensor_from_jagged as nested_tensor_from_jagged
from .make import to_padded_tensor as to_padded_tensor
from .tensor import NestedTensor as NestedTensor

__dir__ = _listing(globals())
