"""CUDA graphs: work of a stream, recorded once, done again by one call in the same memory.

    graph = fw.cuda.CUDAGraph()
    with fw.cuda.graph(graph):
        y = net(x)              # nothing runs
    x.copy_(batch)
    graph.replay()              # all of it runs; y has the numbers

What is recorded are kernels and addresses: inputs are changed by copying into the tensors that were there,
results lie where they were. Keys of dropout, and what steps of optimizers take (learning rates, counts of
steps), are those that an eager step would take, and steps under a ``GradScaler`` are left out as there; other
numbers of the host stay as they were, and hooks are not called again. What cannot be done again is refused:
waits for the device, copies from memory that is not pinned, draws of whole tensors, the first step of an
optimizer.
"""

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from ..autograd import Function, grad
from ..backends import cuda as _backend
from ..backends import device_flags, device_launcher
from ..backends.replayed import Words
from ..config.listing import own as _own
from ..creation import empty_like
from ..nn import Module
from ..tensor import Tensor
from .devices import needed, synchronize
from .memory import empty_cache
from .streams import Stream, current_stream
from .streams import is_current_stream_capturing as is_current_stream_capturing
from .streams import stream as _in_stream

_MODES = {"global": "Global", "thread_local": "ThreadLocal", "relaxed": "Relaxed"}


class _Pool(tuple):
    """The name of a memory pool of graphs, which lives as long as that or a graph does."""

    own: Any

    @classmethod
    def new(cls) -> "_Pool":
        with _lock:
            cls.made += 1
            pool = cls((0, cls.made))
        pool.own = _backend.cupy().cuda.MemoryPool()
        return pool

    made: ClassVar[int] = 0

    def malloc(self, size: int) -> Any:
        """Memory."""
        return self.own.malloc(size)


_lock = threading.Lock()


class _Capture:
    """What belongs to a capture: its thread, and what has to live as long as the graph."""

    def __init__(self, pool: _Pool) -> None:
        self.thread, self.kept = threading.get_ident(), [pool]
        self.after: list[Callable[[], None]] = []  # what the host does behind each replay
        self._words: Words | None = None

    def words(self) -> Words:
        """What the host says anew before each replay."""
        if self._words is None:
            self._words = Words()
        return self._words

    def send(self) -> None:
        """Bring it to the device."""
        if self._words is not None:
            self._words.send()


def graph_pool_handle() -> tuple[int, int]:
    """A memory pool that several graphs share: for ``pool=``. DeviceError without a GPU."""
    needed()
    return _Pool.new()


class CUDAGraph:
    """Work of a stream, recorded between ``capture_begin`` and ``capture_end``; ``replay`` does it again.

    Results and what lies between take memory from a pool that nobody else uses as long as the graph is there.
    keep_graph: CuPy keeps no graph that is not ready to run; only False is known. Raises DeviceError
    without a GPU.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        if keep_graph:
            raise ValueError("CUDAGraph: keep_graph=True is not known: a graph is made ready to run when "
                             "its capture ends")
        needed()
        self._graph: Any = None
        self._capture: Any = None
        self._pool: _Pool | None = None
        self._open: tuple = ()
        self._flags: set = set()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record what comes in the current stream, which must not be the default one.

        pool: that of another graph (``graph.pool()``) or ``graph_pool_handle()``. capture_error_mode: which
        calls of the driver end the capture, "global", "thread_local" or "relaxed".
        """
        if capture_error_mode not in _MODES:
            raise ValueError(f"CUDAGraph: capture_error_mode must be one of {sorted(_MODES)}, got "
                             f"{capture_error_mode!r}")
        if self._graph is not None:
            raise RuntimeError("CUDAGraph: this graph has been recorded; reset() it first")
        if _backend.capture is not None:
            raise RuntimeError("CUDAGraph: work is being recorded already")
        stream = current_stream()
        if not stream.cuda_stream:
            raise RuntimeError("CUDAGraph: the default stream cannot be recorded; use `with "
                               "fw.cuda.graph(g):`, or a Stream of your own")
        if pool is not None and not isinstance(pool, _Pool):
            raise TypeError(f"CUDAGraph: pool must be what graph_pool_handle() or a graph's pool() gave, "
                            f"got {pool!r}")
        module = _backend.cupy()
        device_flags.memory()  # of this stream: made now, so that a replay does not clear it
        stream.own.synchronize()  # replays may be in other streams, which would not wait for that
        for look in _backend.before_captures:
            look()
        if device_launcher.launcher() is None:
            capture_error_mode = "relaxed"  # this thread could take no memory, nor load a kernel, otherwise
        self._pool = _Pool.new() if pool is None else pool
        allocator = module.cuda.using_allocator(self._pool.malloc)
        mode = getattr(module.cuda.runtime, f"streamCaptureMode{_MODES[capture_error_mode]}")
        stream.own.begin_capture(mode)
        free = device_launcher.exchange_capture_mode(2)  # what else is unsafe in a capture is refused by name
        allocator.__enter__()
        self._open = stream, allocator, device_launcher.keep_results(False), free, set(device_flags._used)
        _backend.capture = self._capture = _Capture(self._pool)

    def capture_end(self) -> None:
        """End the recording."""
        if not self._open:
            raise RuntimeError("CUDAGraph: capture_end without capture_begin")
        (stream, allocator, kept, free, flags), self._open = self._open, ()
        _backend.capture = None
        allocator.__exit__(None, None, None)
        device_launcher.keep_results(kept)
        if free is not None:
            device_launcher.exchange_capture_mode(free)
        self._flags = device_flags._used - flags | {(stream.device.index, stream.cuda_stream)}
        self._graph = stream.own.end_capture()

    def replay(self) -> None:
        """Do all of it again, in the current stream."""
        if self._graph is None:
            raise RuntimeError("CUDAGraph: there is nothing to replay; record work with `with "
                               "fw.cuda.graph(g):`")
        device_flags._used.update(self._flags)
        self._capture.send()
        self._graph.launch(current_stream().own)
        for look in self._capture.after:
            look()

    def reset(self) -> None:
        """Give up what was recorded, and its memory once no tensor has it."""
        if self._open:
            raise RuntimeError("CUDAGraph: reset() while work is being recorded")
        self._graph = self._capture = self._pool = None

    def enable_debug_mode(self) -> None:
        """Nothing: ``debug_dump`` works without."""

    def debug_dump(self, debug_path: str) -> None:
        """Write what was recorded as a drawing of Graphviz's (a .dot file)."""
        if self._graph is None:
            raise RuntimeError("CUDAGraph: there is nothing to dump; record work with `with "
                               "fw.cuda.graph(g):`")
        Path(debug_path).write_text(self._graph.debug_dot_str())

    def pool(self) -> tuple[int, int]:
        """The memory pool, for ``pool=`` of another graph that runs after this one."""
        if self._pool is None:
            raise RuntimeError("CUDAGraph: there is no pool before something is recorded")
        return self._pool


class graph:
    """A block whose work is recorded into a ``CUDAGraph`` instead of being done, in a stream of its own.

    pool, capture_error_mode: as for ``CUDAGraph.capture_begin``. stream: where it is recorded (default: one
    for all).
    """

    default_capture_stream: ClassVar[Stream | None] = None

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None,
                 capture_error_mode: str = "global") -> None:
        if stream is None:
            if graph.default_capture_stream is None or graph.default_capture_stream.device != needed():
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.capture_stream = cuda_graph, stream
        self._how = pool, capture_error_mode
        self._block = _in_stream(stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()  # what goes during the capture would be recorded
        empty_cache()
        self._block.__enter__()
        try:
            self.cuda_graph.capture_begin(*self._how)
        except BaseException:
            self._block.__exit__()
            raise

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except Exception:
            if kind is None:  # else the first error says more
                raise
        finally:
            self._block.__exit__(kind, *error)
        if kind is not None:
            self.cuda_graph.reset()


# -- callables ---------------------------------------------------------------------------------------


def _outputs(made: Any) -> list[Tensor]:
    parts = list(made) if isinstance(made, tuple | list) else [made]
    if not all(isinstance(p, Tensor) for p in parts):
        raise TypeError("make_graphed_callables: a callable must give a tensor, or a tuple or list of them")
    return parts


class _Recorded:
    """One callable: its graphs, and the tensors that they read and write."""

    def __init__(self, function: Callable, arguments: tuple, unused: bool) -> None:
        if not all(isinstance(a, Tensor) for a in arguments):
            raise TypeError("make_graphed_callables: sample_args must be tensors")
        parameters = list(function.parameters()) if isinstance(function, Module) else []
        self.function, self.arguments, self.unused = function, arguments, unused
        self.surface = [*arguments, *parameters]
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.outputs: list[Tensor] = []
        self.single = True
        self.kind: Any = None
        self.grad_outputs: list[Tensor | None] = []
        self.grad_inputs: list[Tensor | None] = []

    def _gradients(self, outputs: list[Tensor], given: list[Tensor | None]) -> list[Tensor | None]:
        wanted = [x for x in self.surface if x.requires_grad]
        reached = [(o, g) for o, g in zip(outputs, given) if g is not None]
        if not wanted or not reached:
            return [None] * len(self.surface)
        found = iter(grad([o for o, _ in reached], wanted, [g for _, g in reached], allow_unused=self.unused))
        return [next(found) if x.requires_grad else None for x in self.surface]

    def warm_up(self) -> None:
        """One time as usual: what is made at first use is there then."""
        outputs = _outputs(self.function(*self.arguments))
        self._gradients(outputs, [empty_like(o).fill_(0) if o.requires_grad else None for o in outputs])

    def record_forward(self, pool: Any, stream: Stream) -> None:
        with graph(self.forward, pool, stream):
            made = self.function(*self.arguments)
        self.single, self.kind, self.outputs = isinstance(made, Tensor), type(made), _outputs(made)

    def record_backward(self, pool: Any, stream: Stream) -> None:
        self.grad_outputs = [empty_like(o) if o.requires_grad else None for o in self.outputs]
        with graph(self.backward, pool, stream):
            self.grad_inputs = self._gradients(self.outputs, self.grad_outputs)

    def callable(self) -> Callable:
        """A function of new arguments."""
        of = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> Any:
                for static, given in zip(of.arguments, inputs):
                    if static.data_ptr() != given.data_ptr():
                        static.copy_(given)
                of.forward.replay()
                return tuple([o.detach() for o in of.outputs])

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> Any:
                for static, given in zip(of.grad_outputs, grads):
                    if static is not None and given is not None:
                        static.copy_(given)
                of.backward.replay()
                return tuple([None if g is None else g.detach() for g in of.grad_inputs])

        def call(*arguments: Tensor) -> Any:
            if len(arguments) != len(of.arguments):
                raise TypeError(f"a graphed callable: wanted {len(of.arguments)} tensors, got "
                                f"{len(arguments)}")
            for static, given in zip(of.arguments, arguments):
                if (static.shape, static.dtype) != (given.shape, given.dtype):
                    raise ValueError(f"a graphed callable: recorded with {static.dtype}{list(static.shape)}, "
                                     f"got {given.dtype}{list(given.shape)}")
            made = Graphed.apply(*arguments, *of.surface[len(arguments):])
            return made[0] if of.single else of.kind(made)
        return call


def make_graphed_callables(callables: Any, sample_args: Any, num_warmup_iters: int = 3,
                           allow_unused_input: bool = False, pool: Any = None) -> Any:
    """Functions or modules whose work, forward and backward, is replayed from CUDA graphs.

    callables: one, or a tuple in the order in which they are called; modules come back themselves, with
    another ``forward``, which holds for the mode (training or not) they are in. sample_args: a tuple of
    tensors for each, of the shapes and dtypes that will come. They must do the same at every call, and wait
    for nothing. Raises DeviceError without a GPU.
    """
    needed()
    several = isinstance(callables, tuple)
    functions, samples = (callables, sample_args) if several else ((callables,), (sample_args,))
    if len(functions) != len(samples):
        raise ValueError(f"make_graphed_callables: {len(functions)} callables, but sample_args for "
                         f"{len(samples)}")
    side, pool = Stream(), graph_pool_handle() if pool is None else pool
    recorded = [_Recorded(f, tuple(a), allow_unused_input) for f, a in zip(functions, samples)]
    synchronize()
    with _in_stream(side):
        for one in recorded:
            for _ in range(num_warmup_iters):
                one.warm_up()
    synchronize()
    for one in recorded:
        one.record_forward(pool, side)
    for one in reversed(recorded):
        one.record_backward(pool, side)
    made = tuple([_as_given(one) for one in recorded])
    return made if several else made[0]


def _as_given(one: _Recorded) -> Any:
    graphed, module = one.callable(), one.function
    if not isinstance(module, Module):
        return graphed
    before, training = module.forward, module.training

    def forward(*arguments: Any) -> Any:
        return graphed(*arguments) if module.training == training else before(*arguments)
    module.forward = forward  # type: ignore[method-assign]
    return module


__dir__ = _own(globals(), "is_current_stream_capturing")
