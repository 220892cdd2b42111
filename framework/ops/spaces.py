"""Operators by space and name, as programs find them: ``fw.ops.aten.add.Tensor``, ``fw.ops.mine.double``.

``aten`` are the public functions, under the names that they have in PyTorch; other spaces hold what
``library`` registered. As in PyTorch any space can be named, and says that it has no such operator when
that is asked for.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from ..tensor import Tensor
from .image import conv
from .record.public import PUBLIC

OVERLOADS = (
    "default",
    "Tensor",
    "Scalar",
    "int",
    "dim",
    "self",
    "dims",
    "start",
    "step",
    "out",
    "correction",
    "Tensor_Scalar",
    "Tensor_Tensor",
    "Scalar_Tensor",
    "Tensor_Mode",
    "Scalar_Mode",
    "IntList",
    "size",
    "vec",
    "sizes",
    "dim_IntList",
    "int_out",
    "correction_out",
    "Tensor_out",
    "using_ints",
    "dtype",
)


class Overload:
    """One way to call an operator: ``aten.add.Tensor``. It calls what the operator calls."""

    def __init__(self, packet: "Packet", name: str) -> None:
        self.packet, self._overload = packet, name
        self.__name__ = f"{packet.__name__}.{name}"

    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self.packet(*args, **settings)

    @property
    def overloadpacket(self) -> "Packet":
        """The operator."""
        return self.packet

    def name(self) -> str:
        """``"space::operator.overload"``; without the overload for the default one."""
        last = "" if self._overload == "default" else f".{self._overload}"
        return f"{self.packet._qualified_op_name}{last}"

    def __repr__(self) -> str:
        space, _, name = self.packet._qualified_op_name.partition("::")
        return f"<OpOverload(op='{space}.{name}', overload='{self._overload}')>"


class Packet:
    """An operator: call it, or one of its overloads, ``.default`` or ``.Tensor``."""

    def __init__(self, space: str, name: str, function: Callable) -> None:
        self._qualified_op_name, self.__name__, self._function = f"{space}::{name}", name, function
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self._function(*args, **settings)

    def __getattr__(self, name: str) -> Overload:
        if name not in OVERLOADS:
            raise AttributeError(f"{self._qualified_op_name} has no overload {name!r}")
        found = self.__dict__[name] = Overload(self, name)
        return found

    def overloads(self) -> list[str]:
        """The overloads that were named so far; which there are is not declared here."""
        return [name for name in OVERLOADS if name in self.__dict__]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"


class Space:
    """Operators by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: dict[str, Packet] = {}

    def put(self, name: str, function: Callable) -> None:
        """Let ``name`` call this function."""
        packet = self._made.get(name)
        if packet is None:
            self._made[name] = Packet(self.name, name, function)
        else:  # whoever holds it calls the new function
            packet._function = function

    def __getattr__(self, name: str) -> Packet:
        found = self._made.get(name)
        if found is None and self.name == "aten" and (function := _aten(name)) is not None:
            found = self._made[name] = Packet("aten", name, function)
        if found is None:
            raise AttributeError(
                f"ops.{self.name} has no operator {name!r}: there are those of aten that are "
                f"public functions, and what library.custom_op or library.Library registered"
            )
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._made)

    def __repr__(self) -> str:
        return f"<operators of {self.name}>"


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """``conv1d`` to ``conv_transpose3d`` in one, as PyTorch's core calls them."""
    name = f"conv{'_transpose' * transposed}{input.ndim - 2}d"
    settings = {"output_padding": output_padding} if transposed else {}
    return getattr(conv, name)(
        input, weight, bias, stride, padding, dilation=dilation, groups=groups, **settings
    )


def _aten(name: str) -> Callable | None:
    """The public function or method of this name."""
    if name == "convolution":
        return _convolution
    for home in ("framework", "nn.functional", "special"):
        for p in PUBLIC:
            if p.name == name and p.namespace == home:
                return p.function
    method = None if name.startswith("__") else vars(Tensor).get(name)
    return method if callable(method) else None


SPACES: dict[str, Space] = {}


def space(name: str) -> Space:
    """The operators of a space, which may have none yet."""
    return SPACES.setdefault(name, Space(name))


def load_library(path: Any) -> NoReturn:
    """Refused: a library of operators is built against PyTorch's C++ core, which is not here."""
    raise OSError(
        f"ops.load_library: {path} registers its operators in PyTorch's C++ core, which is not here; "
        f"write them in Python with library.custom_op, or in C++ with utils.cpp_extension.load"
    )


loaded_libraries: set[str] = set()
