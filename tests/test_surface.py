"""Names that programs of PyTorch use here and there: futures, operators by space, pipes, tables of times."""

import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import framework as fw
from framework.nn.attention import bias, flex_attention
from framework.utils import benchmark
from framework.utils.data.datapipes import iter as pipes
from framework.utils.data.datapipes import map as maps
from framework.utils.data.graph_settings import apply_random_seed, apply_sharding, apply_shuffle_settings


def test_futures_carry_results_and_exceptions_between_threads():
    one, two = fw.futures.Future(), fw.futures.Future()
    chained = one.then(lambda done: done.value() + 1)
    threading.Timer(0.01, lambda: one.set_result(1)).start()
    assert not two.done() and chained.wait() == 2 and one.done()
    with pytest.raises(RuntimeError, match="already"):
        one.set_result(2)
    with pytest.raises(RuntimeError, match="no result yet"):
        two.value()
    failing = two.then(lambda done: done.value())
    two.set_exception(KeyError("gone"))
    for future in (two, failing):
        with pytest.raises(KeyError, match="gone"):
            future.wait()
    with pytest.raises(KeyError, match="gone"):
        fw.futures.wait_all([one, two])
    assert fw.futures.collect_all([]).wait() == [] and fw.futures.wait_all([one, one]) == [1, 1]


def test_operators_by_space_and_name():
    aten = fw.ops.aten
    assert aten.add.Tensor is aten.add.Tensor and aten.add.default.overloadpacket is aten.add
    assert aten.add.Tensor(fw.ones(2), fw.ones(2), alpha=2).tolist() == [3, 3]
    assert aten.add.Tensor.name() == "aten::add.Tensor" and aten.t.default(fw.ones(1, 2)).shape == (2, 1)
    x, w = fw.randn(1, 2, 5, 5), fw.randn(3, 2, 2, 2)
    got = aten.convolution.default(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert fw.equal(got, fw.nn.functional.conv2d(x, w, padding=1))
    for ask in (lambda: aten.no_such, lambda: aten.add.no_such, lambda: fw.ops.nobody.has_this):
        with pytest.raises(AttributeError, match="no_such|has_this"):
            ask()
    with pytest.raises(OSError, match="custom_op"):
        fw.ops.load_library("x.so")
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        _ = fw.classes.mine.Stack


def test_libraries_register_operators_by_pieces():
    lib = fw.library.Library("surface", "DEF")
    assert lib.define("shift(Tensor x, float by) -> Tensor") == "shift"
    op = fw.ops.surface.shift
    with pytest.raises(NotImplementedError, match="no kernel"):
        op(fw.ones(2), 1.0)
    fw.library.impl("surface::shift", "cpu", lambda x, by: x + by, lib=lib)
    lib.impl("shift", fw.empty_like, "Meta")
    assert op(fw.ones(2), 1.0).tolist() == [2, 2] and op.default(fw.ones(2), 2.0).tolist() == [3, 3]
    wrong = fw.library.opcheck(op, (fw.ones(2), 1.0), raise_exception=False)
    assert wrong["test_schema"] == "SUCCESS" and "TypeError" in wrong["test_faketensor"]
    lib.impl("shift", lambda x, by: fw.empty_like(x), "Meta")
    assert set(fw.library.opcheck(op, (fw.ones(2, requires_grad=True), 1.0)).values()) == {"SUCCESS"}
    lib.impl("shift", lambda x, by: x.mul_(by), "CPU")
    with pytest.raises(RuntimeError, match="changes an argument"):
        fw.library.opcheck(op, (fw.ones(2), 3.0), test_utils="test_schema")
    lib.impl("shift", lambda x, by: x - by, "Autograd")
    assert op(fw.ones(1), 1.0).tolist() == [0]
    for call, error in (
        (lambda: fw.library.Library("aten", "IMPL"), "not replaced"),
        (lambda: lib.impl("other", abs, "CPU"), "no operator"),
        (lambda: lib.impl("shift", abs, "MTIA"), "no dispatch key"),
        (lambda: fw.library.define("plain", "() -> ()"), "space::name"),
    ):
        with pytest.raises(ValueError, match=error):
            call()
    for refused in (fw.library.get_ctx, lambda: fw.library.wrap_triton(None)):
        with pytest.raises(RuntimeError):
            refused()

    @fw.library.triton_op("surface::plain", mutates_args=())
    def plain(x):
        return x * 2

    x = fw.ones(1, requires_grad=True)
    plain(x).backward()
    assert x.grad.tolist() == [2] and plain._name == "surface::plain"


def test_pipes_of_streams():
    numbers = pipes.IterableWrapper(range(10))
    even, odd = numbers.demux(2, lambda x: x % 2)
    assert list(even) == [0, 2, 4, 6, 8] and list(odd) == [1, 3, 5, 7, 9] and list(odd) == [1, 3, 5, 7, 9]
    a, b = numbers.fork(2, buffer_size=2)
    assert list(zip(a, b)) == [(i, i) for i in range(10)]
    with pytest.raises(BufferError, match="buffer_size"):
        list(a)
    assert list(numbers.groupby(lambda x: x % 3, group_size=2)) == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    assert list(numbers.batch(4).batch(2).unbatch(-1)) == list(range(10)) and len(numbers.batch(4, True)) == 2
    pairs = numbers.zip(numbers.map(lambda x: -x))
    assert list(pairs.map(lambda x: x + 1, input_col=0).filter(lambda x: x > 8, input_col=0)) == [
        (9, -8),
        (10, -9),
    ]
    assert list(pairs.map(lambda x, y: x - y, input_col=[0, 1], output_col=-1))[3] == (3, -3, 6)
    assert list(numbers.mux(numbers.map(abs)))[:4] == [0, 0, 1, 1] and len(numbers.concat(numbers)) == 20
    order = [list(numbers.shuffle(buffer_size=4).set_seed(seed)) for seed in (0, 0, 1)]
    assert order[0] == order[1] != order[2] and sorted(order[0]) == list(range(10))
    chain = numbers.shuffle().sharding_filter().batch(2)
    apply_shuffle_settings(chain, shuffle=False)
    apply_sharding(chain, 3, 1)
    assert list(chain) == [[1, 4], [7]]
    apply_shuffle_settings(chain, shuffle=True)
    apply_random_seed(chain, fw.Generator().manual_seed(0))
    assert list(apply_shuffle_settings(numbers, True).set_seed(0)) != list(range(10))
    batches = list(fw.data.DataLoader(numbers.map(float).batch(5).collate(), batch_size=None))
    assert [x.tolist() for x in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(ValueError, match="taken"):
        fw.utils.data.functional_datapipe("batch")(pipes.Batcher)


def test_pipes_of_files_and_by_index(tmp_path):
    for name in ("a.txt", "b.txt", "c.bin"):
        (tmp_path / name).write_text(name * 2)
    files = pipes.FileLister(str(tmp_path), "*.txt")
    assert [path[-5:] for path in files] == ["a.txt", "b.txt"]
    texts = files.open_files().read_from_stream()
    assert [text for _, text in texts] == ["a.txta.txt", "b.txtb.txt"]
    assert [piece for _, piece in pipes.FileOpener(list(files)).read_from_stream(chunk=6)][:2] == [
        "a.txta",
        ".txt",
    ]
    pipe = maps.SequenceWrapper([3, 1, 2]).map(lambda x: 10 * x)
    assert pipe.batch(2)[1] == [20] and pipe.zip(pipe)[0] == (30, 30) and pipe.concat(pipe)[4] == 10
    assert sorted(pipe.shuffle()) == [10, 20, 30] and list(pipe.shuffle(indices=[1])) == [10]
    with pytest.raises(IndexError):
        pipe.batch(2)[2]


def test_benchmarks_are_compared_in_tables():
    made = [
        benchmark.Measurement(1, times, benchmark.TaskSpec("f", sub_label=row, description=column))
        for row, column, times in (("a", "x", [1e-3]), ("b", "x", [2e-3]), ("a", "y", [1e-3, 5e-3, 9e-3]))
    ]
    table = benchmark.Compare(made)
    lines = str(table).splitlines()
    assert "|   x   |   y" in lines[1] and lines[3].split() == ["a", "|", "1.0", "|", "5.0"]
    assert lines[4].split() == ["b", "|", "2.0", "|"] and lines[-1] == "Times are in milliseconds (ms)."
    table.highlight_warnings()
    table.colorize(rowwise=True)
    text = str(table)
    assert "(! 80%) 5.0" in text and "\033[92m" in text and "\033[31m" not in text
    merged = benchmark.Measurement.merge([made[0], made[0], made[1]])
    assert [len(m.times) for m in merged] == [2, 1] and made[2].significant_figures == 1
    with pytest.raises(ValueError, match="Measurements"):
        benchmark.Compare([1])
    with pytest.raises(ValueError, match="C\\+\\+"):
        benchmark.Timer("x + y;", language=benchmark.Language.CPP)


def test_operands_are_drawn_by_rules():
    from framework.utils.benchmark.op_fuzzers.binary import BinaryOpFuzzer
    from framework.utils.benchmark.op_fuzzers.unary import UnaryOpFuzzer

    sets = [
        [
            (t["x"].shape, t["y"].shape, about["x"]["is_contiguous"])
            for t, about, _ in BinaryOpFuzzer(seed=3, most=1 << 12).take(4)
        ]
        for _ in range(2)
    ]
    assert sets[0] == sets[1]
    for x, y, _ in sets[0]:
        assert np.broadcast_shapes(x, y) and len(x) == len(y)
    assert isinstance(UnaryOpFuzzer(seed=0)._draw(np.random.RandomState(0))["k0"], int)
    impossible = benchmark.Fuzzer(
        [benchmark.FuzzedParameter("n", 1, 2, "uniform")], [], [lambda n: n > 2], seed=0
    )
    with pytest.raises(RuntimeError, match="none of 1000"):
        next(impossible.take(1))
    assert impossible.rejection_rate == 1
    with pytest.raises(ValueError, match="distribution"):
        benchmark.FuzzedParameter("n", 1, 2, "normal")


def test_flex_attention_is_its_formula():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s) for s in ((2, 4, 20, 8), (2, 2, 24, 8), (2, 2, 24, 5)))
    slopes = fw.arange(4)
    mask = flex_attention.create_block_mask(lambda b, h, i, j: (i > j) | (j < h), 2, 4, 20, 24, BLOCK_SIZE=8)
    out, lse = flex_attention.flex_attention(
        *map(fw.tensor, (q, k, v)),
        lambda s, b, h, i, j: s + slopes[h] * (i - j),
        mask,
        enable_gqa=True,
        return_lse=True,
    )
    heads, rows, columns = (np.arange(n).reshape(s) for n, s in ((4, (4, 1, 1)), (20, (20, 1)), (24, (24,))))
    allowed = (rows > columns) | (columns < heads)
    scores = q @ k.repeat(2, 1).swapaxes(2, 3) / 8**0.5 + heads * (rows - columns)
    weights = np.where(allowed, np.exp(scores), 0)
    total = weights.sum(-1)
    wanted = weights @ v.repeat(2, 1) / np.where(total == 0, 1, total)[..., None]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-9, atol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(lse.numpy(), np.log(total), rtol=1e-9)
    blocks = np.pad(allowed, ((0, 0), (0, 4), (0, 0))).reshape(4, 3, 8, 3, 8).sum((2, 4))
    assert mask.to_dense()[1].tolist() == (blocks > 0).astype(int).tolist()
    partial = (blocks > 0) & (blocks < 64)
    assert mask.kv_num_blocks[0].tolist() == partial.sum(2).tolist()
    assert mask.full_kv_num_blocks[0].tolist() == (blocks == 64).sum(2).tolist()
    assert mask.q_num_blocks[0].tolist() == partial.sum(1).tolist()
    assert fw.equal(mask.allowed()[0], fw.tensor(allowed)) and mask[:, 1:2].shape == (2, 1, 20, 24)


def test_flex_attention_without_changes_is_attention():
    q, k, v = (fw.randn(1, 2, n, 4, dtype=fw.float64, requires_grad=True) for n in (3, 5, 5))
    F = fw.nn.functional
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.causal_lower_right(3, 5))
    mask = flex_attention.create_block_mask(
        lambda b, h, i, j: i + 2 >= j, None, None, 3, 5, BLOCK_SIZE=(2, 1)
    )
    assert fw.allclose(flex_attention.flex_attention(q, k, v, block_mask=mask), wanted)
    assert fw.autograd.gradcheck(
        lambda *a: flex_attention.flex_attention(*a, lambda s, *at: s * s), (q, k, v)
    )
    assert fw.equal(mask.allowed()[0, 0], bias.causal_lower_right(3, 5))
    whole = flex_attention.BlockMask.from_kv_blocks(
        fw.tensor([[[1]]]), fw.tensor([[[[1, 0]]]]), BLOCK_SIZE=(3, 4)
    )
    assert whole.seq_lengths == (3, 8) and whole.allowed()[0, 0].int().sum(1).tolist() == [4, 4, 4]
    nothing = flex_attention.create_block_mask(lambda b, h, i, j: i < 0, 1, 1, 3, 5)
    assert flex_attention.flex_attention(q, k, v, block_mask=nothing).abs().sum() == 0
    either = flex_attention.or_masks(lambda b, h, i, j: i == j, lambda b, h, i, j: j == 0)
    assert flex_attention.create_mask(either, 1, 1, 2, 3).int()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0]]
    for wrong, text in (
        ((q[0], k, v), "must be"),
        ((q, k[:, :1], v[:, :1]), "enable_gqa"),
        ((q, k, v[:, :, :2]), "fit"),
    ):
        with pytest.raises(fw.errors.ShapeError, match=text):
            flex_attention.flex_attention(*wrong)
    assert bias.causal_upper_left(2, 3).int().tolist() == [[1, 0, 0], [1, 1, 0]]


def test_tensors_change_places():
    module = fw.nn.Linear(2, 1)
    held, other = module.weight, fw.nn.Parameter(fw.zeros(1, 2))
    other.note = "mine"
    fw.utils.swap_tensors(held, other)
    assert held.note == "mine" and not hasattr(other, "note") and module.weight.abs().sum() == 0
    module(fw.ones(1, 2)).sum().backward()
    assert held.grad.tolist() == [[1, 1]] and other.grad is None
    base = fw.ones(2)
    view = base[:1]
    with pytest.raises(RuntimeError, match="weakly"):
        fw.utils.swap_tensors(view, fw.ones(1))


def test_sparse_types_of_old():
    x = fw.sparse.DoubleTensor(fw.tensor([[0, 1, 1]]), fw.tensor([1.0, 2.0, 3.0], dtype=fw.float64), (3,))
    assert x.to_dense().tolist() == [1, 5, 0] and isinstance(x, fw.sparse.DoubleTensor)
    assert not isinstance(x, fw.sparse.FloatTensor) and fw.sparse.LongTensor(2, 3).shape == (2, 3)
    with pytest.raises(fw.errors.DTypeError, match="values"):
        fw.sparse.HalfTensor(fw.tensor([[0]]), fw.tensor([1.0]))
    with pytest.raises(RuntimeError, match="to_sparse_csr"):
        fw.sparse.to_sparse_semi_structured(fw.ones(4, 4))


def test_what_files_name():
    file = io.BytesIO()
    fw.save({"w": fw.ones(1)}, file)
    assert fw.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue())) == []
    torch = pytest.importorskip("torch")
    from fractions import Fraction

    file = io.BytesIO()
    torch.save({"w": torch.ones(1), "f": Fraction(1, 2)}, file)
    read = fw.serialization.get_unsafe_globals_in_checkpoint
    assert read(io.BytesIO(file.getvalue())) == ["fractions.Fraction"]
    with fw.serialization.safe_globals([Fraction]):
        assert read(io.BytesIO(file.getvalue())) == []
    with pytest.raises(fw.errors.CheckpointError):
        read(io.BytesIO(b"nothing of the kind"))


def test_small_answers():
    env = fw.utils.collect_env
    assert env.run("exit 3")[0] == 3 and env.run(["no-such-program"])[0] == 127
    assert env.get_gcc_version(lambda c: (0, "gcc (Some) 12.1", "")) == "(Some) 12.1"
    assert env.get_gpu_info(lambda c: (1, "", "")) is None and "CPU:" in env.get_pretty_env_info()
    assert fw.get_device_module("cpu") is fw.cpu and fw.get_device_module("cuda:0") is fw.cuda
    with pytest.raises(RuntimeError, match="no module"):
        fw.get_device_module("meta")
    assert fw.mtia.device_count() == 0 and fw.xpu.get_rng_state_all() == []
    with pytest.raises(fw.errors.DeviceError):
        fw.xpu.set_rng_state_all([fw.get_rng_state()])
    if not fw.cuda.is_available():
        for call in (fw.cuda.cudart, fw.cuda.nccl.version, fw.Stream):
            with pytest.raises(RuntimeError):
                call()
    with pytest.warns(UserWarning, match="no input requires grad"):
        fw.utils.checkpoint.check_backward_validity([fw.ones(1)])
    assert fw.functional.einsum is fw.einsum and isinstance(2, fw.types.Number)
    assert fw.nn.functional.has_torch_function((fw.ones(1),)) is False
    assert isinstance(
        fw.nn.MultiheadAttention(2, 1).out_proj, fw.nn.modules.linear.NonDynamicallyQuantizableLinear
    )
    with pytest.raises(RuntimeError, match="VTune"), fw.autograd.profiler.emit_itt():
        pass
    assert not fw.profiler.kineto_available() and fw.profiler.ProfilerActivity.XPU not in (
        fw.profiler.supported_activities()
    )


def test_names_in_older_places():
    assert fw.autograd.profiler_legacy.profile is fw.profiler.profile
    assert fw.ScriptModule is fw.jit.ScriptModule and "ScriptModule" in dir(fw)


def test_every_module_says_what_a_missing_name_is_about():
    """Under as_torch: the name, what stands closest, and why, whichever module is asked."""
    program = """
import importlib
import torch
places = ("nn nn.functional nn.init nn.utils nn.modules.conv nn.attention.flex_attention optim "
          "utils.data optim.lr_scheduler utils.benchmark utils.cpp_extension "
          "utils.data.datapipes.iter autograd.graph cuda.nccl amp backends.cudnn linalg fft func "
          "fx.proxy hub jit library futures functional distributions.transforms testing "
          "overrides serialization sparse types mtia profiler distributed compiler").split()
for place in places:
    module = importlib.import_module("torch." + place)
    try:
        module.Lineer
    except AttributeError as error:
        assert str(error).startswith(f"torch.{place}.Lineer is not there: "), error
    try:
        exec(f"from torch.{place} import Lineer")
    except ImportError:
        continue
    raise AssertionError(place)
for ask in (lambda: torch.nn.Lineer, lambda: importlib.import_module("torch.quasirandom")):
    try:
        ask()
    except (AttributeError, ImportError) as error:
        print(error)
"""
    command = [sys.executable, "-m", "framework.as_torch", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "torch.nn.Lineer is not there: framework does not have it; closest: torch.nn.Linear",
        "torch.quasirandom is not there: Sobol's numbers need a table that is not here; "
        "scipy.stats.qmc.Sobol draws them",
    ], done.stderr
