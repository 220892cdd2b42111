"""What ``backward`` and ``grad`` are given: tensors or edges of the graph, and a gradient for each."""

from typing import Any, NamedTuple

import numpy as np

from ..backends import cuda, on_device, passes
from ..errors import AutogradError, kind_of
from ..node import Dual, Leaf
from ..quiet import quiet
from ..seam import settled
from ..tensor import Tensor, check_fits, wrap


class GradientEdge(NamedTuple):
    """A place in the graph, without the tensor that is there: see ``graph.get_gradient_edge``."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def tensors_given(value: Any, op: str, name: str, edges: bool = False) -> list:
    items = [value] if isinstance(value, Tensor) else list(value)
    if quiet.stack:
        settled(items)
    for item in items:
        if type(item) is Tensor or isinstance(item, Tensor):  # isinstance is a call, the first is none
            continue
        if not (edges and isinstance(item, GradientEdge)):
            raise TypeError(f"{op}: {name} must be a Tensor or a sequence of them, found "
                            f"{kind_of(item)}")
    return items


def stand_ins(outputs: Any, grads: Any) -> Any:
    """Tensors in place of gradient edges among the outputs: the gradient given for an edge has its shape."""
    if isinstance(outputs, Tensor):
        return outputs
    items = [outputs] if isinstance(outputs, GradientEdge) else list(outputs)
    for item in items:
        if isinstance(item, GradientEdge):
            return _standing_in(items, grads)
    return items


def _standing_in(items: list, grads: Any) -> list:
    given = [grads] if grads is None or isinstance(grads, Tensor) else list(grads)
    for i, item in enumerate(items):
        if isinstance(item, GradientEdge):
            if i >= len(given) or not isinstance(given[i], Tensor):
                raise AutogradError(f"grad: outputs[{i}] is a gradient edge, which has no value; pass its "
                                    f"gradient in grad_outputs")
            items[i] = wrap(given[i]._array, node=place_of(item, "grad"))  # type: ignore[union-attr]
    return items


def place_of(t: Tensor | GradientEdge, op: str) -> Any:
    if type(t) is Tensor and type(t._node) is Leaf:
        return t._node
    if isinstance(t, GradientEdge):
        if t.ownership_token is None and getattr(t.node, "op", None) and t.node.op.differentiable > 1:
            raise AutogradError(f"{op}: a gradient edge of {t.node.name()}, which has several outputs, must "
                                f"be made with framework.autograd.graph.get_gradient_edge(tensor)")
        return t.node if t.ownership_token is None else t.ownership_token
    if not t.requires_grad:
        raise AutogradError(f"{op}: an input of shape {list(t.shape)} does not require grad; call "
                            f"requires_grad_() on it before computing the outputs")
    return t._node


def seeds_of(roots: list, grads: Any, live: bool, op: str) -> list:
    """The gradient of each root as array (or tensor, if live); ones for roots of one element."""
    given = [None] * len(roots) if grads is None else (
        list(grads) if isinstance(grads, (tuple, list)) else [grads])
    if len(given) != len(roots):
        raise ValueError(f"{op}: {len(roots)} tensors but {len(given)} gradients")
    seeds = []
    for root, g in zip(roots, given):
        node = root._node
        if node is None or type(node) is Dual:  # not root.requires_grad, which would be a call
            raise AutogradError(f"{op}: a tensor of shape {list(root.shape)} does not require grad and "
                                f"has no graph; was it computed under no_grad, detached, or from "
                                f"tensors without requires_grad=True?")
        if g is None:
            if root._array.size != 1:
                raise AutogradError(f"{op}: a gradient is implied only for a tensor of one element, this "
                                    f"one has shape {list(root.shape)}; reduce it (e.g. .sum()) or pass "
                                    f"the gradient")
            if root.is_complex():
                raise AutogradError(f"{op}: a gradient is implied only for a real number, this tensor is "
                                    f"{root.dtype} (grad can be implicitly created only for real scalar "
                                    f"outputs); take .abs() or .real, or pass the gradient")
            g = wrap(_one(root._array))
        elif not isinstance(g, Tensor):
            raise TypeError(f"{op}: a gradient must be a Tensor or None, got {kind_of(g)}")
        else:
            check_fits(g, root, f"{op}: a gradient")
        if live:
            seeds.append(g)
        else:  # a leaf's .grad is the user's; grad() gives the gradient of a tensor by itself as it came
            seeds.append(_own(g._array) if type(node) is Leaf and op != "grad" else g._array)
    return seeds


def _one(like: Any) -> Any:
    """The number 1 as an array like another."""
    if type(like) is not np.ndarray:
        with on_device(like):
            one: Any = NotImplemented
            if type(like) is cuda.array_type:
                one = passes.filled(like.shape, like.dtype, 1.0)
            if one is NotImplemented:
                one = like.copy()
                one.fill(1)
            return one
    alone = like.copy()
    alone.fill(1)
    return alone


def _own(array: Any) -> Any:
    """A copy that lies in memory as the array does."""
    if type(array) is np.ndarray:
        return array.copy("K")
    with on_device(array):
        return array.copy()
