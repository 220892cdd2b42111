"""Optional packages: imported when used, with an error that names the extra to install.

``python -m framework.config`` prints what is installed and active.
"""

import importlib
from types import ModuleType

from ..errors import MissingExtraError
from . import names as names
from .listing import listing as _listing


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import the optional ``module``, or say which extra of this package brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package '{module.partition('.')[0]}', which could not be imported "
            f"({error}); install it with: pip install 'framework[{extra}]'"
        ) from error

__dir__ = _listing(globals())
