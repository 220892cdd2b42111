"""cuDNN's recurrent layers: layers on top of each other, both directions and all steps in one call.

``libcudnn`` is loaded when a GPU first wants it and called by ctypes; without it, and for what it does not
take, callers run kernels of their own. Numbers and signatures are those of cudnn_adv.h of cuDNN 9. The real
library has taken the descriptors (tests/test_device_recurrent.py); no device has run a layer yet.
"""

import ctypes
import importlib.util
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import cuda, cudnn, cudnn_graphs

# what is passed: p a pointer, i an int, u an unsigned int, z a size
CALLS = {
    "cudnnCreate": "p", "cudnnSetStream": "pp",
    "cudnnCreateRNNDescriptor": "p", "cudnnDestroyRNNDescriptor": "p",
    "cudnnSetRNNDescriptor_v8": "p" + "i" * 12 + "pu",
    "cudnnCreateRNNDataDescriptor": "p", "cudnnDestroyRNNDataDescriptor": "p",
    "cudnnSetRNNDataDescriptor": "piiiiipp",
    "cudnnCreateTensorDescriptor": "p", "cudnnDestroyTensorDescriptor": "p",
    "cudnnSetTensorNdDescriptor": "piipp",
    "cudnnGetRNNTempSpaceSizes": "ppippp", "cudnnGetRNNWeightSpaceSize": "ppp",
    "cudnnGetRNNWeightParams": "ppizpipppp",
    "cudnnRNNForward": "ppi" + "p" * 11 + "zp" * 3,
    "cudnnRNNBackwardData_v8": "p" * 16 + "zp" * 3,
    "cudnnRNNBackwardWeights_v8": "ppi" + "p" * 7 + "zp" * 3,
}
_PASSED = {"p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "z": ctypes.c_size_t}
_MODES = {"RNN_RELU": (0, 1), "RNN_TANH": (1, 1), "LSTM": (2, 4), "GRU": (3, 3)}  # cudnnRNNMode_t, and gates
# by the letter of a dtype: cudnnDataType_t of numbers and of what is computed in, cudnnMathType_t
_KINDS = {"f": (0, 0, 0), "d": (1, 1, 0), "e": (2, 0, 1), "E": (9, 0, 1)}
_NO_TF32 = 3
_BIASES = 2  # CUDNN_RNN_DOUBLE_BIAS
_PACKED = 1  # sequences in rows of steps, whatever their lengths: what needs no flag
_UNSUPPORTED = range(3000, 4000)
_MOST = 256


class Stack(NamedTuple):
    """Recurrent layers on top of each other; outputs: the size of the state that they hand on."""

    mode: str
    char: str
    inputs: int
    hidden: int
    outputs: int
    layers: int
    directions: int
    biased: bool

    @property
    def states(self) -> int:
        return self.layers * self.directions

    @property
    def gates(self) -> int:
        return _MODES[self.mode][1]

    def shapes(self, place: int) -> list[tuple[int, ...]]:
        """Those of the parameters of a layer and direction: w_ih, w_hh, b_ih, b_hh, w_hr, as there are."""
        rows = self.gates * self.hidden
        width = self.inputs if place < self.directions else self.outputs * self.directions
        biases: list[tuple[int, ...]] = [(rows,), (rows,)] if self.biased else []
        return [(rows, width), (rows, self.outputs), *biases,
                *([(self.outputs, self.hidden)] if self.outputs != self.hidden else [])]


class Failed(RuntimeError):
    """A call of cuDNN that failed, and its status."""

    def __init__(self, name: str, status: int, said: str) -> None:
        super().__init__(f"{name} of cuDNN failed: {said} (status {status}); backends.cudnn.enabled = False "
                         f"leaves recurrent layers to kernels of this package")
        self.status = status


class Library:
    """The functions of a libcudnn, whose statuses are looked at."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        for name, passed in CALLS.items():
            getattr(self._library, name).argtypes = [_PASSED[p] for p in passed]
        self._library.cudnnGetErrorString.restype = ctypes.c_char_p
        self.lock = threading.Lock()  # a handle and its stream are one thread's at a time
        self.handles: dict[int, Any] = {}  # of each device

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raises ``Failed``."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise Failed(name, status, self._library.cudnnGetErrorString(status).decode())

    def handle(self, device: int) -> Any:
        """That of the current device, on the current stream."""
        if device not in self.handles:
            made = ctypes.c_void_p()
            self.call("cudnnCreate", ctypes.byref(made))
            self.handles[device] = made
        self.call("cudnnSetStream", self.handles[device], int(cuda.cupy().cuda.get_current_stream().ptr))
        return self.handles[device]


class Descriptor:
    """One of cuDNN's descriptors, which goes with this object."""

    def __init__(self, library: Library, kind: str, *settings: Any, setter: str = "") -> None:
        self._library, self._kind, self.at = library, kind, ctypes.c_void_p()
        library.call(f"cudnnCreate{kind}Descriptor", ctypes.byref(self.at))
        if settings:
            library.call(setter or f"cudnnSet{kind}Descriptor", self.at, *settings)

    def __del__(self) -> None:
        if self.at:
            self._library.call(f"cudnnDestroy{self._kind}Descriptor", self.at)


def _ints(values: Any) -> Any:
    return (ctypes.c_int * len(values))(*values)


# -- the library -------------------------------------------------------------------------------------

_started: tuple[Any, Any] = (None, None)  # (the cupy module, the library or None)


def paths() -> Iterator[str]:
    """Where libcudnn may be: where the system finds it, and in NVIDIA's package."""
    yield "libcudnn.so.9"
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield str(Path(root) / "cudnn" / "lib" / "libcudnn.so.9")


def library() -> Library | None:
    """libcudnn; None where it is not installed, cannot be loaded, or is switched off."""
    global _started
    if not cudnn.enabled or cuda._cupy is None:
        return None
    if _started[0] is not cuda._cupy:
        _plans.clear()
        _started = cuda._cupy, _loaded()
    return _started[1]


def _loaded() -> Library | None:
    for path in paths():
        try:
            found = Library(path)
            found.handle(int(cuda.cupy().cuda.runtime.getDevice()))
            return found
        except (OSError, AttributeError):  # not there, or of before cuDNN 9
            pass
        except Failed as error:
            warnings.warn(f"cuDNN is installed but cannot be used ({error})", stacklevel=2)
            break
    return None


# -- plans -------------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """How cuDNN wants the parameters of a stack: numbers in all, and where each piece begins among them."""

    size: int
    starts: tuple[tuple[int, ...], ...]  # of each layer and direction, in the order of ``Stack.shapes``


class Laid(NamedTuple):
    """Sequences of given lengths: descriptors of x, y, h and c, the lengths on the device, bytes to work in
    (out of training, in training) and bytes that training keeps."""

    x: Descriptor
    y: Descriptor
    h: Descriptor
    c: Descriptor
    lengths: Any
    work: tuple[int, int]
    reserve: int


class Plan(NamedTuple):
    """A stack as cuDNN describes it."""

    descriptor: Descriptor
    weights: Weights
    laid: dict[tuple, Laid]
    refused: set[tuple]  # sizes that it failed for


_plans: dict[tuple, Plan | None] = {}


def _place(library: Library, handle: Any, stack: Stack, descriptor: Any, space: Any, size: int, item: int,
           place: int) -> tuple[int, ...]:
    """Where the parameters of a layer and direction begin; Failed where their gates do not lie together."""
    matrix, vector = (Descriptor(library, "Tensor") for _ in range(2))
    gates, found = stack.gates, []  # addresses of matrices and vectors
    for which in range(2 * gates + (stack.outputs != stack.hidden)):
        at, bias = ctypes.c_void_p(), ctypes.c_void_p()
        library.call("cudnnGetRNNWeightParams", handle, descriptor.at, place, size, space, which, matrix.at,
                     ctypes.byref(at), vector.at, ctypes.byref(bias))
        found.append((at.value or 0, bias.value or 0))
    starts = []
    for (which, count), shape in zip(((0, 0), (gates, 0), (0, 1), (gates, 1), (2 * gates, 0))
                                     if stack.biased else ((0, 0), (gates, 0), (2 * gates, 0)),
                                     stack.shapes(place)):
        each = int(np.prod(shape)) // (gates if which < 2 * gates else 1) * item
        first = found[which][count]
        own = found[which:which + gates] if which < 2 * gates else found[which:]
        if [a[count] for a in own] != [first + i * each for i in range(len(own))]:
            raise Failed("cudnnGetRNNWeightParams", _UNSUPPORTED[0], "gates of a layer lie apart")
        starts.append((first - space) // item)
    return tuple(starts)


def _made(library: Library, handle: Any, stack: Stack, tf32: bool) -> Plan:
    kind, computed, math = _KINDS[stack.char]
    descriptor = Descriptor(
        library, "RNN", 0, _MODES[stack.mode][0], _BIASES if stack.biased else 0, stack.directions - 1, 0,
        kind, computed, math if tf32 else _NO_TF32, stack.inputs, stack.hidden, stack.outputs, stack.layers,
        None, 0, setter="cudnnSetRNNDescriptor_v8")
    size, item = ctypes.c_size_t(), {"d": 8, "f": 4}.get(stack.char, 2)
    library.call("cudnnGetRNNWeightSpaceSize", handle, descriptor.at, ctypes.byref(size))
    space = cuda.cupy().empty(size.value, np.uint8)
    starts = tuple([_place(library, handle, stack, descriptor, int(space.data.ptr), size.value, item, k)
                    for k in range(stack.states)])
    return Plan(descriptor, Weights(size.value // item, starts), {}, set())


def _plan(library: Library, handle: Any, stack: Stack) -> Plan | None:
    """The plan of a stack, made at its first use; None where cuDNN does not take it."""
    same, tf32 = cudnn_graphs.exactness(stack.char)
    if same:  # the same bits each time are not promised by cuDNN's products
        return None
    key = (stack, tf32, int(cuda.cupy().cuda.runtime.getDevice()))
    if key not in _plans:
        try:
            _plans[key] = _made(library, handle, stack, tf32)
        except Failed as error:
            _plans[key] = None
            if error.status not in _UNSUPPORTED:
                warnings.warn(f"cuDNN failed to plan recurrent layers {tuple(stack)} ({error})", stacklevel=2)
    return _plans[key]


def _laid(library: Library, handle: Any, stack: Stack, plan: Plan, sizes: tuple[int, ...]) -> Laid:
    """The descriptors of sequences with ``sizes[t]`` rows in step t, never more than in the step before."""
    stream = int(cuda.cupy().cuda.get_current_stream().ptr)  # another would have to wait for the lengths
    found = plan.laid.get((sizes, stream))
    if found is not None:
        return found
    batch, kind = sizes[0], _KINDS[stack.char][0]
    steps = np.array(sizes)
    lengths = [int((steps > i).sum()) for i in range(batch)]
    x, y = (Descriptor(library, "RNNData", kind, _PACKED, len(sizes), batch, width, _ints(lengths), None)
            for width in (stack.inputs, stack.outputs * stack.directions))
    h, c = (Descriptor(library, "Tensor", kind, 3, _ints((stack.states, batch, width)),
                       _ints((batch * width, width, 1)), setter="cudnnSetTensorNdDescriptor")
            for width in (stack.outputs, stack.hidden))
    work, reserve = [], ctypes.c_size_t()
    for training in (0, 1):
        space = ctypes.c_size_t()
        library.call("cudnnGetRNNTempSpaceSizes", handle, plan.descriptor.at, training, x.at,
                     ctypes.byref(space), ctypes.byref(reserve))
        work.append(space.value)
    there, lasts = cuda.sent(np.array(lengths, np.int32))
    made = Laid(x, y, h, c, there, (work[0], work[1]), reserve.value)
    if lasts:
        if len(plan.laid) >= _MOST:
            plan.laid.clear()
        plan.laid[sizes, stream] = made
    return made


@contextmanager
def _ready(library: Library) -> Iterator[Any]:
    with library.lock:
        yield library.handle(int(cuda.cupy().cuda.runtime.getDevice()))


def _at(a: Any) -> int | None:
    return None if a is None else int(a.data.ptr)


def _room(size: int) -> Any:
    return cuda.cupy().empty(size, np.uint8) if size else None


# -- calls -------------------------------------------------------------------------------------------


def weights_of(stack: Stack) -> Weights | None:
    """How the parameters of a stack are to lie; None where cuDNN does not take it, or is not there."""
    found = library() if stack.char in _KINDS else None
    if found is None:
        return None
    with _ready(found) as handle:
        plan = _plan(found, handle, stack)
    return None if plan is None else plan.weights


def forward(stack: Stack, sizes: tuple[int, ...], x: Any, h0: Any, c0: Any, weights: Any,
            training: bool) -> tuple | None:
    """(y, h, c, what training keeps), of contiguous arrays; None where cuDNN is not to compute it."""
    found = library()
    if found is None:
        return None
    with _ready(found) as handle:
        plan = _plan(found, handle, stack)
        if plan is None:
            return None
        try:
            return _forward(found, handle, stack, plan, sizes, x, h0, c0, weights, training)
        except Failed as error:
            plan.refused.add(sizes)
            warnings.warn(f"{error}; kernels of this package compute {tuple(stack)}", stacklevel=2)
            return None


def _forward(library: Library, handle: Any, stack: Stack, plan: Plan, sizes: tuple[int, ...], x: Any, h0: Any,
             c0: Any, weights: Any, training: bool) -> tuple | None:
    if sizes in plan.refused:
        return None
    laid, empty, lstm = _laid(library, handle, stack, plan, sizes), cuda.cupy().empty, stack.mode == "LSTM"
    y = empty((len(x), stack.outputs * stack.directions), x.dtype)
    h = empty((stack.states, sizes[0], stack.outputs), x.dtype)
    c = empty((stack.states, sizes[0], stack.hidden) if lstm else 0, x.dtype)
    kept, space = empty(laid.reserve if training else 0, np.uint8), _room(laid.work[training])
    library.call(
        "cudnnRNNForward", handle, plan.descriptor.at, int(training), _at(laid.lengths), laid.x.at, _at(x),
        laid.y.at, _at(y), laid.h.at, _at(h0), _at(h), laid.c.at if lstm else None, _at(c0),
        _at(c) if lstm else None, weights.nbytes, _at(weights), laid.work[training], _at(space),
        kept.nbytes, _at(kept) if kept.size else None)
    return y, h, c, kept


def backward(stack: Stack, sizes: tuple[int, ...], gy: Any, gh: Any, gc: Any, x: Any, h0: Any, c0: Any,
             weights: Any, y: Any, kept: Any, wanted: tuple[bool, ...]) -> tuple:
    """The gradients of x, h0, c0 and the weights, the last three None if they are not wanted; ``kept`` is
    used up."""
    found, module = library(), cuda.cupy()
    if found is None:
        raise RuntimeError("recurrent layers went forward by cuDNN, which has been switched off since then")
    with _ready(found) as handle:
        plan = _plan(found, handle, stack)
        if plan is None:
            raise RuntimeError("recurrent layers went forward by cuDNN, which may not compute them any more: "
                               "the settings of determinism have changed since then")
        laid = _laid(found, handle, stack, plan, sizes)
        lstm, space = stack.mode == "LSTM", _room(laid.work[1])
        dx = module.empty_like(x)
        dh = module.empty((stack.states, sizes[0], stack.outputs), x.dtype) if wanted[1] else None
        dc = module.empty((stack.states, sizes[0], stack.hidden), x.dtype) if wanted[2] and lstm else None
        rest = laid.work[1], _at(space), kept.nbytes, _at(kept)
        found.call(
            "cudnnRNNBackwardData_v8", handle, plan.descriptor.at, _at(laid.lengths), laid.y.at, _at(y),
            _at(gy), laid.x.at, _at(dx), laid.h.at, _at(h0), _at(gh), _at(dh), laid.c.at if lstm else None,
            _at(c0), _at(gc), _at(dc), weights.nbytes, _at(weights), *rest)
        dw = None
        if wanted[3]:
            dw = module.zeros(weights.shape, weights.dtype)  # to which cuDNN adds
            found.call(
                "cudnnRNNBackwardWeights_v8", handle, plan.descriptor.at, 0, _at(laid.lengths), laid.x.at,
                _at(x), laid.h.at, _at(h0), laid.y.at, _at(y), dw.nbytes, _at(dw), *rest)
    return dx, dh, dc, dw
