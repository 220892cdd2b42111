"""The ops. Importing this binds every record's function to its home and its methods to Tensor."""

import operator
from importlib.util import find_spec as _find_spec
from typing import Any

from ..config.listing import listing as _listing
from ..tensor import Tensor
from . import convert as convert
from . import copies as copies
from . import further_homes as further_homes
from . import image as image
from . import index as index
from . import inplace_functions as inplace_functions
from . import language as language
from . import linalg as linalg
from . import losses as losses
from . import main_forms as main_forms
from . import normalization as normalization
from . import pointwise as pointwise
from . import random as random
from . import record as record
from . import reduce as reduce
from . import sequence as sequence
from . import shape as shape
from . import signal as signal
from . import special as special
from . import write as write
from .record.autocast import never
from .record.op import OPS as OPS
from .record.public import PUBLIC as PUBLIC
from .record.public import bare
from .spaces import Space, space
from .spaces import load_library as load_library
from .spaces import loaded_libraries as loaded_libraries
from .write.inplace import inplace


def namespace(name: str) -> dict[str, Any]:
    """The public functions of a namespace, by name."""
    return {p.name: p.function for p in PUBLIC if p.namespace == name}


def _bind() -> None:
    for p in PUBLIC:
        function = bare(p.function)
        of_operator = getattr(p.function, "operator", function)
        for method in p.methods:
            own = of_operator if method.startswith("__") else function
            setattr(Tensor, method, property(own) if p.property else own)
        if p.inplace:
            for method in p.methods:
                if not method.startswith("__"):
                    form = inplace(function, method, p.op, p.call, p.inplace)
                    setattr(Tensor, f"{method}_", form if p.autocast is None else never(form))
    # ``x += y`` for those that are an operator, have an in-place form, and of which Python knows one
    symbols = {p.name: m for p in PUBLIC for m in p.methods if hasattr(operator, f"__i{m[2:]}")}
    for p in PUBLIC:
        if p.name in symbols and p.inplace:
            symbol = symbols[p.name]
            form = inplace(getattr(Tensor, symbol), p.name, p.op, p.call)
            setattr(Tensor, f"__i{symbol[2:]}", form)


_bind()


def __getattr__(name: str) -> Space:
    """Spaces of operators, as PyTorch names them: ``ops.aten``, and what ``library`` registers."""
    if name.startswith("_") or _find_spec(f"{__name__}.{name}") is not None:  # a module, to be imported
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return space(name)

__dir__ = _listing(globals())
