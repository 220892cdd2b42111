"""scikit-build-core, but a failed build of the kernels leaves a package without them that says why.

What the compiler said last stands in ``native_build.txt`` beside the package's metadata, where
``framework._native`` reads it. ``FRAMEWORK_NATIVE=off`` builds no kernels; ``FRAMEWORK_SETS=all`` builds
those of all instruction sets, for wheels, instead of the machine's. Where sets are named a failed build is an
error.
"""

import base64
import hashlib
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

NOTE = "native_build.txt"
COMPILERS = re.compile(r"\berror: ")
PROGRESS = re.compile(r"\[\d+/\d+\] |ninja: ")
TELLING = re.compile(r"error|cannot find|could not|not found|No space|Killed", re.IGNORECASE)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    return _build(backend.build_wheel, wheel_directory, config_settings, metadata)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    return _build(backend.build_editable, wheel_directory, config_settings, metadata)


def _build(build: Callable[..., str], directory: str, *rest: Any) -> str:
    with tempfile.TemporaryFile() as log:
        try:
            with _written_to(log):
                return build(directory, *rest)
        except (Exception, SystemExit) as error:
            if os.environ.get("FRAMEWORK_NATIVE") == "off" or os.environ.get("FRAMEWORK_SETS"):
                raise
            log.seek(0)
            why = reason(log.read().decode(errors="replace"), error)
    print(f"The native kernels could not be built:\n{why}\nThe package goes without them.", file=sys.stderr)
    os.environ["FRAMEWORK_NATIVE"] = "off"
    name = build(directory, *rest)
    _add_note(Path(directory) / name, why)
    return name


class _written_to:
    """What this process and its children write meanwhile goes into the file, then where it should."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __enter__(self) -> None:
        sys.stdout.flush(), sys.stderr.flush()
        self._kept = os.dup(1), os.dup(2)
        os.dup2(self._log.fileno(), 1), os.dup2(self._log.fileno(), 2)

    def __exit__(self, *_: Any) -> None:
        sys.stdout.flush(), sys.stderr.flush()
        for own, kept in enumerate(self._kept, 1):
            os.dup2(kept, own)
            os.close(kept)
        self._log.seek(0)
        os.write(2, self._log.read())


def reason(log: str, error: BaseException) -> str:
    """The lines of a build's output that tell why it failed."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip() and not PROGRESS.match(line)]
    found = [i for says in (COMPILERS, TELLING) for i, line in enumerate(lines) if says.search(line)]
    first = found[0] if found else max(len(lines) - 6, 0)
    return "\n".join(lines[first:first + 6]) or f"{type(error).__name__}: {error}"


def _add_note(wheel: Path, text: str) -> None:
    """The wheel again, with the note in its metadata."""
    with zipfile.ZipFile(wheel) as old:
        entries = [(info, old.read(info)) for info in old.infolist()]
    record = next(info.filename for info, _ in entries if info.filename.endswith(".dist-info/RECORD"))
    name, data = f"{record.rpartition('/')[0]}/{NOTE}", text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as new:
        for info, content in entries:
            if info.filename == record:
                new.writestr(name, data)
                content += f"{name},sha256={digest},{len(data)}\n".encode()
            new.writestr(info, content)
