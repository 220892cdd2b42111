"""The graph of a result as a picture: SVG text, laid out in layers, without any other package."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import AutogradError
from ..node import Leaf, place_of
from ..tensor import Tensor
from .anomaly import site_of

_CHARACTER, _LINE, _PAD, _GAP, _STEP, _MARGIN = 7.0, 16.0, 8.0, 18.0, 34.0, 12.0
_FAR_LEAF, _FAR = 6, 20  # layers: leaves farther away are drawn again; longer edges go straight
_COLOURS = {"op": "#eeeeee", "leaf": "#d7ecd9", "parameter": "#cfe2f7", "result": "#fbe0c3",
            "more": "#ffffff"}


class _Box:
    """A node of the drawing: a call, a leaf, a result, or a place where a long edge passes a layer."""

    def __init__(self, kind: str, lines: Sequence[str], title: str = "") -> None:
        self.kind, self.lines, self.title = kind, lines, title
        self.width = max((len(line) for line in lines), default=0) * _CHARACTER + (2 * _PAD if lines else 0)
        self.height = len(lines) * _LINE + _PAD if lines else 0.0
        self.inputs: list[_Box] = []
        self.outputs: list[_Box] = []
        self.layer = 0
        self.x = self.y = 0.0


def draw(loss: Tensor | Sequence[Tensor], file: str | os.PathLike | None = None, max_nodes: int = 500, *,
         params: Mapping[str, Tensor] | None = None) -> str:
    """The graph that ``loss`` was computed by, as SVG text; also written to ``file``, if given.

    loss: a tensor, or several. Inputs stand above what was made of them. Leaves show their shape, and
    their name if they are in ``params``, for example ``dict(model.named_parameters())``; tooltips show the
    settings of a call, what it keeps for backward, and in anomaly mode the line that made it. Of a graph of
    more than ``max_nodes`` nodes only the newest, and the leaves at their ends, are drawn. Raises
    AutogradError if nothing was recorded.

    >>> w = fw.ones(2, 3, requires_grad=True)
    >>> svg = fw.autograd.draw((w * 2).sum(), params={"weight": w})
    >>> svg.startswith("<svg"), "weight" in svg
    (True, True)
    """
    roots = [loss] if isinstance(loss, Tensor) else list(loss)
    for i, root in enumerate(roots):
        if not isinstance(root, Tensor):
            raise TypeError(f"draw: wanted a Tensor or several, got {type(root).__name__} at {i}")
        if root._node is None:
            raise AutogradError(f"draw: a tensor of shape {list(root.shape)} does not require grad and has "
                                f"no graph")
    if max_nodes < 1:
        raise ValueError(f"draw: max_nodes must be at least 1, got {max_nodes}")
    names = {id(t._node): name for name, t in (params or {}).items() if t._node is not None}
    layers = _layers(_boxes(roots, max_nodes, names))
    _order(layers)
    _place(layers)
    text = _svg(layers)
    if file is not None:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
    return text


# -- what is drawn --------------------------------------------------------------------------------


def _boxes(roots: list[Tensor], max_nodes: int, names: dict[int, str]) -> list[_Box]:
    """The boxes, outputs before inputs, with their edges."""
    results = [_Box("result", [f"{t.dtype.name}{list(t.shape)}"]) for t in roots]
    wanted: dict[Any, list[_Box]] = {}  # node -> boxes that take its output
    for box, t in zip(results, roots):
        wanted.setdefault(place_of(t._node)[0], []).append(box)
    boxes, rest = list(results), _Box("more", ["..."], "more nodes: raise max_nodes to see them")
    for _ in range(max_nodes):
        if not wanted:
            break
        node = max(wanted, key=lambda n: n.seq)  # an input is always older
        box = _box_of(node, names)
        boxes.append(box)
        for taker in wanted.pop(node):
            _connect(taker, box)
        for source, _ in node.next_functions:
            if source is not None:
                wanted.setdefault(source, []).append(box)
    for node, takers in wanted.items():
        box = _box_of(node, names) if type(node) is Leaf else rest
        boxes += [box] if box is not rest else []
        for taker in takers:
            _connect(taker, box)
    return boxes + ([rest] if rest.outputs else [])


def _connect(taker: _Box, box: _Box) -> None:
    if box not in taker.inputs:
        taker.inputs.append(box)
        box.outputs.append(taker)


def _box_of(node: Any, names: dict[int, str]) -> _Box:
    if type(node) is Leaf:
        t = node.variable
        shape = "gone" if t is None else f"{t.dtype.name}{list(t.shape)}"
        name = names.get(id(node))
        return _Box("leaf", [shape]) if name is None else _Box("parameter", [name, shape])
    notes = [f"{k} = {v!r}"[:100] for k, v in (node.settings or {}).items()]
    notes += [f"keeps {k}: {v.dtype}{list(v.shape)}" for k, v in (node.kept or {}).items()
              if hasattr(v, "shape")]
    site = site_of(node)
    if site is not None:
        notes.append(f"made at {site}")
    return _Box("op", [node.name()], "\n".join([repr(node), *notes]))


# -- layout: layers, order within them, places ----------------------------------------------------


def _layers(boxes: list[_Box]) -> list[list[_Box]]:
    """The boxes by their longest way to a result, newest layer first; long edges get a bend per layer."""
    for box in boxes:
        for source in box.inputs:
            source.layer = max(source.layer, box.layer + 1)
    boxes = [copy for box in boxes for copy in _copies(box)]
    layers: list[list[_Box]] = [[] for _ in range(max(box.layer for box in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
        for i, source in enumerate(box.inputs):
            last = box
            for layer in range(box.layer + 1, source.layer if source.layer - box.layer <= _FAR else 0):
                bend = _Box("bend", [])
                bend.layer = layer
                layers[layer].append(bend)
                last.inputs[i if last is box else 0:i + 1 if last is box else 1] = [bend]
                bend.outputs, last = [last], bend
            if last is not box:
                last.inputs = [source]
                source.outputs[source.outputs.index(box)] = last
    return layers


def _copies(box: _Box) -> list[_Box]:
    """The box, and for a leaf another one near each taker that is far away."""
    far = [b for b in box.outputs if box.layer - b.layer > _FAR_LEAF and box.kind != "op"]
    copies = []
    for taker in far[:-1] if len(far) == len(box.outputs) else far:
        copy = _Box(box.kind, box.lines, box.title)
        copy.layer, copy.outputs = taker.layer + 1, [taker]
        taker.inputs[taker.inputs.index(box)] = copy
        box.outputs.remove(taker)
        copies.append(copy)
    box.layer = max((b.layer + 1 for b in box.outputs), default=0)
    return [box, *copies]


def _order(layers: list[list[_Box]]) -> None:
    """Put boxes near the middle of their neighbours in the layer before, up and down a few times."""
    spots = {id(box): i for layer in layers for i, box in enumerate(layer)}
    for sweep in range(8):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            wishes = {id(b): _middle([spots[id(n)] for n in (b.outputs if down else b.inputs)], spots[id(b)])
                      for b in layer}
            layer.sort(key=lambda b, wishes=wishes: wishes[id(b)])  # type: ignore[misc]
            spots.update({id(b): i for i, b in enumerate(layer)})


def _middle(values: list, otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _place(layers: list[list[_Box]]) -> None:
    for layer in layers:
        _spread(layer, [0.0] * len(layer))
    for sweep in range(12):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            _spread(layer, [_middle([n.x for n in (b.outputs if down else b.inputs)], b.x) for b in layer])
    y = 0.0
    for layer in reversed(layers):
        height = max(box.height for box in layer)
        for box in layer:
            box.y = y + height / 2
        y += height + _STEP


def _spread(layer: list[_Box], wishes: list[float]) -> None:
    """Centres as near to the wishes as the widths allow, in order (least squares: pool what collides)."""
    pools: list[tuple[float, int]] = []  # (sum of wishes, how many) of boxes that touch
    offset, offsets = 0.0, []
    for i, (box, wish) in enumerate(zip(layer, wishes)):
        if i:
            offset += (layer[i - 1].width + box.width) / 2 + _GAP
        offsets.append(offset)
        pools.append((wish - offset, 1))
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, n = pools.pop()
            pools[-1] = (pools[-1][0] + total, pools[-1][1] + n)
    starts = [total / n for total, n in pools for _ in range(n)]
    for box, start, off in zip(layer, starts, offsets):
        box.x = start + off


# -- text -----------------------------------------------------------------------------------------


def _svg(layers: list[list[_Box]]) -> str:
    boxes = [box for layer in layers for box in layer]
    left = min(box.x - box.width / 2 for box in boxes) - _MARGIN
    width = max(box.x + box.width / 2 for box in boxes) + _MARGIN - left
    height = max(box.y + box.height / 2 for box in boxes) + 2 * _MARGIN
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
             f'viewBox="{left:.1f} {-_MARGIN:.1f} {width:.1f} {height:.1f}" font-family="monospace" '
             f'font-size="11.5">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
             'orient="auto"><path d="M0 0L8 4L0 8z" fill="#777777"/></marker></defs>',
             '<g fill="none" stroke="#777777">']
    lines += [_edge(box, source) for box in boxes if box.kind != "bend" for source in box.inputs]
    lines += ["</g>", *[_shape(box) for box in boxes if box.kind != "bend"], "</svg>"]
    return "\n".join(lines) + "\n"


def _edge(box: _Box, source: _Box) -> str:
    """The path from an input down to the box that takes it, through the bends between."""
    points = [(box.x, box.y - box.height / 2)]
    while source.kind == "bend":
        points.append((source.x, source.y))
        source = source.inputs[0]
    points.append((source.x, source.y + source.height / 2))
    points.reverse()
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        half = (y0 + y1) / 2
        path += f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
    return f'<path d="{path}" marker-end="url(#tip)"/>'


def _shape(box: _Box) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    title = f"<title>{_escaped(box.title)}</title>" if box.title else ""
    rows = "".join(f'<text x="{box.x:.1f}" y="{y + _LINE * (i + 1) - 0.5:.1f}" text-anchor="middle">'
                   f"{_escaped(line)}</text>" for i, line in enumerate(box.lines))
    corner = 3 if box.kind == "op" else 9
    return (f'<g class="{box.kind}">{title}<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height='
            f'"{box.height:.1f}" rx="{corner}" fill="{_COLOURS[box.kind]}" stroke="#555555"/>{rows}</g>')


def _escaped(text: str) -> str:
    """The text as XML can hold it: marks escaped, control characters replaced."""
    text = "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
