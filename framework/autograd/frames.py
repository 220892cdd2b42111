"""Frames of the user's program, below which this package stands."""

import os
import sys
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + "/"
_ours = {"<expression>": True}  # file name -> whether it is of this package; rules made of text have none


def is_ours(file: str) -> bool:
    """Whether a file belongs to this package."""
    ours = _ours.get(file)
    if ours is None:
        ours = _ours[file] = file.startswith(_PACKAGE)
    return ours


def user_frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None
