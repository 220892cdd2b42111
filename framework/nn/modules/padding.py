"""Where PyTorch programs look for padding layers: names only."""

from ..flatten import CircularPad1d as CircularPad1d
from ..flatten import CircularPad2d as CircularPad2d
from ..flatten import CircularPad3d as CircularPad3d
from ..flatten import ConstantPad1d as ConstantPad1d
from ..flatten import ConstantPad2d as ConstantPad2d
from ..flatten import ConstantPad3d as ConstantPad3d
from ..flatten import ReflectionPad1d as ReflectionPad1d
from ..flatten import ReflectionPad2d as ReflectionPad2d
from ..flatten import ReflectionPad3d as ReflectionPad3d
from ..flatten import ReplicationPad1d as ReplicationPad1d
from ..flatten import ReplicationPad2d as ReplicationPad2d
from ..flatten import ReplicationPad3d as ReplicationPad3d
from ..flatten import ZeroPad1d as ZeroPad1d
from ..flatten import ZeroPad2d as ZeroPad2d
from ..flatten import ZeroPad3d as ZeroPad3d
from ..flatten import _ConstantPad as _ConstantPadNd
