"""Rows of ops/image/pixel_shuffle.py."""

from framework.errors import ShapeError

from ..base import Sample, normal, row

row("pixel_shuffle",
    Sample("plain", lambda M, x: M.nn.functional.pixel_shuffle(x, 2), (normal(2, 4, 1, 3),),
           lambda x: x.reshape(2, 1, 2, 2, 1, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 2, 6)),
    Sample("no batch", lambda M, x: M.nn.functional.pixel_shuffle(x, 1), (normal(4, 1, 3),), lambda x: x),
    namespace="nn.functional",
    errors=[("channels", lambda M: M.nn.functional.pixel_shuffle(M.ones(1, 3, 2, 2), 2), ShapeError, "c * 4"),
            ("factor", lambda M: M.nn.functional.pixel_shuffle(M.ones(1, 3, 2, 2), 0), ValueError,
             "positive")])
row("pixel_unshuffle",
    Sample("plain", lambda M, x: M.nn.functional.pixel_unshuffle(x, 2), (normal(2, 1, 2, 4),),
           lambda x: x.reshape(2, 1, 1, 2, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 4, 1, 2)),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.pixel_unshuffle(M.ones(1, 1, 3, 2), 2), ShapeError, "h * 2")])
row("channel_shuffle",
    Sample("plain", lambda M, x: M.nn.functional.channel_shuffle(x, 3), (normal(2, 6, 2),),
           lambda x: x[:, [0, 2, 4, 1, 3, 5]]),
    Sample("one", lambda M, x: M.nn.functional.channel_shuffle(x, 1), (normal(1, 2, 2, 2),), lambda x: x),
    namespace="nn.functional", errors=[
        ("groups", lambda M: M.nn.functional.channel_shuffle(M.ones(1, 3, 1), 2), ValueError,
         "divisible by 2"),
        ("none", lambda M: M.nn.functional.channel_shuffle(M.ones(1, 3, 1), 0), ValueError, "groups")])
