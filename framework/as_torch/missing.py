"""What is said of a name that PyTorch has and this package has not: what stands closest, and why it is
missing."""

import difflib
import sys
from types import ModuleType

# the longest prefix that fits says why; names are those after "torch."
WHY = {
    "_C": "it is PyTorch's C++ core, of which this package has the names about __torch_function__",
    "_custom_ops": "torch.library.custom_op is there",
    "_dynamo": "Python bytecode is not traced here",
    "_inductor": "nothing is compiled to C++ or Triton here",
    "_six": "PyTorch itself has dropped it",
    "cuda.nccl": "NCCL is reached through CuPy",
    "cuda.gds": "it drives NVIDIA's storage library",
    "mtia": "there is no backend for this hardware",
    "hpu": "there is no backend for this hardware",
    "float8_e4m3fn": "there are no numbers of 8 bits with a point here",
    "float8_e5m2": "there are no numbers of 8 bits with a point here",
    "masked": "there are no masked tensors here; where() and sums over masks do what they do",
    "numa": "processes are not bound to parts of a machine here; numactl does it",
    "package": "models are not packed together with code; save a state_dict",
    "quasirandom": "Sobol's numbers need a table that is not here; scipy.stats.qmc.Sobol draws them",
    "serialization.skip_data": "files are written whole",
    "utils.mobile_optimizer": "there is no runtime for phones here",
}
EVERYWHERE = ("", "nn", "nn.functional", "nn.utils", "optim", "optim.lr_scheduler", "utils", "utils.data",
              "autograd", "linalg", "special", "fft", "cuda", "amp")


def why(name: str) -> str:
    """The reason why ``torch.<name>`` is not there."""
    while name:
        if name in WHY:
            return WHY[name]
        name = name.rpartition(".")[0]
    return "framework does not have it"


def closest(name: str) -> str:
    """The name that a user may have meant: the same one elsewhere, or one spelt like it; else empty."""
    home, _, last = name.rpartition(".")
    modules = {place: _module(place) for place in dict.fromkeys((home, *EVERYWHERE))}
    for place, module in modules.items():
        if module is not None and last in dir(module):
            return _path(place, last)
    module = modules[home]
    near = difflib.get_close_matches(last, [] if module is None else dir(module), n=1, cutoff=0.75)
    return _path(home, near[0]) if near else ""


def _module(place: str) -> ModuleType | None:
    return sys.modules.get(f"framework.{place}" if place else "framework")


def _path(place: str, name: str) -> str:
    return f"torch.{place}.{name}" if place else f"torch.{name}"


def sentence(name: str) -> str:
    """The whole message for ``torch.<name>``."""
    near = closest(name)
    if near == f"torch.{name}":
        return f"{near} is no module, import it from torch{'.' * ('.' in name)}{name.rpartition('.')[0]}"
    return f"torch.{name} is not there: {why(name)}" + (f"; closest: {near}" if near else "")


class MissingName(AttributeError):
    """An attribute of a ``torch`` module that is not there. Its text is made when it is read."""

    def __init__(self, path: str) -> None:
        super().__init__(name=path.rpartition(".")[2], obj=None)  # an object would bring Python's own guess
        self.inner = path

    def __str__(self) -> str:
        return sentence(self.inner)


class MissingModule(ModuleNotFoundError):
    """A submodule of ``torch`` that is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(name=f"torch.{path}")
        self.inner = path

    def __str__(self) -> str:
        return sentence(self.inner)
