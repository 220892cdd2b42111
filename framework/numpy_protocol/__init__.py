"""NumPy's functions on tensors, so that plain NumPy code can be differentiated.

``np.sin(x)`` of a tensor calls ``x.__array_ufunc__``, ``np.mean(x)`` calls ``x.__array_function__``; both
look the function up in a table of our own ops, whose results are tensors in the graph. The arguments are
NumPy's (axis, keepdims, ddof, out, where), the dtype rules ours. A function that is not in the table is
computed by NumPy and comes back as a tensor, unless a gradient would be lost: then a TypeError names it.
"""

from . import linear as linear
from . import reductions as reductions
from . import shapes as shapes
from .dispatch import array_function as array_function
from .dispatch import array_ufunc as array_ufunc
