"""The ONNX operators on top of this package's functions, in one table (``table.py``)."""

from ...config.listing import listing as _listing
from . import elements as elements
from . import further as further
from . import images as images
from . import recurrent as recurrent
from . import reductions as reductions
from . import shapes as shapes
from .table import TABLE as TABLE
from .table import Operator as Operator
from .table import row_of as row_of

__dir__ = _listing(globals())
