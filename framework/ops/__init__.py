"""The ops. Importing this binds every record's function to its home and its methods to Tensor."""

from typing import Any

from ..tensor import Tensor
from . import activations as activations
from . import adaptive_pool as adaptive_pool
from . import arithmetic as arithmetic
from . import arrange as arrange
from . import attention as attention
from . import broadcast as broadcast
from . import cast as cast
from . import class_losses as class_losses
from . import compare as compare
from . import complexes as complexes
from . import conv as conv
from . import ctc as ctc
from . import distances as distances
from . import dropout as dropout
from . import einsum as einsum
from . import elements as elements
from . import embedding as embedding
from . import extras as extras
from . import fft as fft
from . import getitem as getitem
from . import grid_sample as grid_sample
from . import index as index
from . import inplace_forms as inplace_forms
from . import integrals as integrals
from . import inverses as inverses
from . import join as join
from . import linalg as linalg
from . import losses as losses
from . import made_matrices as made_matrices
from . import margin_losses as margin_losses
from . import matmul as matmul
from . import multihead as multihead
from . import names as names
from . import norm as norm
from . import norms as norms
from . import pad as pad
from . import pointwise as pointwise
from . import pool as pool
from . import power_pool as power_pool
from . import quantiles as quantiles
from . import queries as queries
from . import random as random
from . import random_activations as random_activations
from . import rank as rank
from . import reduce as reduce
from . import rnn as rnn
from . import scan as scan
from . import scatter as scatter
from . import scatter_reduce as scatter_reduce
from . import share as share
from . import slices as slices
from . import softmax as softmax
from . import solvers as solvers
from . import sort as sort
from . import special as special
from . import special_more as special_more
from . import split as split
from . import stats as stats
from . import stft as stft
from . import strided as strided
from . import view as view
from . import windows as windows
from .inplace import inplace
from .op import OPS as OPS
from .public import PUBLIC as PUBLIC
from .public import bare


def namespace(name: str) -> dict[str, Any]:
    """The public functions of a namespace, by name."""
    return {p.name: p.function for p in PUBLIC if p.namespace == name}


def _bind() -> None:
    for p in PUBLIC:
        function = bare(p.function)
        for method in p.methods:
            setattr(Tensor, method, property(function) if p.property else function)
        if p.inplace:
            for method in p.methods:
                if not method.startswith("__"):
                    setattr(Tensor, f"{method}_", inplace(function, method, p.op, p.call))
    for name, symbol in (("add", "iadd"), ("sub", "isub"), ("mul", "imul"), ("div", "itruediv"),
                         ("floor_divide", "ifloordiv"), ("remainder", "imod"), ("pow", "ipow"),
                         ("bitwise_and", "iand"), ("bitwise_or", "ior"), ("bitwise_xor", "ixor")):
        setattr(Tensor, f"__{symbol}__", getattr(Tensor, f"{name}_"))


_bind()
