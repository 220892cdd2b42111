"""Models from folders with a ``hubconf.py``, and files of weights by address, kept with their checksums.

``hubconf.py`` is a program: ``load``, ``list`` and ``help`` run it. Repositories on GitHub are not fetched:
clone one, and give its folder with ``source="local"``.
"""

import builtins
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from .config.listing import own as _own
from .io import load as _load

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PIECE = 1 << 20
_dir: str | None = None


def _get_torch_home() -> str:
    """The folder of all that is kept: $TORCH_HOME, else ~/.cache/torch. Libraries ask by this name."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of kept files: as ``set_dir`` says, else $TORCH_HOME/hub, else ~/.cache/torch/hub.

    >>> fw.hub.get_dir().endswith("hub")
    True
    """
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike) -> None:
    """Keep files in this folder."""
    global _dir
    _dir = os.path.expanduser(os.fspath(d))


def _hubconf(repo: str | os.PathLike, source: str, op: str) -> ModuleType:
    if source != "local":
        raise ValueError(f"{op}: source={source!r}: repositories are not fetched here; clone {repo} and give "
                         f"its folder with source='local'")
    folder = os.path.expanduser(os.fspath(repo))
    path = os.path.join(folder, "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{op}: there is no hubconf.py in {folder!r}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    finally:
        sys.path.remove(folder)
    lacking = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if lacking:
        raise RuntimeError(f"{op}: {path} depends on packages that are not installed: {', '.join(lacking)}")
    return module


def _entry(module: ModuleType, model: str, op: str) -> Any:
    found = getattr(module, model, None)
    if not callable(found) or model.startswith("_"):
        raise RuntimeError(f"{op}: hubconf.py has no function {model!r}; it has "
                           f"{', '.join(_entries(module))}")
    return found


def _entries(module: ModuleType) -> builtins.list[str]:
    return [name for name, value in vars(module).items()
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == "hubconf"]


def load(repo_or_dir: str | os.PathLike, model: str, *args: Any, source: str = "github",
         trust_repo: Any = None, force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:
    """What the function ``model`` of a folder's ``hubconf.py`` returns for these arguments.

    source: "local"; with PyTorch's default "github" ValueError says what to do. Raises FileNotFoundError
    without a ``hubconf.py``, RuntimeError for a function that it has not, or packages that it misses.
    """
    return _entry(_hubconf(repo_or_dir, source, "hub.load"), model, "hub.load")(*args, **kwargs)


def list(github: str | os.PathLike, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None, verbose: bool = True, *, source: str = "local") -> builtins.list[str]:
    """The names of the functions that a folder's ``hubconf.py`` defines."""
    return _entries(_hubconf(github, source, "hub.list"))


def help(github: str | os.PathLike, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None, *, source: str = "local") -> str | None:
    """The docstring of a function of a folder's ``hubconf.py``."""
    return _entry(_hubconf(github, source, "hub.help"), model, "hub.help").__doc__


def download_url_to_file(url: str, dst: str | os.PathLike, hash_prefix: str | None = None,
                         progress: bool = True) -> None:
    """Bring what an address (``file:``, ``https:``) holds to a path: checked first, then moved into place.

    hash_prefix: what its SHA-256 begins with, in hexadecimal. progress: nothing is printed either way.
    Raises RuntimeError for another checksum, OSError where it cannot be had; then nothing is there.
    """
    target = os.path.expanduser(os.fspath(dst))
    handle, beside = tempfile.mkstemp(suffix=".part", dir=os.path.dirname(os.path.abspath(target)))
    digest = hashlib.sha256()
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=60) as source:
            while piece := source.read(_PIECE):
                out.write(piece)
                digest.update(piece)
        _compare(digest.hexdigest(), hash_prefix, url)
        os.chmod(beside, 0o666 & ~_umask())  # as any new file, not only for its owner as temporary ones
        os.replace(beside, target)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _umask() -> int:
    """The bits that new files do not get: Linux says so, elsewhere they are to be set and set back."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return int(next(line.split()[1] for line in status if line.startswith("Umask:")), 8)
    except (OSError, StopIteration):
        mask = os.umask(0o077)
        os.umask(mask)
        return mask


def _compare(found: str, prefix: str | None, what: str) -> None:
    if prefix and not found.startswith(prefix):
        raise RuntimeError(f"{what}: its SHA-256 is {found}, wanted one that begins with {prefix!r}")


def load_state_dict_from_url(url: str, model_dir: str | os.PathLike | None = None, map_location: Any = None,
                             progress: bool = True, check_hash: bool = False, file_name: str | None = None,
                             weights_only: bool = False) -> Any:
    """``load`` of the file at an address, which is fetched once and kept in ``model_dir``.

    model_dir: default ``get_dir()`` + "/checkpoints". check_hash: compare its SHA-256 with the part of its
    name between "-" and ".", also of a file that is there already. weights_only: files are read as data in
    either case. Raises RuntimeError for another checksum, OSError where it cannot be had.
    """
    folder = Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = folder / name
    match = HASH_REGEX.search(name) if check_hash else None
    prefix = match[1] if match else None
    if path.exists():
        if prefix:
            with open(path, "rb") as file:
                _compare(hashlib.file_digest(file, "sha256").hexdigest(), prefix, str(path))
    else:
        download_url_to_file(url, path, prefix, progress)
    return _load(path, map_location)


__dir__ = _own(globals())
