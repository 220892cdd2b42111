"""Programs as graphs: modules traced by symbols, changed, and run again."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ..config.listing import listing as _listing
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_arg as map_arg
from .proxy import GraphAppendingTracer as GraphAppendingTracer
from .proxy import Proxy as Proxy
from .proxy import TraceError as TraceError
from .rewriter import Match as Match
from .rewriter import replace_pattern as replace_pattern
from .tracer import Tracer as Tracer
from .tracer import symbolic_trace as symbolic_trace
from .tracer import wrap as wrap


def __getattr__(name: str) -> _Any:
    """Changes of models, imported when first named."""
    if name == "experimental":
        return _import_module(f"{__name__}.experimental")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

__dir__ = _listing(globals())
