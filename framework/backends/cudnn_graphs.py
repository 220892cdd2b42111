"""cuDNN by its graphs: convolutions, batch norms and attention as NVIDIA's frontend plans them, once each.

``nvidia-cudnn-frontend`` is imported when a GPU first wants it; without it, and for what cuDNN has no plan
for, callers run kernels of their own. A plan is for shapes, strides, a dtype and what is asked of exactness,
on one device. Planning needs no device (tests/cudnn_plans.py); no device has run a plan yet.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from . import cuda, cudnn, precision

_IO = {"f": "FLOAT", "e": "HALF", "E": "BFLOAT16"}
_frontend: Any = None
_plans: dict[tuple, "Plan | None"] = {}
_handles: dict[int, Any] = {}  # of each device


class Laid(NamedTuple):
    """How a tensor lies: sizes and steps in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Plan(NamedTuple):
    """A graph that has been planned, its operands in the order of calls, and the bytes it works in."""

    graph: Any
    operands: tuple
    workspace: int


def frontend() -> Any:
    """NVIDIA's module; None where it is not installed, cannot be loaded, or is switched off."""
    global _frontend
    if not cudnn.enabled:
        return None
    if _frontend is None:
        _frontend = False
        if find_spec("cudnn") is not None:
            try:
                module = import_module("cudnn")
                module.backend_version()
                _frontend = module
            except Exception as error:
                warnings.warn(f"cuDNN is installed but cannot be used ({error}); kernels of this package run "
                              f"instead", stacklevel=2)
    return _frontend or None


def laid(a: Any) -> Laid:
    """How an array lies; no dimension of space, or one, is made two, as cuDNN has at least two."""
    strides = [s // a.itemsize if n > 1 else 1 for s, n in zip(a.strides, a.shape)]
    shape = list(a.shape)
    if len(shape) == 2:
        shape += [1, 1]
        strides += [shape[1], shape[1]]
    elif len(shape) == 3:
        shape.insert(2, 1)
        strides.insert(2, shape[3] * strides[2])
    return Laid(tuple(shape), tuple(strides))


def exactness(char: str) -> tuple:
    """What is asked of a plan: whether the same bits come each time, and whether TF32 will do."""
    same = cudnn.deterministic or precision.are_deterministic_algorithms_enabled()
    return same, char != "f" or cudnn.allow_tf32


# -- graphs ------------------------------------------------------------------------------------------


def _graph(module: Any, char: str, place: dict) -> tuple[Any, Any]:
    io, wide = getattr(module.data_type, _IO[char]), module.data_type.FLOAT
    return module.pygraph(io_data_type=io, intermediate_data_type=wide, compute_data_type=wide, **place), io


def _made(output: Any, how: Laid, kind: Any) -> Any:
    return output.set_output(True).set_data_type(kind).set_dim(how.shape).set_stride(how.strides)


def conv_graph(module: Any, char: str, kind: str, first: Laid, second: Laid, out: Laid, bias: bool,
               relu: bool, windows: tuple, place: dict) -> tuple[Any, tuple]:
    """A convolution "fprop" of (image, weight), "dgrad" of (slope, weight), "wgrad" of (image, slope).

    bias, relu: what follows the first one.
    """
    graph, io = _graph(module, char, place)
    a, b = (graph.tensor(name=name, dim=how.shape, stride=how.strides, data_type=io)
            for name, how in (("first", first), ("second", second)))
    padding, stride, dilation = (list(w) if len(w) > 1 else [one, *w]
                                 for w, one in zip(windows, (0, 1, 1)))
    given = {"padding": padding, "stride": stride, "dilation": dilation}
    operands = [a, b]
    if kind == "fprop":
        y = graph.conv_fprop(image=a, weight=b, **given)
        if bias:
            channels = out.shape[1]
            ones = (1,) * (len(out.shape) - 2)
            operands.append(graph.tensor(name="bias", dim=(1, channels, *ones),
                                         stride=(channels, 1, *(channels,) * len(ones)), data_type=io))
            y = graph.bias(name="plus", input=y, bias=operands[-1])
        y = graph.relu(name="active", input=y) if relu else y
    elif kind == "dgrad":
        y = graph.conv_dgrad(loss=a, filter=b, **given)
    else:
        y = graph.conv_wgrad(image=a, loss=b, **given)
    _made(y, out, io)
    return graph, (*operands, y)


def attention_graph(module: Any, char: str, operands: tuple[Laid, ...], causal: bool, scale: float,
                    same: bool, place: dict) -> tuple[Any, tuple]:
    """Attention of (q, k, v, out, lse), or backward of (q, k, v, out, lse, g, dq, dk, dv)."""
    graph, io = _graph(module, char, place)
    wide = module.data_type.FLOAT

    def tensor(name: str, how: Laid, kind: Any) -> Any:
        return graph.tensor(name=name, dim=how.shape, stride=how.strides, data_type=kind)

    q, k, v = (tensor(n, how, io) for n, how in zip("qkv", operands))
    if len(operands) == 5:
        out, lse = graph.sdpa(name="sdpa", q=q, k=k, v=v, generate_stats=True, attn_scale=scale,
                              use_causal_mask=causal)
        return graph, (q, k, v, _made(out, operands[3], io), _made(lse, operands[4], wide))
    kinds = zip(("o", "lse", "g"), operands[3:6], (io, wide, io))
    out, lse, g = (tensor(name, how, kind) for name, how, kind in kinds)
    found = graph.sdpa_backward(name="sdpa", q=q, k=k, v=v, o=out, dO=g, stats=lse, attn_scale=scale,
                                use_causal_mask=causal, use_deterministic_algorithm=same)
    made = tuple([_made(d, how, io) for d, how in zip(found, operands[6:])])
    return graph, (q, k, v, out, lse, g, *made)


def norm_graph(module: Any, char: str, x: Laid, backward: bool, place: dict) -> tuple[Any, tuple]:
    """Batch norm of (x, scale, bias, eps, momentum, two running averages, y, mean, 1 / deviation, the
    averages after it), or backward of (x, slope, scale, mean, 1 / deviation, slopes of x, scale and bias).
    All but x, y and their slopes is float32."""
    (graph, io), wide = _graph(module, char, place), module.data_type.FLOAT
    ones = (1,) * (len(x.shape) - 2)
    channel = Laid((1, x.shape[1], *ones), (x.shape[1], 1, *(x.shape[1],) * len(ones)))

    def tensor(name: str, how: Laid, kind: Any = wide, **more: Any) -> Any:
        return graph.tensor(name=name, dim=how.shape, stride=how.strides, data_type=kind, **more)

    image = tensor("x", x, io)
    if backward:
        slope = tensor("slope", x, io)
        scale, mean, inverse = (tensor(name, channel) for name in ("scale", "mean", "inverse"))
        found = graph.batchnorm_backward(name="norm", grad=slope, input=image, scale=scale, mean=mean,
                                         inv_variance=inverse)
        given = (image, slope, scale, mean, inverse)
    else:
        one = Laid((1,) * len(x.shape), (1,) * len(x.shape))
        scale, bias, *running = (tensor(name, channel) for name in ("scale", "bias", "mean", "var"))
        eps, momentum = (tensor(name, one, is_pass_by_value=True) for name in ("eps", "momentum"))
        found = graph.batchnorm(name="norm", input=image, scale=scale, bias=bias, in_running_mean=running[0],
                                in_running_var=running[1], epsilon=eps, momentum=momentum)
        given = (image, scale, bias, eps, momentum, *running)
    made = [_made(out, x if i == 0 else channel, wide if i else io) for i, out in enumerate(found)]
    return graph, (*given, *made)


# -- plans -------------------------------------------------------------------------------------------


def planned(module: Any, graph: Any, operands: tuple, asked: tuple) -> Plan:
    """The graph with the first plan that fits; raises cuDNN's error where there is none."""
    same, tf32 = asked
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([module.heur_mode.A, module.heur_mode.FALLBACK])
    notes = module.numerical_note
    barred = [notes.NONDETERMINISTIC] * same + [notes.TENSOR_CORE] * (not tf32)
    if barred:
        graph.deselect_numeric_notes(barred)
    graph.check_support()
    graph.build_plans()
    return Plan(graph, operands, int(graph.get_workspace_size()))


def _handle(module: Any, device: int) -> Any:
    """That of the current device, on the current stream; None, told once, where cuDNN cannot be started."""
    global _frontend
    found = _handles.get(device)
    if found is None:
        try:
            found = _handles[device] = module.create_handle()
        except Exception as error:
            _frontend = False
            warnings.warn(f"cuDNN is installed but cannot be started ({error}); kernels of this package run "
                          f"instead", stacklevel=2)
            return None
    module.set_stream(handle=found, stream=cuda.cupy().cuda.get_current_stream().ptr)
    return found


def _run(key: tuple, make: Any, arrays: tuple) -> bool:
    """Run the plan of a key, made at its first use; False where there is none."""
    module, device = frontend(), int(cuda.cupy().cuda.runtime.getDevice())
    handle = _handle(module, device)
    if handle is None:
        return False
    if (key, device) not in _plans:
        asked = key[0]
        try:
            graph, operands = make(module, {"handle": handle})
            _plans[key, device] = planned(module, graph, operands, asked)
        except Exception as error:
            _plans[key, device] = None
            if not isinstance(error, module.cudnnGraphNotSupportedError):
                warnings.warn(f"cuDNN failed to plan {key[1:3]} ({error}); a kernel of this package runs "
                              f"instead", stacklevel=2)
    plan = _plans[key, device]
    if plan is None:
        return False
    space = cuda.cupy().empty(max(plan.workspace, 1), np.uint8)
    # a number is given where the host has it
    pointers = {operand: int(a.ctypes.data if type(a) is np.ndarray else a.data.ptr)
                for operand, a in zip(plan.operands, arrays)}
    plan.graph.execute(pointers, int(space.data.ptr), handle=handle)
    return True


def convolve(char: str, kind: str, first: Any, second: Any, out: Any, bias: Any, windows: tuple,
             relu: bool = False) -> bool:
    """Write a convolution into ``out``; False where cuDNN has no plan, or is not there.

    windows: padding, stride and dilation. bias, relu: what follows a convolution forward.
    """
    if char not in _IO or frontend() is None:
        return False
    how = laid(first), laid(second), laid(out)
    key = (exactness(char), kind, char, how, bias is not None, relu, windows)

    def make(module: Any, place: dict) -> tuple[Any, tuple]:
        return conv_graph(module, char, kind, *how, bias is not None, relu, windows, place)

    return _run(key, make, (first, second, *([] if bias is None else [bias]), out))


def normalize(char: str, arrays: tuple, backward: bool) -> bool:
    """Write a batch norm, or its slopes, into the last arrays; False where cuDNN has no plan or is not there.

    char: of x; arrays: as ``norm_graph`` says.
    """
    if char not in _IO or frontend() is None:
        return False
    how = laid(arrays[0])
    key = (exactness(char), "batch norm backward" if backward else "batch norm", char, how)

    def make(module: Any, place: dict) -> tuple[Any, tuple]:
        return norm_graph(module, char, how, backward, place)

    return _run(key, make, arrays)


def attend(char: str, arrays: tuple, causal: bool, scale: float) -> bool:
    """Write attention, or its slopes, into the last arrays; False where cuDNN has no plan, or is not there.

    arrays: (q, k, v, out, lse), or (q, k, v, out, lse, g, dq, dk, dv), each (batch, heads, length, features).
    """
    q, k, v = arrays[:3]
    alike = q.ndim == 4 and q.shape[:2] == k.shape[:2] == v.shape[:2] and q.shape[-1] == v.shape[-1]
    if char not in "eE" or not alike or q.shape[-1] % 8 or frontend() is None:
        return False
    if any(a.strides[-1] != a.itemsize or 0 in a.strides for a in arrays if a.ndim == 4 and a.shape[-1] > 1):
        return False
    asked = exactness(char)
    how = tuple(map(laid, arrays))
    key = (asked, "attention", char, how, causal, scale)

    def make(module: Any, place: dict) -> tuple[Any, tuple]:
        return attention_graph(module, char, how, causal, scale, asked[0], place)

    return _run(key, make, arrays)
