"""The record of an op, and the road that every call of one takes."""

from . import aliases as aliases
from . import args as args
from . import arming as arming
from . import autocast as autocast
from . import constants as constants
from . import into as into
from . import meta as meta
from . import op as op
from . import public as public
from . import return_types as return_types
from . import road as road
from . import rounded as rounded
from . import torch_function as torch_function
