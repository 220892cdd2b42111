"""``torch._dynamo``: what programs say to a compiler, where functions run as they are."""

from ....compiler import allow_in_graph as allow_in_graph
from ....compiler import assume_constant_result as assume_constant_result
from ....compiler import disable as disable
from ....compiler import is_compiling as is_compiling
from ....compiler import list_backends as list_backends
from ....compiler import reset as reset
from ....compiler import substitute_in_graph as substitute_in_graph
from . import utils as utils
