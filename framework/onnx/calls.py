"""The call that is exported: the model, its arguments by name, and which of their axes are dynamic."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..errors import DeviceError
from ..layouts import strided
from ..nn import Module
from ..tensor import Tensor
from .trace import OnnxError, Trace, tensors_of


class Call:
    """A model and the example of its arguments: which are tensors, what they are called, in which mode it
    runs.
    """

    traces: type[Trace] = Trace  # what writes a run down

    def __init__(self, model: Any, args: tuple, kwargs: dict, input_names: Any, output_names: Any,
                 training: Any) -> None:
        model, args, kwargs = _on_the_cpu(model, args, kwargs)
        self.model = model
        self.args = args
        self.kwargs = kwargs
        self.given_outputs = output_names
        mode = getattr(training, "name", training)
        mode = "eval" if mode is None else str(mode).lower()
        modes = {"eval": False, "preserve": None, "train": True, "training": True}
        if mode not in modes:
            raise ValueError(f"export: training must be None, 'eval', 'preserve' or 'train', got "
                             f"{training!r}")
        self.mode = modes[mode]
        self.example: dict[str, Tensor] = {}
        self.roots: dict[str, tuple[str, Any]] = {}  # name of an input -> the model's argument it lies in
        found: list[tuple[str, Tensor]] = []
        for name, value in (*zip(_parameters(model, len(args)), args), *self.kwargs.items()):
            _tensors(value, name, found)
        names = list(input_names or [])
        if len(names) > len(found):
            raise ValueError(f"export: {len(names)} input_names for {len(found)} tensors among the arguments")
        for i, (path, tensor) in enumerate(found):
            name = names[i] if i < len(names) else path
            if name in self.example:
                raise ValueError(f"export: two inputs are called {name!r}; give other input_names")
            self.example[name] = tensor
            self.roots[name] = (path.partition(".")[0], i)
        if not found:
            raise ValueError("export: there is no tensor among the arguments; give an example of them in "
                             "args")
        self.owner = model if isinstance(model, Module) else getattr(model, "__self__", None)
        module = self.owner if isinstance(self.owner, Module) else Module()
        self.weights: dict[int, str] = {}
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self.weights.setdefault(id(tensor._array), name)
        self.scopes = {id(m): n.replace(".", "/") for n, m in module.named_modules()}
        self.function: Callable = model

    def __enter__(self) -> "Call":
        module = self.owner if isinstance(self.owner, Module) else Module()
        self.before = [(m, m.training) for m in module.modules()]
        if self.mode is not None:
            module.train(self.mode)
        return self

    def __exit__(self, *error: Any) -> None:
        for module, training in self.before:
            module.training = training

    def filled(self, tensors: dict[str, Tensor]) -> tuple[tuple, dict]:
        """The arguments with these tensors in the places of the example's."""
        left = list(tensors.values())
        args = tuple(_replaced(a, left) for a in self.args)
        return args, {k: _replaced(v, left) for k, v in self.kwargs.items()}

    def trace(self, tensors: dict[str, Tensor]) -> Trace:
        args, kwargs = self.filled(tensors)
        return self.traces(self.function, args, kwargs, tensors, self.weights, self.scopes, no_grad())

    def run(self, tensors: dict[str, Tensor]) -> list[np.ndarray]:
        """What the model itself gives."""
        args, kwargs = self.filled(tensors)
        with no_grad():
            return [t._array for t in tensors_of(self.function(*args, **kwargs))]

    def output_names(self, count: int) -> list[str]:
        names = list(self.given_outputs or [])
        if len(names) > count:
            raise ValueError(f"export: {len(names)} output_names for {count} outputs")
        default = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
        names += default[len(names):]
        if len({*names, *self.example}) != len(names) + len(self.example):
            raise ValueError(f"export: inputs {list(self.example)} and outputs {names} need names of their "
                             f"own")
        return names


def _on_the_cpu(model: Any, args: tuple, kwargs: dict) -> tuple[Any, tuple, dict]:
    """A model and its arguments, as they are or, where any of them is on a GPU, copies on the CPU."""
    found: list[tuple[str, Tensor]] = []
    _tensors(args, "args", found)
    _tensors(kwargs, "kwargs", found)
    owner = model if isinstance(model, Module) else getattr(model, "__self__", None)
    weights = [*owner.parameters(), *owner.buffers()] if isinstance(owner, Module) else []
    if any(w.is_cuda for w in weights):
        if owner is not model:
            raise DeviceError("export: the method of a module on a GPU was given; give the module, or move "
                              "it: model.cpu()")
        there: Any = copy.deepcopy(model)
        model = there.cpu()
    if any(t.is_cuda for _, t in found):
        left = [t.cpu() for _, t in found]
        args, kwargs = _replaced(args, left), _replaced(kwargs, left)
    return model, args, kwargs


def _parameters(model: Any, count: int) -> list[str]:
    function = model.forward if isinstance(model, Module) else model
    names = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (names + [f"input_{i}" for i in range(len(names), count)])[:count]


def _tensors(value: Any, path: str, found: list) -> None:
    if isinstance(value, Tensor):
        if value.layout is not strided:
            raise OnnxError(f"export: {path} is a sparse tensor, which no graph takes; use to_dense()")
        found.append((path, value))
    elif isinstance(value, dict):
        for k, v in value.items():
            _tensors(v, f"{path}.{k}", found)
    elif isinstance(value, (tuple, list)):
        for i, v in enumerate(value):
            _tensors(v, f"{path}.{i}", found)


def _replaced(value: Any, left: list) -> Any:
    if isinstance(value, Tensor):
        return left.pop(0)
    if isinstance(value, dict):
        return {k: _replaced(v, left) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_replaced(v, left) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def symbols_of(call: Call, axes: Any, shapes: Any) -> dict[tuple[str, int], str]:
    """The name of each dynamic axis: (input, axis) -> name."""
    found: dict[tuple[str, int], str] = {}
    if axes is not None and shapes is not None:
        raise ValueError("export: give dynamic_axes or dynamic_shapes, not both")
    for name, given in (axes or {}).items():
        if name not in call.example:
            if call.given_outputs and name in call.given_outputs or name.startswith("output"):
                continue  # sizes of outputs follow from those of inputs
            raise ValueError(f"export: dynamic_axes names {name!r}; the inputs are {', '.join(call.example)}")
        pairs = list(given.items() if isinstance(given, dict) else ((a, f"{name}_{a}") for a in given))
        for axis, label in pairs:
            found[name, axis] = label or f"{name}_{axis}"
    if shapes is not None:
        paths = _parameters(call.model, len(call.args)) + list(call.kwargs)
        given = shapes if isinstance(shapes, dict) else dict(zip(paths, shapes))
        flat: list[tuple[str, Any]] = []
        for key, spec in given.items():
            _specs(spec, key, flat)
        by_path = {path: name for name, (path, _) in call.roots.items()}
        by_path |= {name: name for name in call.example}
        for path, spec in flat:
            if path not in by_path:
                raise ValueError(f"export: dynamic_shapes names {path!r}; the arguments are "
                                 f"{', '.join(by_path)}")
            pairs = list(spec.items() if isinstance(spec, dict) else enumerate(spec))
            for axis, label in pairs:
                if label is None or isinstance(label, int):
                    continue
                text = label if isinstance(label, str) else getattr(label, "__name__", f"{path}_{axis}")
                found[by_path[path], axis] = text
    turned = {}
    for (name, axis), label in found.items():
        ndim = call.example[name].ndim
        if not isinstance(axis, int) or not -ndim <= axis < ndim:
            raise ValueError(f"export: {name} has no axis {axis}, its shape is "
                             f"{list(call.example[name].shape)}")
        turned[name, axis % ndim] = str(label)
    return turned


def _specs(spec: Any, path: str, flat: list) -> None:
    if spec is None:
        return
    leaf = isinstance(spec, dict) and all(isinstance(k, int) for k in spec) or isinstance(spec,
                                                                                          (tuple, list)) and \
        all(not isinstance(s, (dict, tuple, list)) for s in spec)
    if leaf:
        flat.append((path, spec))
    elif isinstance(spec, dict):
        for k, s in spec.items():
            _specs(s, f"{path}.{k}", flat)
    else:
        for i, s in enumerate(spec):
            _specs(s, f"{path}.{i}", flat)
