"""Where PyTorch programs look for pooling layers: names only."""

from ..pool import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from ..pool import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from ..pool import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from ..pool import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from ..pool import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from ..pool import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from ..pool import AvgPool1d as AvgPool1d
from ..pool import AvgPool2d as AvgPool2d
from ..pool import AvgPool3d as AvgPool3d
from ..pool import FractionalMaxPool2d as FractionalMaxPool2d
from ..pool import FractionalMaxPool3d as FractionalMaxPool3d
from ..pool import LPPool1d as LPPool1d
from ..pool import LPPool2d as LPPool2d
from ..pool import LPPool3d as LPPool3d
from ..pool import MaxPool1d as MaxPool1d
from ..pool import MaxPool2d as MaxPool2d
from ..pool import MaxPool3d as MaxPool3d
from ..pool import MaxUnpool1d as MaxUnpool1d
from ..pool import MaxUnpool2d as MaxUnpool2d
from ..pool import MaxUnpool3d as MaxUnpool3d
from ..pool import _AdaptiveMaxPool as _AdaptiveMaxPoolNd
from ..pool import _AdaptivePool as _AdaptiveAvgPoolNd
from ..pool import _AvgPool as _AvgPoolNd
from ..pool import _MaxPool as _MaxPoolNd
from ..pool import _MaxUnpool as _MaxUnpoolNd
from ..pool import _PowerPool as _LPPoolNd
