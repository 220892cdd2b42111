"""``jit.trace``, ``jit.save`` and ``jit.load``: a traced function as a module, and as a safe file."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..device import Device
from ..dtypes import BY_NAME, DType
from ..errors import CheckpointError, TraceError
from ..func.tree import KINDS, LEAF, Spec
from ..io import load as load_file
from ..io import save as save_file
from ..nn import Module
from ..nn.parameter import Buffer, Parameter
from ..ops.record.op import OPS, Op
from ..ops.write.strided import as_strided_op
from ..size import Size
from .trace import BUFFER, CONSTANT, INPUT, PARAMETER, RESULT, Step, Trace, Value, record

FORMAT, VERSION = "framework.trace", 1


class TracedModule(Module):
    """What ``jit.trace`` gives: the steps of one run, as a module. ``.trace`` is the ``Trace``.

    Its parameters and buffers are those of the traced module, under their names with "_" for ".".
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        for value in trace.given:
            name = value.name.replace(".", "_")
            if isinstance(value.tensor, Parameter):
                self.register_parameter(name, value.tensor)
            elif value.kind in (BUFFER, PARAMETER):
                self.register_buffer(name, value.tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The steps on other arguments of the same shapes and dtypes."""
        return self.trace(*args, **kwargs)

    @property
    def graph(self) -> Trace:
        """The trace, which prints as its steps."""
        return self.trace

    @property
    def code(self) -> str:
        """The steps as text."""
        return str(self.trace)


def trace(func: Callable, example_inputs: Any = None, *more: Any, check_trace: bool = True,
          example_kwarg_inputs: dict | None = None, strict: bool = True, **settings: Any) -> TracedModule:
    """The steps that a function or module computes from inputs of these shapes, to be exported or run again.

    example_inputs: a tuple of arguments, or one tensor (further ones may follow it). check_trace: trace
    twice, and raise if the steps differ (a counter, a clock, random numbers in Python). The other arguments
    of PyTorch's ``jit.trace`` are taken and change nothing: ``check_inputs``, ``check_tolerance``.

    The function runs as Python (twice, with ``check_trace``). Raises TraceError, naming the user's line,
    where a trace would bake in what is right for these inputs only: a number read out of a tensor (``item``,
    ``if x > 0``), a random draw, ``backward``, an optimizer's step. See ``Trace`` in ``jit/trace.py`` for
    how to go through it.

    >>> double = fw.jit.trace(lambda x: x * 2 + 1, fw.zeros(2))
    >>> double(fw.tensor([1.0, 2.0]))
    tensor([3., 5.])
    >>> fw.jit.trace(lambda x: x if x.sum() > 0 else -x, fw.zeros(2))
    Traceback (most recent call last):
    framework.errors.TraceError: jit.trace: the numbers of a tensor of shape [] were read by __bool__, ...
    """
    for name in settings:
        if name not in ("check_inputs", "check_tolerance", "optimize", "_force_outplace", "_module_class",
                        "_compilation_unit", "_store_inputs"):
            raise TypeError(f"jit.trace: there is no argument {name!r}")
    if isinstance(func, TracedModule):
        return func
    args = example_inputs if isinstance(example_inputs, tuple) else (
        () if example_inputs is None else (example_inputs,))
    args = (*args, *more)
    found = record(func, args, example_kwarg_inputs)
    if check_trace and not found.updates:
        _compare(found, record(func, args, example_kwarg_inputs))
    return TracedModule(found)


def _compare(one: Trace, two: Trace) -> None:
    """Raise unless both are the same steps."""
    for a, b in zip(one.steps, two.steps):
        if (a.op, repr(a.inputs), repr(a.settings)) != (b.op, repr(b.inputs), repr(b.settings)):
            raise TraceError(f"jit.trace: a second run computed {b.op.name} at {b.line} where the first one "
                             f"computed {a.op.name} at {a.line} ({a!r}; {b!r}): the function depends on "
                             f"something that changes from call to call")
    if len(one.steps) != len(two.steps):
        raise TraceError(f"jit.trace: a second run took {len(two.steps)} steps, the first one "
                         f"{len(one.steps)}: the function depends on something that changes from call to "
                         f"call")
    for old, new in zip(one.given, two.given):
        if old.kind == CONSTANT and not _alike(old.tensor, new.tensor):
            user = next((step for step in two.steps if new in step.inputs), None)
            where = "" if user is None else f", taken by {user.op.name} at {user.line},"
            raise TraceError(f"jit.trace: the constant {old.name}{where} was another one in a second run: "
                             f"the function depends on something that changes from call to call")


def _alike(a: Any, b: Any) -> bool:
    return a._array.dtype == b._array.dtype and a._array.tobytes() == b._array.tobytes()


# -- files --------------------------------------------------------------------------------------------


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a traced function to a path or file: its steps as data, its parameters and constants as tensors.

    _extra_files: further texts by name. The container is that of ``framework.save``; ``jit.load`` runs no
    code of it. Raises TypeError for anything but what ``jit.trace`` gives, and for a step whose settings are
    no plain data.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.jit.save(fw.jit.trace(lambda x: x * 2, fw.zeros(2)), file)
    >>> fw.jit.load(io.BytesIO(file.getvalue()))(fw.ones(2))
    tensor([2., 2.])
    """
    if not isinstance(m, TracedModule):
        raise TypeError(f"jit.save: only what jit.trace gives can be saved, got {type(m).__name__}; trace "
                        f"it, or save its state_dict() with framework.save")
    t = m.trace
    values: dict[Value, int] = {}
    rows: list[list] = []
    tensors = {}
    for value in [*t.inputs, *t.given, *[v for s in t.steps for v in s.outputs]]:
        values[value] = len(rows)
        rows.append([value.name, value.kind, list(value.shape), value.dtype.name,
                     isinstance(value.tensor, Parameter)])
        if value.tensor is not None:
            tensors[str(len(rows) - 1)] = value.tensor.detach()
    spec, others = t.takes
    steps = [[s.op.name, [_packed(x, s, values) for x in s.inputs],
              {k: _packed(v, s, values) for k, v in s.settings.items()},
              [values[v] for v in s.outputs], s.recorded, s.written, s.line] for s in t.steps]
    none = Step(t.steps[0].op, (), {}, (), False, False, "") if t.steps else None
    save_file({"format": FORMAT, "version": VERSION, "values": rows, "tensors": tensors, "steps": steps,
               "takes": _spec_out(spec),
               "others": {str(i): _packed(x, none, values) for i, x in others.items()},
               "gives": _spec_out(t.gives), "outputs": [_packed(x, none, values) for x in t.outputs],
               "updates": [[values[a], values[b]] for a, b in t.updates.items()],
               "no_gradient": t.no_gradient, "extra": dict(_extra_files or {})}, f)


def load(f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None,
         **settings: Any) -> TracedModule:
    """The traced function of a file that ``jit.save`` wrote; none of its content is executed but known
    operations.

    map_location: a device for its tensors. _extra_files: a dict whose texts are filled in. Raises
    CheckpointError for another or a damaged file, or one whose steps do not give the shapes that it claims.
    """
    found = load_file(f, map_location=map_location)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CheckpointError("jit.load: this is not a file of jit.save; use framework.load for checkpoints")
    if found.get("version") != VERSION:
        raise CheckpointError(f"jit.load: this file has version {found.get('version')!r}, {VERSION} is "
                              f"known; use a newer version of framework")
    try:
        made = _read(found)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"jit.load: this file is damaged or not of jit.save: {error}") from error
    for name in _extra_files or {}:
        _extra_files[name] = found["extra"].get(name, "")  # type: ignore[index]
    return TracedModule(made)


def _read(found: dict) -> Trace:
    known_ops = {op.name: op for op in OPS}
    made, values = Trace(), []
    for i, (name, kind, shape, dtype, trained) in enumerate(found["values"]):
        tensor = found["tensors"].get(str(i))
        if kind not in (INPUT, PARAMETER, BUFFER, CONSTANT, RESULT) \
                or (tensor is None) != (kind in (INPUT, RESULT)):
            raise ValueError(f"value {name!r} of kind {kind!r}")
        if tensor is not None:
            if trained:
                tensor = Parameter(tensor, tensor.is_floating_point() or tensor.is_complex())
            if kind == BUFFER:
                tensor = Buffer(tensor)
        value = Value.__new__(Value)
        value.name, value.kind, value.tensor = str(name), kind, tensor
        value.shape, value.dtype = Size([int(n) for n in shape]), BY_NAME[dtype]
        value.device = Device("cpu")
        if tensor is not None and (tensor.shape != value.shape or tensor.dtype is not value.dtype):
            raise ValueError(f"the tensor of {name} is not of the shape and dtype that its row says")
        values.append(value)
        (made.inputs if kind == INPUT else made.given if tensor is not None else []).append(value)
    ready = set(made.inputs + made.given)
    for name, inputs, given, outputs, recorded, written, line in found["steps"]:
        if name not in known_ops:
            raise ValueError(f"there is no operation {name!r} here")
        op, operands = known_ops[name], tuple([_unpacked(x, values, known_ops) for x in inputs])
        settings = {str(k): _unpacked(v, values, known_ops) for k, v in given.items()}
        results = tuple([values[i] for i in outputs])
        if not all(type(x) is not Value or x in ready for x in operands) or ready.intersection(results):
            raise ValueError(f"the steps are out of order at {name}")
        if op is as_strided_op:
            _check_reach(operands[0], settings)
        ready.update(results)
        made.steps.append(Step(op, operands, settings, results, bool(recorded), bool(written), str(line)))
    made.outputs = [_unpacked(x, values, known_ops) for x in found["outputs"]]
    made.updates = {values[a]: values[b] for a, b in found["updates"]}
    made.takes = _spec_in(found["takes"]), {int(i): _unpacked(x, values, known_ops)
                                            for i, x in found["others"].items()}
    made.gives, made.no_gradient = _spec_in(found["gives"]), found["no_gradient"]
    return made


def _check_reach(x: Value, settings: dict) -> None:
    """Raise for an ``as_strided`` that leaves its operand's memory, which its kernel would not notice."""
    size, stride, offset, layout = [settings[name] for name in ("size", "stride", "offset", "layout")]
    if len(size) != len(stride) or len(layout) != len(x.shape) \
            or min((0, offset, *size, *stride, *layout)) < 0 \
            or offset + _last(size, stride) > _last(x.shape, layout):
        raise ValueError("as_strided leaves the memory of its operand")


def _last(shape: Any, stride: Any) -> int:
    """The place of the last element."""
    return sum((max(n, 1) - 1) * s for n, s in zip(shape, stride))


_PLAIN = (type(None), bool, int, float, complex, str)


def _packed(x: Any, step: Step | None, values: dict[Value, int]) -> Any:
    """A setting or operand as plain data."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if kind is Value:
        return {"value": values[x]}
    if kind in (tuple, list, Size):
        return {kind.__name__.lower(): [_packed(part, step, values) for part in x]}
    if kind is dict:
        return {"dict": [[_packed(k, step, values), _packed(v, step, values)] for k, v in x.items()]}
    if kind is slice:
        return {"slice": [_packed(part, step, values) for part in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": None}
    if isinstance(x, DType):
        return {"dtype": x.name}
    if isinstance(x, np.dtype):
        return {"numpy": x.str}
    if isinstance(x, Device):
        return {"device": str(x)}
    if isinstance(x, Op):
        return {"op": x.name}
    where = "" if step is None else f"{step.op.name} at {step.line} has "
    raise TypeError(f"jit.save: {where}a setting of {kind.__name__}, which is no plain data")


def _unpacked(x: Any, values: list[Value], ops: dict[str, Op]) -> Any:
    if type(x) in _PLAIN:
        return x
    (kind, content), = x.items()
    if kind in ("tuple", "list", "size", "slice"):
        parts = [_unpacked(part, values, ops) for part in content]
        return slice(*parts) if kind == "slice" else {"tuple": tuple, "list": list, "size": Size}[kind](parts)
    if kind == "dict":
        return {_unpacked(k, values, ops): _unpacked(v, values, ops) for k, v in content}
    if kind == "ellipsis":
        return Ellipsis
    return {"value": lambda: values[content], "dtype": lambda: BY_NAME[content],
            "numpy": lambda: np.dtype(content),
            "device": lambda: Device(content), "op": lambda: ops[content]}[kind]()


_NESTS = {kind.__name__: kind for kind in (tuple, list, dict)}


def _spec_out(spec: Spec) -> Any:
    if spec.is_leaf():
        return None
    if spec.type not in (tuple, list, dict):
        raise TypeError(f"jit.save: arguments and results may be nested in tuples, lists and dicts, found "
                        f"{spec.type.__name__}")  # type: ignore[union-attr]
    return [spec.type.__name__, spec.context, [_spec_out(s) for s in spec.children_specs]]


def _spec_in(data: Any) -> Spec:
    if data is None:
        return LEAF
    name, context, parts = data
    kind = _NESTS[name]
    return Spec(kind, context, [_spec_in(part) for part in parts], KINDS[kind])


