"""The ops. Importing this binds every record's function to its home and its methods to Tensor."""

from typing import Any

from ..tensor import Tensor
from . import arithmetic as arithmetic
from . import broadcast as broadcast
from . import cast as cast
from . import compare as compare
from . import matmul as matmul
from . import pointwise as pointwise
from . import random as random
from . import reduce as reduce
from . import scan as scan
from . import sort as sort
from . import stats as stats
from . import view as view
from .inplace import inplace
from .op import OPS as OPS
from .public import PUBLIC as PUBLIC


def namespace(name: str) -> dict[str, Any]:
    """The public functions of a namespace, by name."""
    return {p.name: p.function for p in PUBLIC if p.namespace == name}


def _bind() -> None:
    for p in PUBLIC:
        for method in p.methods:
            setattr(Tensor, method, property(p.function) if p.property else p.function)
        if p.inplace:
            for method in p.methods:
                if not method.startswith("__"):
                    setattr(Tensor, f"{method}_", inplace(p.function, method, p.op))
    for name, symbol in (("add", "iadd"), ("sub", "isub"), ("mul", "imul"), ("div", "itruediv"),
                         ("floor_divide", "ifloordiv"), ("remainder", "imod"), ("pow", "ipow"),
                         ("bitwise_and", "iand"), ("bitwise_or", "ior"), ("bitwise_xor", "ixor")):
        setattr(Tensor, f"__{symbol}__", getattr(Tensor, f"{name}_"))


_bind()
