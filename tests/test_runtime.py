"""Models without Python: files of runtime.export, run by libframework with eager's bits."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from test_library import compiler

import framework as fw
import framework.nn.functional as F
from framework import _native, nn
from framework.ao import quantization
from framework.errors import CheckpointError

SOURCES = Path(_native.__file__).with_name("library")
LIBRARY = Path(getattr(_native.module, "__file__", None) or "none").with_name("libframework.so")
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="libframework is not beside the extension")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            a.view(b, t, self.heads, -1).transpose(1, 2) for a in self.qkv(self.before(x)).chunk(3, -1)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.after(x))


class GPT(nn.Module):
    def __init__(self, characters=27, width=32, layers=2, longest=64):
        super().__init__()
        self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, x):
        here = self.characters(x) + self.places(fw.arange(x.shape[1]))
        return self.out(self.norm(self.blocks(here)))


class Tagger(nn.Module):
    def __init__(self, cell, **settings):
        super().__init__()
        self.words, self.out = (
            nn.Embedding(50, 12),
            nn.Linear(20 * (2 if settings.get("bidirectional") else 1), 7),
        )
        self.cells = cell(12, 20, 2, batch_first=True, **settings)

    def forward(self, x):
        y, _ = self.cells(self.words(x))
        return F.log_softmax(self.out(y), -1), y[:, -1]


def classifier(side=24):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 40, 3, padding=1),
        nn.BatchNorm2d(40),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(40, 40, 3, padding=1, groups=40),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 10),
        nn.Softmax(1),
    ).eval()


BATCH, BOTH = {"x": {0: "batch"}}, {"x": {0: "batch", 1: "length"}}
words = lambda: fw.randint(0, 27, (2, 9))
CASES = {
    "linear": (lambda: nn.Linear(5, 3), lambda: fw.randn(2, 5), BATCH),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)),
        lambda: fw.randn(2, 9),
        BATCH,
    ),
    "cnn": (classifier, lambda: fw.randn(2, 3, 24, 24), BATCH),
    "gpt": (GPT, words, BOTH),
    "lstm": (lambda: Tagger(nn.LSTM), words, BOTH),
    "gru": (lambda: Tagger(nn.GRU, bidirectional=True), words, BOTH),
    "rnn": (lambda: Tagger(nn.RNN, nonlinearity="relu"), words, BOTH),
    "double": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.LayerNorm(4)).double(),
        lambda: fw.randn(3, 4, dtype=fw.float64),
        BATCH,
    ),
}


class Plain(nn.Module):
    """Layers called one by one, as most programs write them; pictures of bytes."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, stride=2), nn.BatchNorm2d(8)
        self.drop, self.out = nn.Dropout(0.25), nn.Linear(8, 10)

    def forward(self, image):
        x = image.float() / 255
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = self.drop(F.relu(self.norm2(self.conv2(x))))
        x = self.out(x.mean((2, 3)))
        return x - x.amax(1, keepdim=True), x.sum()


CASES["plain"] = (Plain, lambda: fw.randint(0, 256, (2, 1, 12, 12), dtype=fw.uint8), BATCH)


class Images(nn.Module):
    """Images in other sizes, which go down to halves and come back to those of the input."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1, padding_mode="reflect")
        self.norm, self.pool = nn.GroupNorm(2, 6), nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.up = nn.ConvTranspose2d(6, 3, 2, stride=2)

    def forward(self, x):
        y = self.norm(self.down(F.pad(x, (1, 0, 2, 1), value=0.5)))
        y = F.interpolate(self.pool(y), size=y.shape[2:], mode="bilinear", align_corners=True)
        back = self.up(F.interpolate(y, scale_factor=0.75, mode="bicubic"))
        wide, high = x.shape[3] - back.shape[3], x.shape[2] - back.shape[2]
        back = F.pad(back, (wide // 2, wide - wide // 2, high, 0))
        places = fw.stack([back[:, 0], x[:, 1]], -1).tanh()
        seen = F.grid_sample(x, places, padding_mode="reflection", align_corners=False)
        small = F.adaptive_avg_pool2d(seen, (7, 11)) + F.adaptive_max_pool2d(back, (7, 11))
        return seen.flatten(2), small, F.unfold(back, 2, stride=2), F.avg_pool2d(y, 2)


class Places(nn.Module):
    """Whatever chooses, counts and moves elements."""

    def forward(self, x):
        n, t = x.shape[:2]
        best, at = x.max(1, keepdim=True)
        later = fw.triu(fw.ones(t, t), 1) > 0
        some = (x > 0.5) & ~(x > 1) | (best == x)
        y = x.gather(1, at.expand_as(x)) + x[:, fw.tensor([2, 0, 1])].mean(1, keepdim=True)
        y = fw.zeros_like(x).scatter(1, at, 3.0) + F.one_hot(x.argmin(2), 4) * y
        z = x.roll(1, 1).flip(2).repeat(1, 1, 2)[:, None, ..., 1:]
        z.clamp_(-0.5)
        y = y + x.sort(1, descending=True)[0] - x.cumsum(1) * x.topk(2, 1)[0].sum(1, keepdim=True)
        return y, some.any(2), later.tril(2), z.to(fw.int32), (x > 0).all(1).logical_not(), x.bool()


def small(kind):
    """A network of 8-bit numbers: activations by averages that were watched, or by each batch."""
    fw.manual_seed(3)
    if kind == "attention":
        model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
        model.qconfig = quantization.get_default_qconfig()
        return quantization.quantize(model, lambda m: m(fw.randn(4, 7, 16)), ())
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, groups=2), nn.Flatten(),
        nn.Linear(200, 24), nn.ReLU(), nn.Linear(24, 5, bias=False)).eval()
    if kind == "dynamic":
        return quantization.quantize_dynamic(model, {nn.Linear})
    model.qconfig = quantization.get_default_qconfig()
    ready = quantization.prepare(model)
    ready(fw.randn(8, 3, 12, 12))
    return quantization.convert(ready)


CASES["images"] = (Images, lambda: fw.randn(2, 3, 12, 15), {"x": {0: "batch", 2: "height", 3: "width"}})
CASES["places"] = (Places, lambda: fw.randn(2, 5, 4), BOTH)
CASES["int8"] = (lambda: small("static"), lambda: fw.randn(2, 3, 12, 12), BATCH)
CASES["int8_attention"] = (lambda: small("attention"), lambda: fw.randn(2, 6, 16), BOTH)
CASES["int8_by_batch"] = (lambda: small("dynamic"), lambda: fw.randn(2, 3, 12, 12), BATCH)


def exported(name, f=None):
    fw.manual_seed(7)
    make, example, axes = CASES[name]
    model = make().eval()
    return model, fw.runtime.export(
        model, example(), f, dynamic_axes={"input": axes["x"]}, input_names=["input"]
    )


@pytest.mark.parametrize("name", CASES)
def test_a_model_gives_the_bits_of_eager(name, tmp_path):
    path = tmp_path / "model.fwk"
    model, made = exported(name, path)
    assert {c["batch"] for c in made.checked} >= {1, 2, 5}
    ready = fw.runtime.load(path)
    for batch in (1, 3, 2, 3, 7, 11, 1):  # more sizes than a request keeps plans for
        x = CASES[name][1]()
        x = fw.cat([x] * batch)[: batch + 1]
        with fw.no_grad():
            wanted = model(x)
        given = ready(x)
        for a, b in zip(wanted, given) if isinstance(wanted, tuple) else [(wanted, given)]:
            assert a.shape == b.shape and a.dtype is b.dtype and (a == b).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("name", "shape"), [("cnn", (37, 3, 24, 24)), ("lstm", (21, 50)), ("gru", (5, 61))])
def test_large_batches_are_computed_in_parts(name, shape, threads):
    model, made = exported(name)
    ready = fw.runtime.CompiledModel(made.data)
    x = fw.randn(*shape) if len(shape) == 4 else fw.randint(0, 27, shape)
    before = fw.get_num_threads()
    try:
        fw.set_num_threads(threads)
        fw.runtime.library.set_threads(threads)
        wanted, given = model(x), ready(x)
    finally:
        fw.set_num_threads(before)
        fw.runtime.library.set_threads(before)
    for a, b in zip(wanted, given) if isinstance(wanted, tuple) else [(wanted, given)]:
        assert (a == b).all()


@pytest.mark.parametrize("width, results", [(200, 100), (4096, 60), (8200, 40)])
def test_packed_weights_change_no_number(width, results):
    """Whatever the number of rows, also where a product is sums of many steps or its operand lies turned."""
    model = nn.Linear(width, results).eval()
    made = fw.runtime.export(model, (fw.randn(4, width),), input_names=["input"],
                             dynamic_axes={"input": {0: "rows"}})
    ready = fw.runtime.CompiledModel(made.data)
    for rows in (1, 2, 15, 16, 17, 18, 33, 65, 140, 141):
        x = fw.randn(rows, width)
        for given in (x, x.t().contiguous().t()):
            assert (model(given) == ready(given)).all(), rows


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_steps_in_parts_are_those_of_the_whole(kind):
    """Of inputs so wide that other products of few rows are sums of many steps."""
    model = kind(8200, 5).eval()
    ready = fw.runtime.CompiledModel(fw.runtime.export(model, (fw.randn(390, 1, 8200),)).data)
    x = fw.randn(390, 1, 8200)
    assert (model(x)[0] == ready(x)[0]).all()


class Speech(nn.Module):
    """Recurrent layers over rows of one table, in orders of their own."""

    def __init__(self, cell, rows=30, also=False, dtype=fw.float32, **settings):
        super().__init__()
        self.table, self.also = nn.Embedding(rows, 6, dtype=dtype), also
        self.cells = cell(6, 11, dtype=dtype, **settings)

    def forward(self, x):
        inputs = self.table(x)
        y, _ = self.cells(inputs)
        return y, inputs.sum(-1) if self.also else x


@pytest.mark.parametrize(
    ("settings", "folds"),
    [
        ({"batch_first": True}, True),
        ({"batch_first": False, "bias": False}, True),
        ({"batch_first": True, "bidirectional": True, "num_layers": 2}, True),
        ({"batch_first": True, "also": True}, True),
        ({"batch_first": True, "dtype": fw.float64}, True),
        ({"batch_first": True, "rows": 1}, False),  # whose product is one of vectors, with other sums
        ({"batch_first": True, "rows": 69}, False),  # more than pays
    ],
)
@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_what_gates_get_from_rows_of_a_table_is_computed_once(cell, settings, folds):
    fw.manual_seed(1)
    model = Speech(cell, **settings).eval()
    rows, dtype = len(model.table.weight), settings.get("dtype", fw.float32)
    made = fw.runtime.export(
        model, fw.randint(0, rows, (3, 4)), dynamic_axes={"x": {0: "batch", 1: "length"}}, input_names=["x"]
    )
    ready = fw.runtime.CompiledModel(made.data)
    constants = ready.nbytes
    for shape in [(3, 4), (1, 1), (1, 9), (40, 17), (2, 1), (33, 1), (1, 2)]:
        x = fw.randint(0, rows, shape)
        with fw.no_grad():
            for wanted, given in zip(model(x), ready(x)):
                assert wanted.shape == given.shape and (wanted == given).all()
    layers = sum("weight_ih_l0" in name for name, _ in model.cells.named_parameters())
    gates = len(model.cells.weight_ih_l0)
    of_table = rows * gates * layers * (8 if dtype is fw.float64 else 4)
    others = fw.runtime.CompiledModel(made.data)
    others(fw.randint(0, rows, (1, 1)))  # whose product is one of vectors
    assert others.nbytes > constants
    assert ready.nbytes - others.nbytes == of_table * (folds and cell is not nn.RNN)
    for wrong in (rows, -rows - 1):
        x = fw.zeros(5, 4, dtype=fw.int64)
        x[3, 2] = wrong
        with pytest.raises(RuntimeError, match=f"the position {wrong} in a table of {rows} rows"):
            ready(x)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize(
    ("channels", "rows", "groups", "size"),
    [(4, 32, 1, (13, 9)), (4, 32, 2, (13, 9)), (16, 32, 1, (14, 10)), (17, 48, 1, (14, 64)),
     (19, 32, 1, (14, 11)), (3, 16, 1, (28, 28)), (16, 16, 1, (14, 16)),
     (32, 48, 1, (14, 14)), (65, 64, 1, (16, 18))],
)
def test_the_largest_of_squares_of_a_convolution(relu, channels, rows, groups, size):
    """Found before they are written where that may be: of equal ones the first, or the first nan."""
    conv = nn.Conv2d(channels, rows, 3, padding=1, groups=groups)
    with fw.no_grad():
        conv.weight[5], conv.bias[5] = 0.0, -0.0
    model = nn.Sequential(conv, *[nn.ReLU()] * relu, nn.MaxPool2d(2)).eval()
    made = fw.runtime.export(
        model, fw.randn(2, channels, *size), dynamic_axes={"input": {0: "batch"}}, input_names=["input"]
    )
    ready = fw.runtime.CompiledModel(made.data)
    for batch in (1, 6, 33):
        x = fw.randn(batch, channels, *size)
        x[0, 1, 4, 3], x[0, 2, 9, 7], x[batch - 1, 0, 12, 2] = float("nan"), float("inf"), float("-inf")
        with fw.no_grad():
            wanted = model(x)
        assert wanted.isnan().any() and ready(x).numpy().tobytes() == wanted.numpy().tobytes()


def test_kernels_packed_for_images_of_one_size_are_not_read_for_another():
    """Lines of tiles that leave lanes empty, single images, odd sizes: each may order them in another way."""
    layers = [nn.Conv2d(c, rows, 3, padding=1) for c, rows in ((3, 16), (16, 32), (32, 64))]
    model = nn.Sequential(layers[0], nn.MaxPool2d(2), layers[1], nn.ReLU(), nn.MaxPool2d(2), layers[2]).eval()
    made = fw.runtime.export(model, fw.randn(2, 3, 28, 28), input_names=["input"],
                             dynamic_axes={"input": {0: "batch", 2: "h", 3: "w"}})
    ready = fw.runtime.CompiledModel(made.data)
    for n, high, wide in ((1, 28, 28), (8, 28, 28), (1, 64, 64), (3, 30, 62), (2, 33, 29), (9, 128, 130)):
        x = fw.randn(n, 3, high, wide)
        with fw.no_grad():
            assert (ready(x) == model(x)).all()


def test_elementwise_programs_broadcast_mix_and_transpose():
    def f(x, y):
        z = (x.transpose(0, 1) * 2 + y).exp() - 1
        return fw.where(z > 0.5, z, -z), x > 0.5, x.sqrt(), fw.floor(y) + 0.25

    x, y = fw.rand(4, 3), fw.rand(4)
    made = fw.runtime.export(f, (x, y))
    assert len(made.checked) == 1


def test_inputs_may_lie_anyhow_and_must_fit(tmp_path):
    path = tmp_path / "model.fwk"
    model, _ = exported("mlp", path)
    ready = fw.runtime.load(path)
    assert "float32" in repr(ready) and ready.inputs == [("input", "float32", (None, 9))]
    x = fw.randn(9, 6).T[::2]
    with fw.no_grad():
        assert (ready(x) == model(x)).all()
    for wrong, why in [
        ((fw.randn(2, 8),), "dimension 1 is 8"),
        ((fw.randn(9),), "number of dimensions"),
        ((fw.randn(2, 9).double(),), "another type"),
        ((), "takes 1 inputs .input., got 0"),
        ((fw.randn(0, 9),), "a size of 0"),
    ]:
        with pytest.raises(RuntimeError, match=why):
            ready(*wrong)
    with pytest.raises(TypeError, match="input 0 must be a Tensor, got .*ndarray"):
        ready(x.numpy())


def test_what_no_trace_follows_is_an_error_of_export():
    with pytest.raises(fw.runtime.ExportError, match=r"^runtime\.export: bool\(\), a condition reads"):
        fw.runtime.export(lambda x: x if x.sum() > 0 else -x, fw.randn(3))
    with pytest.raises(ValueError, match=r"^runtime\.export: dynamic_axes names 'y'"):
        fw.runtime.export(lambda x: x, fw.randn(3), dynamic_axes={"y": {0: "n"}})


def test_weights_are_packed_once_for_all_requests():
    model, made = exported("mlp")
    ready = fw.runtime.CompiledModel(made.data)
    constants = ready.nbytes
    assert constants >= sum(p.numel() * 4 for p in model.parameters())
    ready(fw.randn(64, 9))
    packed = ready.nbytes
    assert constants < packed <= 20 * constants
    ready(fw.randn(65, 9))
    assert ready.nbytes == packed


def test_positions_behind_a_table_are_an_error():
    _, made = exported("gpt")
    ready = fw.runtime.CompiledModel(made.data)
    with pytest.raises(RuntimeError, match="the position 27 in a table of 27 rows"):
        ready(fw.full((1, 3), 27))
    ready(fw.zeros(1, 3, dtype=fw.int64))


def test_several_requests_at_once_share_nothing():
    model, made = exported("gpt")
    ready = fw.runtime.CompiledModel(made.data)
    inputs = [fw.randint(0, 27, (2, n)) for n in range(3, 9)]
    with fw.no_grad():
        wanted = [model(x) for x in inputs]
    wrong = []

    def serve(i):
        for _ in range(20):
            if not (ready(inputs[i]) == wanted[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=serve, args=(i,)) for i in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_damaged_files_are_refused():
    _, made = exported("linear")
    rng = np.random.default_rng(3)
    for size in range(0, len(made.data), 3):
        with pytest.raises(CheckpointError):
            fw.runtime.CompiledModel(made.data[:size])
    for _ in range(300):
        data = bytearray(made.data)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        with pytest.raises(CheckpointError):
            fw.runtime.CompiledModel(bytes(data))
    with pytest.raises(CheckpointError, match="version 9"):
        fw.runtime.CompiledModel(made.data[:8] + b"\x09" + made.data[9:])


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "model.fwk"
    with pytest.raises(fw.runtime.ExportError, match=r"(?s)2 operations.*inv.*test_runtime.*det"):
        fw.runtime.export(lambda x: x.inverse() + x.det(), fw.eye(4), path)
    assert list(tmp_path.iterdir()) == []
    exported("linear", path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.fwk"]


def compiled(tmp_path, source):
    program = tmp_path / source.partition(".")[0]
    standard = "-std=c++17" if source.endswith("cpp") else "-std=c99"
    done = subprocess.run(
        [
            compiler("c++" if source.endswith("cpp") else "cc"),
            "-Wall",
            "-Wextra",
            "-Werror",
            standard,
            SOURCES / source,
            f"-I{SOURCES}",
            f"-I{SOURCES.parent}",
            f"-L{LIBRARY.parent}",
            "-lframework",
            f"-Wl,-rpath,{LIBRARY.parent}",
            "-o",
            program,
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return program


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def photo():
    """A photo as (height, width, 3) bytes: that of scikit-learn, or made up."""
    try:
        from sklearn.datasets import load_sample_image

        return np.ascontiguousarray(load_sample_image("china.jpg"))
    except ImportError:
        y, x = np.mgrid[:90, :120]
        return np.stack([x * 2, y * 2, (x * y) % 256], -1).astype(np.uint8)


ALPHABET, PROMPT, LETTERS = "abcdefghijklmnopqrstuvwxyz ", "once upon", 40


def write_for_examples(folder):
    """What classify.c and generate.cpp are given besides the models "cnn" and "gpt"; the photo's pixels."""
    pixels = photo()
    height, width, _ = pixels.shape
    (folder / "photo.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels.tobytes())
    (folder / "labels.txt").write_text("".join(f"class {i}\n" for i in range(10)))
    (folder / "characters.txt").write_text(ALPHABET)
    return pixels


def classified(model, pixels):
    """The five best classes of a photo and their scores, best first."""
    height, width, _ = pixels.shape
    side = min(height, width)
    rows = np.arange(24) * side // 24
    cut = pixels[(height - side) // 2 + rows][:, (width - side) // 2 + rows].astype(np.float32) / np.float32(
        255
    )
    with fw.no_grad():
        scores = model(fw.from_numpy(np.ascontiguousarray(cut.transpose(2, 0, 1)[None]))).numpy()[0]
    order = np.argsort(-scores, kind="stable")[:5]
    return order.tolist(), scores[order].tolist()


def said_classes(text):
    """The classes and scores that classify.c printed."""
    lines = [line.split() for line in text.splitlines()]
    return [int(line[1]) for line in lines], [float.fromhex(line[3]) for line in lines]


def generated(model):
    """The text that a model goes on with."""
    text = [ALPHABET.index(c) for c in PROMPT]
    with fw.no_grad():
        for _ in range(LETTERS):
            text.append(int(model(fw.tensor([text]))[0, -1].argmax()))
    return "".join(ALPHABET[i] for i in text) + "\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix compiler")
def test_a_photo_is_classified_in_c(tmp_path):
    program = compiled(tmp_path, "classify.c")
    model, _ = exported("cnn", tmp_path / "cnn.fwk")
    pixels = write_for_examples(tmp_path)
    said = run(program, tmp_path / "cnn.fwk", tmp_path / "photo.ppm", tmp_path / "labels.txt")
    assert said_classes(said) == classified(model, pixels)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix compiler")
def test_text_is_generated_in_cpp(tmp_path):
    program = compiled(tmp_path, "generate.cpp")
    model, _ = exported("gpt", tmp_path / "gpt.fwk")
    write_for_examples(tmp_path)
    said = run(program, tmp_path / "gpt.fwk", tmp_path / "characters.txt", PROMPT, str(LETTERS))
    assert said == generated(model)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a Unix compiler")
def test_framework_run_reads_and_writes_npy(tmp_path):
    program = compiled(tmp_path, "run.cpp")
    model, _ = exported("lstm", tmp_path / "lstm.fwk")
    x = fw.randint(0, 50, (3, 6))
    np.save(tmp_path / "x.npy", x.numpy())
    run(program, tmp_path / "lstm.fwk", tmp_path / "x.npy", "--out", tmp_path / "y", "--threads", "1")
    with fw.no_grad():
        for i, wanted in enumerate(model(x)):
            assert (np.load(tmp_path / f"y{i}.npy") == wanted.numpy()).all()
    failed = subprocess.run([program, tmp_path / "x.npy"], capture_output=True, text=True)
    assert failed.returncode == 1 and "not a model file" in failed.stderr


def test_models_run_where_the_extra_of_bfloat16_is_missing(tmp_path):
    """The base install has NumPy and tqdm alone; the import of ``runtime`` asked for ml_dtypes."""
    program = f"""
import sys
sys.modules["ml_dtypes"] = None
import framework as fw
from framework import runtime
model, x = fw.nn.Linear(3, 2), fw.ones(1, 3)
runtime.export(model, (x,), {str(tmp_path / "it.fwk")!r})
assert runtime.load({str(tmp_path / "it.fwk")!r})(x).equal(model(x)) and fw.dtypes.plain
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
