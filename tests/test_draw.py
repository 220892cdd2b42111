"""framework.autograd.draw: well-formed SVG that shows the whole graph, nothing on top of anything else."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import framework as fw
import framework.nn.functional as F
from framework import nn
from framework.autograd import detect_anomaly, draw
from framework.errors import AutogradError

SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """What a drawing shows: boxes (kind, lines, title, edges of the rectangle) and paths (points)."""

    def __init__(self, text):
        root = ElementTree.fromstring(text)
        assert root.tag == f"{SVG}svg"
        self.frame = [float(n) for n in root.get("viewBox").split()]
        self.boxes, self.paths = [], []
        for group in root.iter(f"{SVG}g"):
            rect = group.find(f"{SVG}rect")
            if rect is not None:
                x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
                title = group.find(f"{SVG}title")
                self.boxes.append((group.get("class"), [t.text for t in group.iter(f"{SVG}text")],
                                   "" if title is None else title.text, (x, y, x + w, y + h)))
            self.paths += [[float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
                           for path in group.findall(f"{SVG}path")]

    def lines(self, kind):
        return [lines for own, lines, _, _ in self.boxes if own == kind]

    def check_layout(self):
        """Boxes lie in the frame and apart; paths lead from under a box to the top of one, past others."""
        x0, y0, w, h = self.frame
        rectangles = [box[3] for box in self.boxes]
        for i, (left, top, right, bottom) in enumerate(rectangles):
            assert x0 < left < right < x0 + w and y0 < top < bottom < y0 + h
            for other in rectangles[:i]:
                assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top
        for path in self.paths:
            ends = [any(abs(y - r[side]) < 0.2 and r[0] < x < r[2] for r in rectangles)
                    for side, x, y in ((3, *path[:2]), (1, *path[-2:]))]
            assert ends == [True, True]
            for x, y in points(path):
                assert not any(r[0] < x < r[2] and r[1] + 0.2 < y < r[3] - 0.2 for r in rectangles)


def points(path):
    """Points along a path of cubic curves."""
    corners = list(zip(path[::2], path[1::2]))
    for i in range(0, len(corners) - 1, 3):
        a, b, c, d = corners[i:i + 4]
        for k in range(21):
            t = k / 20
            yield tuple((1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * q + 3 * t * t * (1 - t) * r + t ** 3 * s
                        for p, q, r, s in zip(a, b, c, d))


class Net(nn.Module):
    """Branches, skip connections of several lengths, shared weights, several outputs of one op."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.norm = nn.LayerNorm(6)

    def forward(self, x):
        h = F.relu(self.first(x))
        skip = h + self.second(F.gelu(self.norm(h)))
        q, r = fw.linalg.qr(skip)
        again = self.first(q @ r) * skip.sigmoid().mean()
        return self.last(again + x + h.flip(0))


def test_a_network_is_drawn_whole():
    net = Net()
    x = fw.randn(4, 6)
    loss = F.cross_entropy(net(x), fw.tensor([0, 1, 0, 1]))
    text = draw(loss, params=dict(net.named_parameters()))
    picture = Picture(text)
    picture.check_layout()
    names = {lines[0] for lines in picture.lines("parameter")}
    assert names == {name for name, _ in net.named_parameters()}
    assert ["first.weight", "float32[6, 6]"] in picture.lines("parameter")
    ops = [line for lines in picture.lines("op") for line in lines]
    assert ops.count("linear") == 4 and ops.count("qr") == 1 and "sigmoid" in ops
    assert picture.lines("result") == [["float32[]"]] and not picture.lines("more")


def test_every_node_and_edge_once():
    x, y = fw.ones(2, 3, requires_grad=True), fw.ones(3, requires_grad=True)
    z = x * y
    picture = Picture(draw((z * z).sum() + z.mean()))
    picture.check_layout()
    assert sorted(sum(picture.lines("op"), [])) == ["add", "mean", "mul", "mul", "sum"]
    assert sorted(picture.lines("leaf")) == [["float32[2, 3]"], ["float32[3]"]]
    # x y -> z; z -> mul (once), mean; mul -> sum; sum mean -> add; add -> result
    assert len(picture.paths) == 8


def test_tooltips():
    with detect_anomaly():
        x = fw.ones(2, 3, requires_grad=True)
        y = x.exp().sum(dim=1)
    titles = {lines[0]: title for _, lines, title, _ in Picture(draw(y)).boxes}
    assert "dim = " in titles["sum"] and "keeps out: float32[2, 3]" in titles["exp"]
    assert f"made at {__file__}:" in titles["exp"] and "y = x.exp().sum(dim=1)" in titles["exp"]


def test_text_is_escaped():
    x = fw.ones(1, requires_grad=True)
    name = 'a<b> & "c"\x00\x1b\ud800'
    picture = Picture(draw(x * 2, params={name: x}))
    assert picture.lines("parameter") == [['a<b> & "c"???', "float32[1]"]]


def test_file_and_several_results(tmp_path):
    x = fw.ones(2, requires_grad=True)
    path = tmp_path / "graph.svg"
    text = draw([x.exp(), x.sin(), x], path)
    assert path.read_text() == text
    picture = Picture(text)
    picture.check_layout()
    assert len(picture.lines("result")) == 3 and len(picture.lines("leaf")) == 1


def test_large_graphs_are_cut_and_stay_readable():
    x = fw.ones(2, requires_grad=True)
    y = x
    for _ in range(2000):
        y = y * 1.5 + x
    text = draw(y.sum(), max_nodes=100)
    picture = Picture(text)
    picture.check_layout()
    assert len(picture.lines("op")) == 100 and picture.lines("more") == [["..."]]
    assert 10 <= len(picture.lines("leaf")) <= 50  # x, never far from a use of it
    assert len(text) < 200_000


def test_a_leaf_is_drawn_again_beside_a_use_that_is_far_from_the_others():
    x = fw.ones(2, requires_grad=True)
    y, middle = x, None
    for i in range(12):
        y = y.sin()
        middle = y if i == 3 else middle
    picture = Picture(draw((y * x * middle).sum()))
    picture.check_layout()
    assert len(picture.lines("leaf")) == 2 and len(picture.lines("op")) == 15


def test_a_leaf_whose_tensor_is_gone():
    y = fw.ones(1, requires_grad=True) * 2
    assert Picture(draw(y)).lines("leaf") == [["gone"]]


@pytest.mark.parametrize("arguments, kind, text", [
    (lambda: (fw.ones(1),), AutogradError, r"draw: a tensor of shape \[1\] does not require grad"),
    (lambda: (3,), TypeError, "int"),
    (lambda: ([3],), TypeError, "wanted a Tensor or several, got int at 0"),
    (lambda: (fw.ones(1, requires_grad=True), None, 0), ValueError, "max_nodes must be at least 1, got 0"),
])
def test_wrong_calls(arguments, kind, text):
    with pytest.raises(kind, match=text):
        draw(*arguments())
