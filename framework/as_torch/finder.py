"""The finder that ``import torch`` and its submodules meet, and the module ``torch`` that it makes."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from email.message import Message
from importlib import metadata
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import framework

from ..config import names
from .missing import MissingModule, MissingName
from .old_calls import OLD_CALLS
from .version import VERSION

SITE = str(Path(__file__).with_name("site"))  # what other processes find on their path


class Torch(ModuleType):
    """The module ``torch``: the names of ``framework``, which it asks for those that come later."""

    def __init__(self) -> None:
        super().__init__("torch", framework.__doc__)
        self.__path__: list[str] = []
        self.__file__ = framework.__file__
        self.__version__ = VERSION
        self.torch = self
        self.__dict__.update({k: v for k, v in vars(framework).items()
                              if not k.startswith("_") and k not in PLACES})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        if name in PLACES:
            return importlib.import_module(f"torch.{name}")
        try:
            found = getattr(framework, name)
        except AttributeError:
            if _is_module(name):
                return importlib.import_module(f"torch.{name}")
            raise MissingName(name) from None
        if isinstance(found, ModuleType) and found.__name__ == f"framework.{name}":
            return importlib.import_module(f"torch.{name}")
        return found

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(framework)})


# what programs look for in PyTorch's own inside, and what is something else here: it stands in ``places``
PLACES = ("ops", "_dynamo", "onnx")


def _home(path: str) -> str:
    """The name of the module of ours that is ``torch.<path>``."""
    if path.partition(".")[0] in PLACES:
        return f"framework.as_torch.places.{path}"
    return f"framework.{path}" if path else "framework"


def _is_module(path: str) -> bool:
    """Whether there is a module of ours for it, and not hidden by a function or class of that name."""
    home, _, last = path.rpartition(".")
    try:
        parent = importlib.import_module(_home(home))
        if path not in PLACES and not isinstance(vars(parent).get(last, parent), ModuleType):
            return False
        return importlib.util.find_spec(_home(path)) is not None
    except (ImportError, ValueError):
        return False


class Mirror(Loader):
    """Gives ``torch.<path>`` the module of ours that stands for it, itself."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if not self.path:
            return Torch()
        module = importlib.import_module(_home(self.path))
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if self.path:
            module.__spec__ = self.spec  # the import system has put that of torch in its place
            explain(module)

    def get_code(self, fullname: str) -> Any:
        """For ``python -m torch.<path>``: the code of the module of ours."""
        spec = importlib.util.find_spec(_home(self.path))
        return None if spec is None else spec.loader.get_code(spec.name)  # type: ignore[union-attr]


# programs import these at the top, and use them behind an option: their names say that they are not there
ONLY_IMPORTED = ("_custom_ops",)


class Absent(Loader):
    """Gives a module without names, each of which raises when it is asked for."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        def __getattr__(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module 'torch.{self.path}' has no attribute {name!r}")
            raise MissingName(f"{self.path}.{name}")
        module.__getattr__ = __getattr__  # type: ignore[method-assign]


def explain(module: ModuleType) -> None:
    """Let a module of ours, and those under it, say what a missing name is about."""
    for name, found in list(sys.modules.items()):
        if found is not None and (name == module.__name__ or name.startswith(module.__name__ + ".")):
            own = vars(found).get("__getattr__")
            if not hasattr(own, "asks"):
                vars(found)["__getattr__"] = _explaining(found, own)


def _explaining(module: ModuleType, own: Any) -> Any:
    place = module.__name__.partition(".")[2].removeprefix("as_torch.places.")

    def __getattr__(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if name.startswith("__"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        raise MissingName(f"{place}.{name}")

    __getattr__.asks = own  # type: ignore[attr-defined]
    return __getattr__


class Described(metadata.Distribution):
    """What ``importlib.metadata`` says of the distribution ``torch``."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(framework.__file__).parent / path

    @property
    def metadata(self) -> Any:
        found = Message()
        found["Name"], found["Version"] = "torch", str(VERSION)
        return found


class Finder(MetaPathFinder):
    """Finds ``torch`` and what is under it."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        root, _, inner = fullname.partition(".")
        if root != "torch":
            return None
        if not inner:
            return ModuleSpec("torch", Mirror(""), origin=framework.__file__, is_package=True)
        if not _is_module(inner):
            if inner in ONLY_IMPORTED:
                return ModuleSpec(fullname, Absent(inner), is_package=True)
            raise MissingModule(inner)
        found = importlib.util.find_spec(_home(inner))
        return ModuleSpec(fullname, Mirror(inner), origin=getattr(found, "origin", None),
                          is_package=getattr(found, "submodule_search_locations", None) is not None)

    def find_distributions(self, context: Any = None) -> Iterator[metadata.Distribution]:
        if context is not None and context.name == "torch":
            yield Described()


def is_installed() -> bool:
    """Whether ``import torch`` finds this package."""
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


def install() -> None:
    """From now on ``import torch`` finds this package, here and in processes that are started with our path.

    Shapes and dtypes print as PyTorch's. Raises ImportError if PyTorch itself has been imported already:
    objects of both would be mixed up.
    """
    if is_installed():
        return
    loaded = sys.modules.get("torch")
    if loaded is not None and getattr(loaded, "__file__", None) != str(Path(SITE, "torch.py")):
        raise ImportError("as_torch.install(): PyTorch is imported already; call it before the first "
                          "import torch")
    sys.meta_path.insert(0, Finder())
    names.package = "torch"
    _name_classes(True)
    OLD_CALLS.install()


_HOMES: dict[type, tuple[str, str]] = {}  # of classes, while they are called PyTorch's


def uninstall() -> None:
    """``import torch`` is PyTorch's again; modules that hold names of ours keep them."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]
    for name, module in list(sys.modules.items()):
        explained: Any = vars(module).get("__getattr__") if name.startswith("framework.") else None
        if hasattr(explained, "asks"):
            if explained.asks is None:
                del vars(module)["__getattr__"]
            else:
                vars(module)["__getattr__"] = explained.asks
    names.package = "framework"
    _name_classes(False)
    OLD_CALLS.uninstall()


def _name_classes(as_torch: bool) -> None:
    """What classes of tensors say they are and from where: libraries ask which package a tensor is of."""
    nn = framework.nn
    for path, kind in {"Tensor": framework.Tensor, "nn.parameter.Parameter": nn.Parameter,
                       "nn.parameter.Buffer": nn.Buffer, "dtype": framework.dtype, "device": framework.device,
                       "Size": framework.Size}.items():
        if as_torch:
            _HOMES.setdefault(kind, (kind.__module__, kind.__name__))
            home, _, name = f"torch.{path}".rpartition(".")
        else:
            home, name = _HOMES.pop(kind, (kind.__module__, kind.__name__))
        kind.__module__, kind.__name__, kind.__qualname__ = home, name, name
