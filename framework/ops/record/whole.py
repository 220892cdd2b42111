"""Functions that are several records here and one operation elsewhere.

``interpolate`` chooses elements along one dimension after another, and ``grid_sample`` reads four neighbours;
in ONNX each is one operator, which also holds for other sizes. Who writes graphs asks for them whole: inside
``intercept(f, wholes=True)`` such a call is one event, whose op is the ``Whole``. Others see the records. Of
some it is one step in a model file, too (``wholes="runtime"``).
"""

from collections.abc import Callable
from typing import Any

from ...quiet import quiet
from ...seam import OP, Event, intercepted


class Whole:
    """``function(*inputs, **settings)`` under the name of the public function, what it is in ONNX and, where
    it is one step there, in a model file.
    """

    variadic = view = False

    def __init__(self, name: str, inputs: str, function: Callable, onnx: str,
                 runtime: str | None = None) -> None:
        self.name = name
        self.inputs = tuple(inputs.split())
        self.function = function
        self.onnx = onnx
        self.runtime = runtime

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        if quiet.run is None and all(one.wholes is True or one.wholes and getattr(self, one.wholes)
                                     for one in quiet.stack):
            return intercepted(Event(OP, self, inputs, settings), self.function)
        return self.function(*inputs, **settings)
