"""Windows for filters and short-time transforms: ``framework.signal.windows``."""

# functions of the rooms, written by framework.ops.stub
from ..ops.signal.window_functions import bartlett as bartlett
from ..ops.signal.window_functions import blackman as blackman
from ..ops.signal.window_functions import cosine as cosine
from ..ops.signal.window_functions import exponential as exponential
from ..ops.signal.window_functions import gaussian as gaussian
from ..ops.signal.window_functions import general_cosine as general_cosine
from ..ops.signal.window_functions import general_hamming as general_hamming
from ..ops.signal.window_functions import hamming as hamming
from ..ops.signal.window_functions import hann as hann
from ..ops.signal.window_functions import kaiser as kaiser
from ..ops.signal.window_functions import nuttall as nuttall

# end of the functions
