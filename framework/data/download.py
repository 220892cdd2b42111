"""Fetching a data file: only when asked to, checked by its checksum, never half a file in place."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from typing import Any

_PIECE = 1 << 20


def digest(path: Any, algorithm: str) -> str:
    """The checksum of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def fetch(urls: Sequence[str], path: Any, checksum: str, timeout: float = 60.0) -> None:
    """Bring a file to ``path`` from the first address that has it, unless it is there already.

    checksum: "sha256:..." or "md5:...", as its publisher gives it. What arrives is written beside the
    target, checked, and only then moved into place. Raises OSError that lists why each address failed.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp(); source = os.path.join(folder, "a")
    >>> with open(source, "wb") as f: n = f.write(b"abc")
    >>> fetch(["file://" + source], os.path.join(folder, "b"), "md5:900150983cd24fb0d6963f7d28e17f72")
    >>> with open(os.path.join(folder, "b"), "rb") as f: f.read()
    b'abc'
    """
    import urllib.request
    algorithm, _, wanted = checksum.partition(":")
    target = os.fsdecode(path)
    if os.path.exists(target) and digest(target, algorithm) == wanted:
        return
    folder = os.path.dirname(target) or "."
    os.makedirs(folder, exist_ok=True)
    failures = []
    for url in urls:
        handle, beside = tempfile.mkstemp(prefix=os.path.basename(target), suffix=".part", dir=folder)
        try:
            with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=timeout) as source:
                while piece := source.read(_PIECE):
                    out.write(piece)
            found = digest(beside, algorithm)
            if found == wanted:
                os.replace(beside, target)
                return
            failures.append(f"{url}: {algorithm} is {found}, wanted {wanted}")
        except OSError as error:
            failures.append(f"{url}: {error}")
        finally:
            if os.path.exists(beside):
                os.remove(beside)
    raise OSError(f"fetch: {os.path.basename(target)} could not be had; put it into {folder!r} yourself, or "
                  f"try again: " + "; ".join(failures))
