"""Many elements to few: sums, extremes, moments, running sums, order, softmax."""

from . import along as along
from . import moments as moments
from . import quantiles as quantiles
from . import reduce as reduce
from . import scan as scan
from . import softmax as softmax
from . import sort as sort
from . import total as total
