"""Elements chosen, read and written by their positions."""

from . import embedding as embedding
from . import embedding_bag as embedding_bag
from . import getitem as getitem
from . import index as index
from . import masks as masks
from . import nonzero as nonzero
from . import repeat as repeat
from . import scatter as scatter
from . import scatter_reduce as scatter_reduce
from . import setitem as setitem
