"""Programs as graphs: modules traced by symbols, changed, and run again."""

from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .proxy import TraceError as TraceError
from .tracer import Tracer as Tracer
from .tracer import symbolic_trace as symbolic_trace
from .tracer import wrap as wrap
