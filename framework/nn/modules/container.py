"""Where PyTorch programs look for containers: names only."""

from ..container import Container as Container
from ..container import ModuleDict as ModuleDict
from ..container import ModuleList as ModuleList
from ..container import ParameterDict as ParameterDict
from ..container import ParameterList as ParameterList
from ..container import Sequential as Sequential
