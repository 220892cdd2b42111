"""Models without Python: ``export`` writes a model file, which C and C++ run with the same kernels.

>>> fw.runtime.export(fw.nn.Linear(3, 4), (fw.randn(2, 3),), "model.fwk")  # doctest: +SKIP
"""

from ..config.listing import listing as _listing
from .export import ExportedModel as ExportedModel
from .export import ExportError as ExportError
from .export import export as export
from .library import CompiledModel as CompiledModel
from .library import load as load

__dir__ = _listing(globals())
