"""Models of floats as models of 8-bit numbers: with ranges found on the fly, or on data beforehand."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from ... import nn
from ...dtypes import int8
from ...nn import Module
from ...nn.module import MODULE
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn.quantizable import attention as quantizable
from ..nn.quantized import static
from ..nn.quantized.dynamic import attention, linear
from .observers import PerChannelMinMaxObserver


class QuantizedType:
    """The name of a kind of quantised numbers; the tensors that hold them are int8 or uint8."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"framework.{self.name}"

    def __reduce__(self) -> str:
        return self.name


qint8, quint8 = QuantizedType("qint8"), QuantizedType("quint8")

DYNAMIC = {
    nn.Linear: linear.Linear,
    nn.Conv1d: linear.Conv1d,
    nn.Conv2d: linear.Conv2d,
    nn.MultiheadAttention: attention.MultiheadAttention,
}
STATIC = {nn.Linear: static.Linear, nn.Conv1d: static.Conv1d, nn.Conv2d: static.Conv2d}
OBSERVER = "activation_pre_process"


def _class_for(module: Module, classes: dict) -> Any:
    """The class that stands for a module, by its own class exactly; ``as_linear()`` makes one a Linear."""
    return classes.get(nn.Linear if hasattr(module, "as_linear") else type(module))


def _places(model: Module) -> Iterator[tuple[Module | None, str, str, Module]]:
    """(owner, its name for it, path, module) of every module, where several have it for each of them."""
    yield None, "", "", model
    for path, owner in model.named_modules():
        for name, module in owner._own(MODULE):
            yield owner, name, f"{path}.{name}" if path else name, module


def _exchanged(op: str, model: Module, make: Callable[[str, Module], Module | None]) -> tuple[Module, int]:
    """The model with every module for which ``make`` gives another replaced by that, and how many were."""
    made: dict[int, Module] = {}
    found = []
    for owner, name, path, module in list(_places(model)):
        if id(module) not in made:
            try:
                new = make(path, module)
            except (ValueError, RuntimeError) as error:
                raise type(error)(
                    f"{op}: module {path or 'at the top'} ({type(module).__name__}): {error}"
                ) from None
            if new is None:
                continue
            new.train(module.training)
            made[id(module)] = new
        found.append((owner, name, made[id(module)]))
    for owner, name, new in found:  # only now: what fails leaves the model as it was
        if owner is None:
            model = new
        else:
            owner._modules[name] = new
    return model, len(made)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: Any = qint8,
    mapping: dict | None = None,
    inplace: bool = False,
) -> Module:
    """The model in evaluation with layers of 8-bit weights, whose activations are quantised at each call.

    qconfig_spec: the classes of modules to take, or names of modules, or a dict with these as keys, of
    which those with the value None are left out; by default Linear and MultiheadAttention; Conv1d and
    Conv2d if they are named. A subclass is not taken for its base. dtype: ``qint8`` or ``int8``. mapping:
    classes of your own, ``{of floats: of 8-bit numbers}``, the latter with ``from_float(module)``. Raises
    ValueError for another dtype, for a class that has no form in 8-bit numbers, where there is nothing to
    quantise, and for weights that are inf or nan.

    >>> model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.ReLU())
    >>> fw.ao.quantization.quantize_dynamic(model, {fw.nn.Linear})[0]
    DynamicQuantizedLinear(in_features=2, out_features=3, bias=True, dtype=qint8, activations=dynamic)
    """
    if dtype is not qint8 and dtype != int8:
        raise ValueError(
            f"quantize_dynamic: dtype must be framework.qint8, got {dtype!r}; for half precision use "
            f"model.half() or autocast"
        )
    classes = {**DYNAMIC, **(mapping or {})}
    wanted = {nn.Linear, nn.MultiheadAttention} if qconfig_spec is None else set(qconfig_spec)
    never = (
        {key for key, value in qconfig_spec.items() if value is None}
        if isinstance(qconfig_spec, dict)
        else set()
    )
    for key in wanted - never:
        if not isinstance(key, str) and key not in classes:
            raise ValueError(
                f"quantize_dynamic: {getattr(key, '__name__', key)} has no form in 8-bit numbers; there are "
                f"those of {', '.join(c.__name__ for c in classes)}, or give one by mapping="
            )
    names = {path for _, _, path, _ in _places(model)}
    if missing := {key for key in wanted if isinstance(key, str)} - names:
        raise ValueError(f"quantize_dynamic: the model has no modules of the names {sorted(missing)}")

    def make(path: str, module: Module) -> Module | None:
        kind = nn.Linear if hasattr(module, "as_linear") else type(module)
        if path in never or kind in never or not (path in wanted or kind in wanted):
            return None
        if kind not in classes:
            raise ValueError("there is no form of it in 8-bit numbers")
        return classes[kind].from_float(module)

    changed, count = _exchanged("quantize_dynamic", model if inplace else copy.deepcopy(model), make)
    if not count:
        raise ValueError(
            f"quantize_dynamic: the model has no module of the classes "
            f"{sorted(getattr(k, '__name__', str(k)) for k in wanted)}; a subclass is not taken for its base"
        )
    return changed.eval()


def _configured(model: Module) -> Iterator[tuple[str, Module, Any]]:
    """(path, module, its qconfig or that of the module around it)."""
    configs: dict[str, Any] = {}
    for path, module in model.named_modules():
        own = vars(module).get("qconfig", configs.get(path.rpartition(".")[0]) if path else None)
        configs[path] = own
        yield path, module, own


def _projections_apart(model: Module) -> Module:
    """The model whose attention layers with a qconfig have a Linear for each projection."""
    configs = {id(module): own for _, module, own in _configured(model) if own is not None}

    def make(path: str, module: Module) -> Module | None:
        if type(module) is not nn.MultiheadAttention or id(module) not in configs:
            return None
        new = quantizable.MultiheadAttention.from_float(module)
        new.qconfig = configs[id(module)]
        return new

    return _exchanged("prepare", model, make)[0]


def prepare(model: Module, inplace: bool = False) -> Module:
    """The model with an observer at the input of each layer that `convert` quantises: Linear, Conv1d, Conv2d.

    Layers are taken for which ``qconfig`` is set, on them or on a module around them; None there leaves
    them out. In place of a MultiheadAttention stands one whose projections are such layers.
    Raises ValueError if no such layer is found.

    >>> model = fw.nn.Sequential(fw.nn.Linear(2, 1)).eval()
    >>> model.qconfig = fw.ao.quantization.get_default_qconfig()
    >>> ready = fw.ao.quantization.prepare(model)
    >>> _ = ready(fw.tensor([[-1.0, 4.1]]))
    >>> fw.ao.quantization.convert(ready)[0].input_zero_point
    tensor(50, dtype=framework.uint8)
    """
    for path, module, own in _configured(model):
        if own is None or not (type(module) is nn.MultiheadAttention or _class_for(module, STATIC)):
            continue
        if own.weight is not PerChannelMinMaxObserver:
            raise ValueError(
                f"prepare: module {path}: weights are quantised with a scale for each output only; leave "
                f"QConfig.weight at its default, PerChannelMinMaxObserver"
            )
    model = _projections_apart(model if inplace else copy.deepcopy(model))
    found = [
        (module, own.activation())
        for _, module, own in _configured(model)
        if own is not None and _class_for(module, STATIC)
    ]
    if not found:
        raise ValueError(
            "prepare: no Linear, Conv1d, Conv2d or MultiheadAttention has a qconfig; set "
            "model.qconfig = get_default_qconfig()"
        )
    for module, observer in found:
        if not hasattr(module, OBSERVER):
            module.add_module(OBSERVER, observer)
            module.register_forward_pre_hook(_observe)
    return model


def _observe(module: Module, inputs: tuple) -> None:
    getattr(module, OBSERVER)(inputs[0])


def convert(model: Module, mapping: dict | None = None, inplace: bool = False) -> Module:
    """A prepared model that has seen data, in evaluation, with 8-bit layers in place of the observed ones.

    mapping: classes of your own, ``{of floats: of 8-bit numbers}``. Raises RuntimeError, and leaves the
    model as it is, where an observer has seen nothing.
    """
    classes = {**STATIC, **(mapping or {})}

    def make(path: str, module: Module) -> Module | None:
        observer = module._modules.get(OBSERVER)
        if observer is None:
            return None
        scale, zero = observer.calculate_qparams()  # type: ignore[operator]
        new = _class_for(module, classes).from_float(module)
        new.input_scale, new.input_zero_point = scale, zero
        return new

    changed, count = _exchanged("convert", model if inplace else copy.deepcopy(model), make)
    if not count:
        raise ValueError(
            "convert: the model has no observers; call prepare(model), and run the result on data"
        )
    return changed.eval()


def quantize(
    model: Module, run_fn: Callable, run_args: Any, mapping: dict | None = None, inplace: bool = False
) -> Module:
    """`prepare`, ``run_fn(model, *run_args)``, which runs it on data, and `convert`.

    >>> model = fw.nn.Sequential(fw.nn.Linear(2, 1)).eval()
    >>> model.qconfig = fw.ao.quantization.get_default_qconfig()
    >>> small = fw.ao.quantization.quantize(model, lambda m, x: m(x), [fw.ones(1, 2)])
    >>> small[0].input_scale
    tensor(0.0039)
    """
    model = prepare((model if inplace else copy.deepcopy(model)).eval(), inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def fuse_modules(model: Module, modules_to_fuse: list, inplace: bool = False) -> Module:
    """Batch norms folded into the layers before them, in evaluation; Identity stands in their place.

    modules_to_fuse: lists of names, ``["conv", "bn"]`` or ``["conv", "bn", "relu"]`` (the relu stays a
    module), or one. Raises ValueError for other modules, KeyError for names that the model has not.

    >>> model = fw.nn.Sequential(fw.nn.Conv2d(1, 2, 3), fw.nn.BatchNorm2d(2)).eval()
    >>> fw.ao.quantization.fuse_modules(model, ["0", "1"])[1]
    Identity()
    """
    model = model if inplace else copy.deepcopy(model)
    groups = [modules_to_fuse] if modules_to_fuse and isinstance(modules_to_fuse[0], str) else modules_to_fuse
    folded: list[tuple[list[str], tuple]] = []
    for names in groups:
        parts: list[Any] = [model.get_submodule(name) for name in names]
        kinds = [type(part) for part in parts]
        if kinds[-1] is nn.ReLU:
            kinds, parts = kinds[:-1], parts[:-1]
        if kinds == [kinds[0]]:
            continue  # a layer and relu
        fold: Any = fuse_linear_bn_eval if kinds[0] is nn.Linear else fuse_conv_bn_eval
        if len(kinds) != 2 or kinds[0] not in STATIC or kinds[1] not in (nn.BatchNorm1d, nn.BatchNorm2d):
            raise ValueError(
                f"fuse_modules: {names} are {', '.join(k.__name__ for k in kinds)}; wanted a Linear, Conv1d "
                f"or Conv2d, a batch norm, and after them a ReLU or nothing"
            )
        folded.append((names[:2], (fold(*parts), nn.Identity())))
    for names, new in folded:
        for name, part in zip(names, new):
            owner, _, own = name.rpartition(".")
            setattr(model.get_submodule(owner), own, part)
    return model
