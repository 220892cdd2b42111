"""Every workload of the benchmarks runs, computes what PyTorch computes, and its report can be read."""

import json
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import framework as fw
from benchmarks import __main__ as command
from benchmarks import ops, report, runner, workloads  # noqa: F401
from benchmarks.processes import Process, measurements, without_kernels
from benchmarks.workload import REGISTRY, Case, weights, workload

PEAK = {"flops": 1e9, "bytes": 1e9}


@pytest.mark.parametrize("name", REGISTRY)
def test_workload_runs_and_agrees_with_itself(name):
    work = REGISTRY[name]
    first, second = work.cases([fw, fw], tiny=True)
    hand = work.numpy_case(tiny=True)
    every = [first, second, *([hand] if hand else [])]
    runner.agree(["framework", "framework again", "NumPy"][:len(every)], every, work.tolerance)
    assert first.calls >= 1 and first.flops >= 0 and first.bytes >= 0
    first.run()     # a second run: what the first changed does not stop it


@pytest.mark.parametrize("name", REGISTRY)
def test_workload_agrees_with_torch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the compare extra brings it)")
    work = REGISTRY[name]
    cases = work.cases([fw, torch], tiny=True)
    runner.agree(["framework", "torch"], cases,
                 work.tolerance if work.family == "mixed" else min(work.tolerance, 2e-3))
    assert (cases[0].flops, cases[0].bytes, cases[0].note) == (cases[1].flops, cases[1].bytes, cases[1].note)


def test_workload_with_kinks_is_compared_in_float64_too(monkeypatch):
    work = REGISTRY["resnet20-step"]
    assert work.kinks
    runner.agree_in_double(work, [fw, fw], tiny=True)
    assert fw.get_default_dtype() is fw.float32
    seen = []
    monkeypatch.setattr(runner, "arrays", lambda case: [np.full(3, 1 + 1e-9 * len(seen)), seen.append(1)][:1])
    with pytest.raises(runner.Disagree, match="array 0: framework and framework differ by 1e-09"):
        runner.agree_in_double(work, [fw, fw], tiny=True)
    assert fw.get_default_dtype() is fw.float32


JAX = """
import framework as fw
from benchmarks import compiled, runner, workloads
from benchmarks.workload import REGISTRY
for name, build in compiled.CASES.items():
    work = REGISTRY[name]
    case, = work.cases([fw], tiny=True)
    runner.agree(["framework", name], [case, build(**work.tiny)], work.tolerance)
"""


@pytest.mark.skipif(not find_spec("jax"), reason="JAX is not installed (the compare extra brings it)")
def test_what_is_written_for_jax_computes_the_workloads():
    """In a process of its own: JAX has threads, and warns of every fork after."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", JAX], cwd=Path(__file__).parents[1],
                          capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("name", [n for n, w in REGISTRY.items() if w.built_in])
def test_built_in_layers_compute_what_the_cell_by_hand_computes(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the compare extra brings it)")
    work = REGISTRY[name]
    shapes = [[tuple(a.shape) for a in runner.arrays(work.build(torch, **work.tiny, built_in=flag))[:1]]
              for flag in (False, True)]
    assert shapes[0] == shapes[1]
    assert work.build(torch, **work.tiny, built_in=True).note.startswith("nn.")


def test_every_workload_is_named_described_and_listed_once():
    for name, work in REGISTRY.items():
        assert name == work.name == name.lower() and " " not in name and "_" not in name
        assert work.what and len(work.what) < 110, name
    assert not set(REGISTRY) & set(measurements())
    steps = [n for n, w in REGISTRY.items() if w.training]
    assert {"mlp-step", "cnn-step", "resnet20-step", "conv3x3-step", "lstm-step", "gpt-step"} <= set(steps)
    assert all(f"memory-{n}" in measurements() for n in steps)
    with pytest.raises(ValueError, match="two workloads are named 'mlp-step'"):
        workload("mlp-step", tiny={})(lambda M: None)


@pytest.mark.parametrize("other, says", [
    (lambda: [np.float32([1.0, 2.1])], "differ by 0.1"),
    (lambda: [np.float32([1.0, np.nan])], "not finite"),
    (lambda: [np.float64([1.0, 2.0])], "float64"),
    (lambda: [np.float32([[1.0, 2.0]])], r"\[1, 2\]"),
    (list, "1 arrays, other 0"),
])
def test_different_work_is_refused(other, says):
    same = Case(lambda: [np.float32([1.0, 2.0])], list)
    runner.agree(["one", "same"], [same, same], 1e-3)
    with pytest.raises(runner.Disagree, match=says):
        runner.agree(["one", "other"], [same, Case(other, list)], 1e-3)


def test_weights_depend_on_name_and_shape_only():
    assert np.array_equal(weights("0.weight", (3, 2)), weights("0.weight", (3, 2)))
    assert not np.array_equal(weights("0.weight", (3, 2)), weights("1.weight", (3, 2)))
    assert abs(weights("norm.weight", (1000,)).mean() - 1) < 0.02


def test_flops_are_counted():
    step, = REGISTRY["mlp-step"].cases([fw], tiny=True)
    # forward 2 m n k each; backward twice that, but no gradient of the data
    assert step.flops == 2 * 8 * (3 * (12 * 16 + 16 * 16 + 16 * 4) - 12 * 16)
    conv, = REGISTRY["conv3x3-step"].cases([fw], tiny=True)
    assert conv.flops == 3 * 2 * 2 * 36 * 4 * 4 * 9


def test_ratios_and_quartiles():
    found = runner.summary(["a", "b", "hand"], [[1.0, 2.0, 9.0], [3.0, 2.0, 9.0], [2.0, 2.0, 9.0]])
    assert found["median"] == {"a": 2.0, "b": 2.0, "hand": 9.0}
    assert found["ratio"] == [0.75, 1.0, 1.25]
    assert runner.quartiles([5.0]) == [5.0, 5.0, 5.0]


def test_rounds_alternate_the_order(monkeypatch):
    called = []
    monkeypatch.setattr(runner, "SETTLE", 0)
    rows = runner.alternate([lambda: called.append("a"), lambda: called.append("b")], runner.Plan(2, 0))
    assert len(rows) == 2 and all(t > 0 for row in rows for t in row)
    assert called == list("aabb" + "aabb" + "bbaa")


def test_a_run_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runner.compiled, "CASES", {})   # no JAX in this process: it warns of forks
    monkeypatch.setattr(runner, "SETTLE", 0)
    monkeypatch.setattr(runner, "peak", lambda *_: dict(PEAK))
    threads = fw.get_num_threads()
    names = ["add-chain-forward", "mlp-batch-1", "softmax"]
    monkeypatch.setattr(runner, "measure", lambda *a, was=runner.measure: was(*a, tiny=True))
    run = command.run(names, [fw, fw], runner.Plan(1, 0), threads)
    assert [row["name"] for row in run["rows"]] == names and not any("failed" in r for r in run["rows"])
    files = [str(tmp_path / n) for n in ("table.md", "bars.svg", "history.jsonl")]
    report.write(run, *files)
    report.write(run, None, None, files[2])
    table = (tmp_path / "table.md").read_text()
    assert all(f"| {n} |" in table for n in names) and "GFLOP/s" in table
    assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1
    page = tmp_path / "page.md"
    page.write_text(f"above\n{report.START}\nold\n{report.END}\nbelow\n")
    report.write(run, str(page), None, None)
    assert page.read_text() == f"above\n{report.START}\n\n{table}\n{report.END}\nbelow\n"
    drawn = ElementTree.fromstring((tmp_path / "bars.svg").read_text())
    assert len(drawn.findall("{*}rect")) == 1 + len(names)
    history = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert len(history) == 2 and history[0] == json.loads(json.dumps(run))
    assert "ratio" in capsys.readouterr().out


def test_one_module_alone_is_reported_without_ratios(monkeypatch):
    monkeypatch.setattr(runner, "SETTLE", 0)
    monkeypatch.setattr(runner, "peak", lambda *_: dict(PEAK))
    monkeypatch.setattr(runner, "measure", lambda *a, was=runner.measure: was(*a, tiny=True))
    run = command.run(["softmax"], [fw], runner.Plan(1, 0), fw.get_num_threads())
    assert "| workload | what | framework | % of peak |" in report.markdown(run)
    assert len(ElementTree.fromstring(report.picture(run)).findall("{*}rect")) == 1


def test_a_workload_that_fails_is_a_row(monkeypatch, capsys):
    monkeypatch.setattr(runner, "peak", lambda *_: dict(PEAK))

    def broken(*_):
        raise runner.Disagree("array 0: a and b differ")
    monkeypatch.setattr(runner, "measure", broken)
    run = command.run(["softmax"], [fw, fw], runner.Plan(1, 0), fw.get_num_threads())
    assert run["rows"] == [{"name": "softmax", "failed": "Disagree: array 0: a and b differ"}]
    assert "failed" in report.markdown(run) and "FAILED" in capsys.readouterr().out


def test_fresh_processes_measure():
    numbers = iter([1.0, 4.0, 2.0, 8.0, 5.0, 3.0])
    asked = []

    def number(name):
        asked.append(name)
        return next(numbers)
    found = Process("x", "something", "s", number, with_numpy=True).measure(["a", "b"], 2)
    assert asked == ["a", "b", "numpy", "numpy", "b", "a"]
    assert found["median"] == {"a": 2.0, "b": 4.5} and found["beside"] == {"NumPy by hand": 5.0}
    assert found["ratio"][1] == (1 / 4 + 3 / 5) / 2
    assert 0 < measurements()["import"].number("framework") < 600
    assert 0 < without_kernels("framework", "mlp-batch-1", 1) < 600


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peak memory is read from Linux")
def test_peak_memory_of_a_step():
    assert 1e5 < measurements()["memory-lstm-step"].number("framework") < 1e9


def test_the_page_names_workloads_that_exist():
    page = (Path(__file__).parents[1] / "docs" / "performance.md").read_text()
    table = page.partition(report.START)[2].partition(report.END)[0]
    named = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    assert named and not set(named) - set(REGISTRY) - set(measurements())
    assert all(f"benchmarks/{name}.py" in page for name in ("overhead", "loader", "checkpoint"))


def test_amounts():
    shown = [report.amount(x, "s") for x in (2.0, 0.0123, 4.56e-6, 7e-9)]
    assert shown == ["2 s", "12.3 ms", "4.56 us", "7 ns"]
    assert report.amount(3.2e7, "B") == "32 MB"


def test_methods_in_place_beside_pytorch(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with (the compare extra)")
    from benchmarks import in_place

    monkeypatch.setattr(in_place, "CALLS", 1)
    found, refused = in_place.measured(torch, rounds=1)
    calls = {shown for _, shown, *_ in found}
    assert {"add_(like) of float", "t_() of int", "clamp_(0.1, 0.9) of float"} <= calls
    assert all(ours > 0 and theirs > 0 for _, _, ours, theirs in found) and not calls & set(refused)


def test_command_line(capsys):
    assert command.main(["--list", "--only", "language", "import"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == ["lstm-step", "lstm-cell-loop", "gpt-step", "import"]
    with pytest.raises(SystemExit, match="no workload or family 'nothing'"):
        command.main(["--only", "nothing"])


def test_examples_run_beside_pytorch_and_fill_a_page(tmp_path, capsys):
    from benchmarks import examples

    page = tmp_path / "page.md"
    page.write_text("| [modular.py](modular.py) | shows | made | - | - | - | - |\n| other |\n")
    beside = ["--vs", "torch"] if find_spec("torch") else []
    assert examples.main(["--only", "modular", "--quick", "--page", str(page), *beside]) == 0
    cells = page.read_text().splitlines()[0].strip("| ").split(" | ")
    assert cells[1:3] == ["shows", "made"] and cells[3].startswith("one deeper") and cells[4].endswith(" s")
    assert cells[5].startswith("one deeper") if beside else cells[5:] == ["-", "-"]
    assert page.read_text().endswith("| other |\n") and "modular" in capsys.readouterr().out


def test_models_on_their_way_out():
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    if fw._native.module is None:
        pytest.skip("the runtime without Python is made of the native kernels")
    from benchmarks import onnx_models, ship
    threads, name = fw.get_num_threads(), "MLP 784-256-128-10"
    found = ship.measured(name, *onnx_models.MODELS[name], None, 0.01)
    assert fw.get_num_threads() == threads and found["onnx"]["equal"] == 3 and found["onnx"]["off"] < 1e-4
    assert all(found["ms"][str(n)][k] > 0 for n in ship.BATCHES for k in ("eager", "ONNX Runtime"))
    head, rule, row = ship.table([found]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") and row.startswith(f"| {name} | 3 sizes |")
    assert "PyTorch" not in head  # nothing was measured there


def test_table_of_ops_is_gone_on_with(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the compare extra brings it)")
    monkeypatch.setattr(ops, "limit_memory", lambda: None)     # it would hold for the rest of the tests
    rows = str(tmp_path / "rows")

    def measured(names, layouts):
        return {t.kind for t in ops.main(fw, torch, names, ["tiny", "cache"], ["float32"], layouts,
                                         list(ops.WAYS), rounds=1, seconds=1e-4, threads=1, rows=rows)}

    first = measured(["add"], ["plain", "transposed", "broadcast"])
    assert {(k.size, k.layout) for k in first} == {(s, y) for s in ("tiny", "cache")
                                                   for y in ("plain", "transposed", "broadcast")}
    assert {k.way for k in first if k.name == "add"} == set(ops.WAYS)
    pooled = measured(["max_pool2d"], ["channels-last"]) - first
    assert {(k.name, k.size) for k in pooled} >= {("nn.functional.max_pool2d", s) for s in ("tiny", "cache")}
    monkeypatch.setattr(ops, "timed", lambda *_: pytest.fail("what the file has was measured again"))
    assert measured(["add"], ["plain"]) == first | pooled
    assert f"{len(first | pooled)} rows" in capsys.readouterr().out


def test_left_out_rows_are_of_ops_that_there_are():
    names = set(map(ops._table()[1], ops._table()[0]))
    for (name, layout), reason in ops.LEFT_OUT.items():
        assert name in names and layout in ops.LAYOUTS and reason


def test_calls_of_other_shapes():
    from benchmarks import shapes
    assert len(shapes.lines()) > 1000 and len(set(shapes.lines())) == len(shapes.lines())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in shapes.lines()[::5]:
            shapes.call_of(line, fw)()


def test_calls_of_other_shapes_beside_pytorch():
    torch = pytest.importorskip("torch")
    from benchmarks import shapes
    found = list(shapes.measured(fw, torch, "x.abs().max()"))
    assert [row.kind.name for row in found] == ["x=R(10) :: x.abs().max()"]
    assert found[0].ratio == found[0].ours / found[0].theirs > 0
