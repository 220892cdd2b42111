"""Compilation: ``compile`` and its bookkeeping, exportable traces, and PyTorch's names for TorchScript."""

from typing import Final as Final

from ..config.listing import listing as _listing
from .compiled import CompiledFunction as CompiledFunction
from .compiled import OptimizedModule as OptimizedModule
from .compiled import compile as compile
from .compiled import script as script
from .names import Attribute as Attribute
from .names import Future as Future
from .names import RecursiveScriptModule as RecursiveScriptModule
from .names import ScriptFunction as ScriptFunction
from .names import ScriptModule as ScriptModule
from .names import _overload as _overload
from .names import _overload_method as _overload_method
from .names import _script_if_tracing as _script_if_tracing
from .names import annotate as annotate
from .names import export as export
from .names import fork as fork
from .names import ignore as ignore
from .names import interface as interface
from .names import is_scripting as is_scripting
from .names import isinstance as isinstance
from .names import optimized_execution as optimized_execution
from .names import script_if_tracing as script_if_tracing
from .names import script_method as script_method
from .names import unused as unused
from .names import wait as wait
from .reads import is_tracing as is_tracing
from .trace import Step as Step
from .trace import Trace as Trace
from .trace import Value as Value
from .traced import TracedModule as TracedModule
from .traced import load as load
from .traced import save as save
from .traced import trace as trace

TopLevelTracedModule = TracedModule

__dir__ = _listing(globals())
