"""Where PyTorch programs look for dropout layers: names only."""

from ..dropout import AlphaDropout as AlphaDropout
from ..dropout import Dropout as Dropout
from ..dropout import Dropout1d as Dropout1d
from ..dropout import Dropout2d as Dropout2d
from ..dropout import Dropout3d as Dropout3d
from ..dropout import FeatureAlphaDropout as FeatureAlphaDropout
from ..dropout import _Dropout as _DropoutNd
