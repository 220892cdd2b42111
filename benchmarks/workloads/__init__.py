"""The workloads, a file per family; importing this package fills the registry."""

from . import attention as attention
from . import breadth as breadth
from . import dense as dense
from . import files as files
from . import higher as higher
from . import indexing as indexing
from . import language as language
from . import mixed as mixed
from . import optimizers as optimizers
from . import overhead as overhead
from . import pointwise as pointwise
from . import reductions as reductions
from . import vision as vision
