"""The reference of the site: one page per namespace, every public name with its docstring.

`python -m docs.build` writes the pages into `docs/api/`, which git ignores. What is public in a module:
`__all__` where there is one; otherwise what it defines itself and what it names twice (``from .x import f
as f``).
"""

import ast
import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import framework

# page: its title and the namespaces on it, in the order of the site; other packages are put on the last one
PAGES = {
    "framework": ("framework", ["framework"]),
    "tensor": ("Tensor", []),
    "nn": ("nn: layers", ["nn", "nn.attention", "nn.grad", "nn.parallel", "nn.utils.rnn"]),
    "functional": ("nn.functional", ["nn.functional", "nn.init"]),
    "nn_utils": ("nn.utils", ["nn.utils", "nn.utils.parametrize", "nn.utils.parametrizations",
                              "nn.utils.prune", "nn.utils.stateless", "nn.utils.fusion"]),
    "optim": ("optim", ["optim", "optim.lr_scheduler", "optim.swa_utils"]),
    "autograd": ("autograd", ["autograd", "autograd.functional", "autograd.forward_ad", "autograd.graph",
                              "autograd.profiler", "autograd.draw"]),
    "func": ("func", ["func"]),
    "data": ("data", ["data", "data.transforms", "data.transforms.functional", "utils.data"]),
    "numbers": ("linalg, fft, special, signal", ["linalg", "fft", "special", "signal.windows"]),
    "sparse": ("sparse", ["sparse"]),
    "random": ("random", ["random"]),
    "distributions": ("distributions", ["distributions", "distributions.constraints",
                                        "distributions.transforms", "distributions.kl"]),
    "amp": ("amp: mixed precision", ["amp", "cpu.amp", "cuda.amp"]),
    "devices": ("Devices", ["cpu", "cuda", "cuda.memory", "cuda.random", "cuda.comm", "cuda.nvtx",
                            "cuda.profiler", "accelerator", "mps", "xpu"]),
    "backends": ("Settings", ["backends", "backends.cpu", "backends.cuda", "backends.cudnn", "backends.mkl",
                              "backends.mkldnn", "backends.mps", "backends.openmp", "backends.opt_einsum",
                              "config", "__config__", "version"]),
    "files": ("Files and hub", ["io", "serialization", "hub"]),
    "profiler": ("profiler", ["profiler"]),
    "utils": ("utils", ["utils", "utils.checkpoint", "utils.tensorboard", "utils.benchmark",
                        "utils.dlpack", "utils.flop_counter", "utils.model_zoo", "utils.hooks"]),
    "distributed": ("distributed", ["distributed", "distributed.fsdp", "distributed.nn.functional",
                                    "distributed.optim", "distributed.algorithms",
                                    "distributed.algorithms.join",
                                    "distributed.algorithms.ddp_comm_hooks.default_hooks"]),
    "multiprocessing": ("multiprocessing", ["multiprocessing"]),
    "models": ("models", ["models"]),
    "extend": ("Operators and overrides", ["library", "overrides", "seam"]),
    "graphs": ("fx, jit, compiler", ["fx", "jit", "compiler"]),
    "testing": ("testing", ["testing"]),
    "array_api": ("array_api", ["array_api", "array_api.linalg", "array_api.fft"]),
    "as_torch": ("as_torch", ["as_torch"]),
    "errors": ("errors", ["errors"]),
}
_KNOWN = {namespace.partition(".")[0] for _, namespaces in PAGES.values() for namespace in namespaces}
PAGES["other"] = ("Other packages", [
    name for name in dir(framework) if not name.startswith("_") and name not in _KNOWN
    and isinstance(getattr(framework, name), types.ModuleType)])


class Name(NamedTuple):
    """A public name: where it is found, what it is, and (an alias) the name described in its stead."""

    path: str
    value: Any
    alias: str | None

    @property
    def documented(self) -> bool:
        """Whether the reader is told what it is: a docstring, or a value that speaks for itself."""
        told = inspect.isclass(self.value) or callable(self.value) or _is_property(self.value)
        return self.alias is not None or not told or bool(text_of(self).strip())


def _is_property(value: Any) -> bool:
    return (isinstance(value, property) or inspect.isgetsetdescriptor(value)
            or inspect.ismemberdescriptor(value))


def public_names(module: types.ModuleType) -> list[str]:
    """The public names of a module, sorted; modules are none of them."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = set()
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names |= {a.asname for a in node.names if a.asname == a.name}
                if node.level and node.module is not None and Path(module.__file__).stem == "__init__":
                    names |= {a.asname for a in node.names if a.asname}
        names |= {n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
        names |= set(getattr(module, "_FROM_LAZY", ()))
    return sorted(n for n in names if not n.startswith("_") and hasattr(module, n)
                  and not isinstance(getattr(module, n), types.ModuleType))


def collect() -> dict[str, list[tuple[str, list[Name]]]]:
    """page -> its sections (namespace, names); an object is described where it comes first."""
    homes: dict[int, str] = {}
    pages: dict[str, list[tuple[str, list[Name]]]] = {}
    for page, (_, namespaces) in PAGES.items():
        sections = []
        for namespace in namespaces:
            path = "framework" if namespace == "framework" else f"framework.{namespace}"
            module = importlib.import_module(path)
            sections.append((path, list(_named(path, {n: getattr(module, n) for n in public_names(module)},
                                               homes))))
        if page == "tensor":
            found = {n: getattr(framework.Tensor, n) for n in dir(framework.Tensor) if not n.startswith("_")}
            sections.append(("framework.Tensor", list(_named("framework.Tensor", found, homes))))
        pages[page] = sections
    return pages


def _named(path: str, found: dict[str, Any], homes: dict[int, str]) -> Iterator[Name]:
    for name, value in found.items():
        full = f"{path}.{name}"
        described = inspect.isclass(value) or callable(value)
        alias = homes.setdefault(id(value), full) if described else full
        yield Name(full, value, alias if alias != full else None)


def methods(cls: type) -> dict[str, Any]:
    """The public methods and properties that a class brings itself; those of its bases are on their pages."""
    ours = cls.__module__.partition(".")[0] == "framework"
    if not ours or cls is framework.Tensor or issubclass(cls, (Exception, tuple)):
        return {}  # Tensor has a page of its own
    return {n: v for n, v in vars(cls).items()
            if not n.startswith("_") and not inspect.isclass(v)
            and (inspect.isfunction(v) or isinstance(v, (classmethod, staticmethod, property)))}


# ---- text

def text_of(name: Name) -> str:
    """The docstring; of what is Python's own only where it comes from."""
    value = name.value.__func__ if isinstance(name.value, (classmethod, staticmethod)) else name.value
    home = getattr(value, "__module__", None) or "framework"
    if home.partition(".")[0] in sys.stdlib_module_names:
        return f"Python's own, see its documentation of `{home.partition('.')[0]}`."
    return inspect.getdoc(value) or ""


def signature(value: Any) -> str:
    """The arguments and their defaults, without types: the text says what is taken, and most take several."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    bare = [p.replace(annotation=p.empty, default=Shown(p.default) if p.default is not p.empty else p.empty)
            for p in found.parameters.values() if p.name not in ("self", "cls")]
    return str(inspect.Signature(bare))


class Shown:
    """A default as it is shown: without addresses, and short."""

    def __init__(self, value: Any) -> None:
        self.text = value.__name__ if inspect.isclass(value) or inspect.isroutine(value) else repr(value)

    def __repr__(self) -> str:
        return "..." if "<" in self.text or len(self.text) > 60 else self.text


def escaped(text: str) -> str:
    """Plain prose as reStructuredText that says the same: only `code` and ``code`` have a meaning."""
    pieces = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if i % 2:
            inner = " ".join(piece.strip("`").split())
            pieces[i] = f"\\ ``{inner}``\\ " if inner else ""  # the backslashes let letters stand beside it
        else:
            pieces[i] = re.sub(r"([\\*_`|:])", r"\\\1", piece)
    return "".join(pieces)


def rendered(doc: str, indent: str) -> list[str]:
    """A docstring as reStructuredText: prose, literal blocks, and examples as they were typed."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        first = block.lstrip("\n")
        if first.lstrip().startswith(">>>"):
            lines += _literal("pycon", block)
        elif first.startswith("  "):
            lines += _literal("text", block)
        else:
            prose = escaped(re.sub(r"::$", ":", block.rstrip()))
            lines += [line.strip() for line in prose.split("\n")]
        lines.append("")
    return [indent + line if line else "" for line in lines]


def _literal(language: str, block: str) -> list[str]:
    return [f".. code-block:: {language}", "",
            *("   " + line for line in inspect.cleandoc(block).split("\n"))]


def described(name: Name, indent: str = "", kind: str | None = None) -> list[str]:
    """The entry of a name."""
    value = name.value
    if kind is None:
        kind = ("exception" if inspect.isclass(value) and issubclass(value, Exception) else
                "class" if inspect.isclass(value) else "property" if _is_property(value) else
                "function" if callable(value) and not isinstance(value, framework.dtype) else "data")
    target = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    arguments = "" if kind in ("property", "data", "exception") else signature(target)
    lines = [f"{indent}.. py:{kind}:: {name.path}{arguments}", ""]
    inner = indent + "   "
    if name.alias is not None:
        return [*lines, f"{inner}Another name of :py:obj:`{name.alias}`.", ""]
    if kind == "data":
        return [*lines, f"{inner}``{re.sub(r'`|<.*>', '', repr(value))[:100] or type(value).__name__}``", ""]
    lines += rendered(text_of(name), inner) + [""]
    if inspect.isclass(value):
        for method, function in methods(value).items():
            if inspect.getdoc(getattr(value, method, None)):
                lines += described(Name(method, function, None), inner,
                                   "property" if isinstance(function, property) else "method")
    return lines


def write(folder: Path) -> tuple[int, list[str]]:
    """Write the pages; the number of public names, and those that are not documented."""
    folder.mkdir(parents=True, exist_ok=True)
    every, bare = 0, []
    contents = ["Reference", "=========", "", "Every public name, from the docstrings; their examples run "
                                              "as tests.",
                "", ".. toctree::", "   :maxdepth: 1", ""]
    written = {"index.rst", "pages.rst"}
    for page, sections in collect().items():
        title = PAGES[page][0]
        lines = [title, "=" * len(title), ""]
        for namespace, names in sections:
            members = [Name(f"{name.path}.{m}", getattr(name.value, m), None) for name in names
                       if inspect.isclass(name.value) and name.alias is None for m in methods(name.value)]
            every += len(names) + len(members)
            bare += [name.path for name in (*names, *members) if not name.documented]
            if len(sections) > 1 or namespace != title:
                lines += [namespace, "-" * len(namespace), ""]
            if namespace != "framework.Tensor":
                lines += rendered(inspect.getdoc(importlib.import_module(namespace)) or "", "") + [""]
            for name in names:
                lines += described(name)
        _refresh(folder / f"{page}.rst", "\n".join(lines) + "\n")
        written.add(f"{page}.rst")
        contents.append(f"   {page}")
    _refresh(folder / "index.rst", "\n".join(contents) + "\n")
    for path in folder.glob("*.rst"):
        if path.name not in written:
            path.unlink()
    return every, bare


def _refresh(path: Path, text: str) -> None:
    """Write only what changed: an unchanged page is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
