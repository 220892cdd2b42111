"""oneDNN, which is not used: the CPU has this package's own kernels. Its settings are only kept."""

from contextlib import AbstractContextManager

from .flags import checking, set_for

KINDS = {"enabled": bool, "deterministic": bool, "allow_tf32": bool}
enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether oneDNN is in use: False."""
    return False


def flags(enabled: bool | None = None, deterministic: bool | None = None,
          allow_tf32: bool | None = None) -> AbstractContextManager:
    """A block with other settings."""
    return set_for(__name__, enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)


checking(__name__)
