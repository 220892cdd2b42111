"""In-place forms that are not "compute, then write": views put in a tensor's place, and functions.

``x.squeeze_()`` changes how ``x`` sees its memory and moves no element; ``fw.abs_(x)`` and
``nn.functional.relu_(x)`` are the methods and the ``inplace=True`` of functions by PyTorch's other names.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..errors import AutogradError
from ..quiet import quiet
from ..seam import settled
from ..tensor import Tensor, bump, set_node, step_of
from .index import index as index
from .linalg import matmul as matmul
from .pointwise import compare as compare
from .pointwise.activations import celu, elu, hardtanh, leaky_relu, selu
from .pointwise.activations import threshold as limited
from .record.args import tensor_arg
from .record.entries import VIEW, entered_form
from .record.into import guard
from .record.public import PUBLIC, bare, public
from .shape import diagonals as diagonals
from .shape.view import permute_op, reshape_op, squeeze, swapaxes, t, transpose, unsqueeze
from .special import gamma as gamma
from .write.inplace import inplace
from .write.strided import as_strided

# -- views in place ------------------------------------------------------------------------------


def _back(op: Any, settings: dict, shape: tuple[int, ...]) -> tuple | None:
    """The view that undoes ``op``, as a step of a chain; None where there is none."""
    if op is reshape_op:
        return reshape_op, {"shape": shape}
    if op is permute_op:
        dims = settings["dims"]
        return permute_op, {"dims": tuple(sorted(range(len(dims)), key=dims.__getitem__))}
    return None


def _replace(x: Tensor, view: Tensor, name: str) -> Tensor:
    """Let ``x`` see its memory as ``view``, a view just made of it, does."""
    extras: Any = x._extras()
    alone = extras.base is None and len(extras.views or ()) == 1 and extras.views[0]() is view
    if alone and x._node is view._node is None:
        extras.views = None
        x._array = view._array
        bump(x, name)
        return x
    links: tuple = view._more.links  # type: ignore[union-attr, assignment]
    live = []
    for ref in extras.views or ():
        other = ref()
        if other is not None and other is not view:
            live.append(other)
    undo = _back(*step_of(links), x.shape) if live else None
    if live and undo is None:
        raise AutogradError(f"{name}: other views of this tensor are in use, whose gradients could not be "
                            f"followed; use {name[:-1]}()")
    for other in live:
        theirs: Any = other._more
        if theirs.links[0] is None:  # nearly always: one step from the base
            theirs.links = ((None, undo[0], None, undo[1]), *theirs.links[1:])  # type: ignore[index]
        else:
            theirs.chain = (undo, *theirs.chain)
    if extras.base is not None:
        extras.links = (extras.links, *links[1:])
    x._array = view._array
    set_node(x, view._node)
    bump(x, name)
    return x


def _view_form(function: Callable, example: str, shape: str) -> Callable:
    own = f"{function.__name__}_"

    @wraps(function)
    def form(input: Tensor, *args: Any, **settings: Any) -> Tensor:
        if quiet.settle is not None or quiet.stack:
            settled((input,))
        if tensor_arg(input, own)._node is not None or input._more is not None:
            guard(input, own)
        return _replace(input, function(input, *args, **settings), own)
    form.__name__ = form.__qualname__ = own
    form.__module__ = __name__
    form.__doc__ = (f"``{own[:-1]}`` in place: this tensor sees its memory in the new shape; returns it."
                    f"\n\n    >>> x = fw.ones(1, 2, 1)[0]\n"
                    f"    >>> x.{own}({example}).shape\n    {shape}\n    ")
    return entered_form(form, None, None, own, 0, function, VIEW)


for _view, _names, _args, _shape in (
        (squeeze, "squeeze_", "", "(2,)"), (unsqueeze, "unsqueeze_", "0", "(1, 2, 1)"),
        (t, "t_", "", "(1, 2)"), (transpose, "transpose_ swapdims_", "0, 1", "(1, 2)"),
        (swapaxes, "swapaxes_", "0, 1", "(1, 2)")):
    public("", method=_names)(_view_form(_view, _args, _shape))
as_strided_ = public(method=True)(_view_form(as_strided, "(2,), (1,)", "(2,)"))

# -- in-place forms as functions -----------------------------------------------------------------


# the public functions behind the in-place methods that the rooms above have registered
_SOURCES = {f"{name}_" if p.inplace else name: p for p in PUBLIC for name in p.methods
            if p.inplace or name.endswith("_")}


def _method(name: str) -> Callable:
    """The method as a function of its own, which says what is wrong with what is no tensor."""
    p = _SOURCES[name]
    if p.inplace:
        return inplace(bare(p.function), name[:-1], p.op, p.call, p.inplace)

    @wraps(p.function)
    def form(input: Tensor, *args: Any, **settings: Any) -> Tensor:
        if not isinstance(input, Tensor):
            tensor_arg(input, name)
        return p.function(input, *args, **settings)
    return form


def _example(call: str, make: str, rest: str) -> str:
    arguments = f"x, {rest}" if rest else "x"
    return f"\n\n    >>> x = {make}\n    >>> {call}({arguments}) is x\n    True\n    "


def _function(name: str, rest: str = "", make: str = "fw.tensor([0.5, 0.25])") -> Callable:
    """``x.name(...)`` as a function; the others are for its example: further arguments, and ``x``."""
    form = _method(name)
    form.__name__ = form.__qualname__ = name
    form.__module__ = __name__
    form.__doc__ = (f"``input.{name}(...)``: writes into ``input`` and returns it."
                    + _example(f"fw.{name}", make, rest))
    return public()(form)


def _activation(function: Callable, form: Callable, rest: str = "") -> Callable:
    """An activation with ``inplace=True``, as ``form`` calls it."""
    name = f"{function.__name__}_"
    form.__name__ = form.__qualname__ = name
    form.__module__ = __name__
    form.__annotations__ = {n: kind for n, kind in function.__annotations__.items() if n != "inplace"}
    form.__doc__ = (f"``{name[:-1]}`` with ``inplace=True``: writes into ``input`` and returns it."
                    + _example(f"fw.nn.functional.{name}", "fw.tensor([0.5, -0.25])", rest))
    return public("nn.functional")(form)


abs_ = _function("abs_")
acos_ = _function("acos_")
acosh_ = _function("acosh_")
addmv_ = _function("addmv_", "fw.ones(2, 3), fw.ones(3)")
arccos_ = _function("arccos_")
arccosh_ = _function("arccosh_")
arcsin_ = _function("arcsin_")
arcsinh_ = _function("arcsinh_")
arctan_ = _function("arctan_")
arctanh_ = _function("arctanh_")
asin_ = _function("asin_")
asinh_ = _function("asinh_")
atan_ = _function("atan_")
atanh_ = _function("atanh_")
ceil_ = _function("ceil_")
clamp_ = _function("clamp_", "0.0, 0.3")
clamp_max_ = _function("clamp_max_", "0.3")
clamp_min_ = _function("clamp_min_", "0.3")
clip_ = _function("clip_", "0.0, 0.3")
cos_ = _function("cos_")
cosh_ = _function("cosh_")
deg2rad_ = _function("deg2rad_")
detach_ = _function("detach_")
erf_ = _function("erf_")
erfc_ = _function("erfc_")
exp2_ = _function("exp2_")
exp_ = _function("exp_")
expm1_ = _function("expm1_")
fill_ = _function("fill_", "2.0")
fix_ = _function("fix_")
floor_ = _function("floor_")
frac_ = _function("frac_")
gcd_ = _function("gcd_", "fw.tensor([2, 3])", "fw.tensor([4, 6])")
i0_ = _function("i0_")
index_put_ = _function("index_put_", "(fw.tensor([1]),), fw.tensor([2.0])")
lcm_ = _function("lcm_", "fw.tensor([2, 3])", "fw.tensor([4, 6])")
log10_ = _function("log10_")
log1p_ = _function("log1p_")
log2_ = _function("log2_")
log_ = _function("log_")
logit_ = _function("logit_")
nan_to_num_ = _function("nan_to_num_")
neg_ = _function("neg_")
negative_ = _function("negative_")
rad2deg_ = _function("rad2deg_")
reciprocal_ = _function("reciprocal_")
relu_ = _function("relu_")
round_ = _function("round_")
rsqrt_ = _function("rsqrt_")
sigmoid_ = _function("sigmoid_")
sin_ = _function("sin_")
sinc_ = _function("sinc_")
sinh_ = _function("sinh_")
sqrt_ = _function("sqrt_")
square_ = _function("square_")
tan_ = _function("tan_")
tanh_ = _function("tanh_")
trunc_ = _function("trunc_")
xlogy_ = _function("xlogy_", "fw.tensor([2.0, 3.0])")
zero_ = _function("zero_")
celu_ = _activation(celu, lambda input, alpha=1.0: celu(input, alpha, True))
elu_ = _activation(elu, lambda input, alpha=1.0: elu(input, alpha, True))
hardtanh_ = _activation(hardtanh, lambda input, min_val=-1.0, max_val=1.0: hardtanh(
    input, min_val, max_val, True))
leaky_relu_ = _activation(leaky_relu, lambda input, negative_slope=0.01: leaky_relu(
    input, negative_slope, True))
selu_ = _activation(selu, lambda input: selu(input, True))
threshold_ = _activation(limited, lambda input, threshold, value: limited(
    input, threshold, value, True), "0.1, 0.0")
public("nn.functional")(relu_)
