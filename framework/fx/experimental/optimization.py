"""Traced models made quicker for evaluation."""

import copy
from typing import Any

import framework as fw

from ..graph_module import GraphModule
from ..tracer import symbolic_trace

_PAIRS = {(fw.nn.Conv1d, fw.nn.BatchNorm1d), (fw.nn.Conv2d, fw.nn.BatchNorm2d), (fw.nn.Conv3d,
fw.nn.BatchNorm3d)}


def _put(model: Any, path: str, module: Any) -> None:
    home, _, last = path.rpartition(".")
    setattr(model.get_submodule(home), last, module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The model with each batch norm that follows a convolution computed by that; for evaluation.

    Raises ValueError for a norm in training. inplace: change the modules of ``model``, instead of a copy's.
    no_trace: ``model`` is traced already.

    >>> m = fw.nn.Sequential(fw.nn.Conv2d(1, 2, 1), fw.nn.BatchNorm2d(2), fw.nn.ReLU()).eval()
    >>> print(fw.fx.experimental.optimization.fuse(m).code)
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, '0')(input_1)
        _2 = getattr(self, '2')(_0)
        return _2
    <BLANKLINE>
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        before: Any = node.args[0] if node.op == "call_module" and node.args else None
        if getattr(before, "op", "") != "call_module":
            continue
        norm, conv = modules[node.target], modules[before.target]
        alone = len(before.users) == 1 and sum(n.target == before.target for n in traced.graph.nodes) == 1
        if (type(conv), type(norm)) in _PAIRS and alone and norm.track_running_stats:
            fused = fw.nn.utils.fuse_conv_bn_eval(conv, norm)
            _put(traced, before.target, fused)
            modules[before.target] = fused
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    traced.recompile()
    return traced
