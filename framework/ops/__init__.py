"""The ops. Importing this binds every record's function to its home and its methods to Tensor."""

from typing import Any

from ..tensor import Tensor
from . import convert as convert
from . import further_homes as further_homes
from . import image as image
from . import index as index
from . import inplace_functions as inplace_functions
from . import language as language
from . import linalg as linalg
from . import losses as losses
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
from .write.inplace import inplace


def namespace(name: str) -> dict[str, Any]:
    """The public functions of a namespace, by name."""
    return {p.name: p.function for p in PUBLIC if p.namespace == name}


# functions with an in-place form -> the operator that calls it
_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "floor_divide": "floordiv",
              "remainder": "mod", "pow": "pow", "bitwise_and": "and", "bitwise_or": "or",
              "bitwise_xor": "xor", "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}


def _bind() -> None:
    for p in PUBLIC:
        function = bare(p.function)
        operator = getattr(p.function, "operator", function)
        for method in p.methods:
            own = operator if method.startswith("__") else function
            setattr(Tensor, method, property(own) if p.property else own)
        if p.inplace:
            for method in p.methods:
                if not method.startswith("__"):
                    form = inplace(function, method, p.op, p.call)
                    setattr(Tensor, f"{method}_", form if p.autocast is None else never(form))
    for p in PUBLIC:
        if p.name in _OPERATORS and p.inplace:
            symbol = _OPERATORS[p.name]
            form = inplace(getattr(Tensor, f"__{symbol}__"), p.name, p.op, p.call)
            setattr(Tensor, f"__i{symbol}__", form)


_bind()
