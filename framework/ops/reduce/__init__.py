"""Many elements to few: sums, extremes, moments, running sums, order, softmax."""

from . import along as along
from . import extremes as extremes
from . import histograms as histograms
from . import moments as moments
from . import quantiles as quantiles
from . import scan as scan
from . import search as search
from . import softmax as softmax
from . import sort as sort
from . import sums as sums
from . import total as total
from . import unique as unique
from . import vector_norm as vector_norm
