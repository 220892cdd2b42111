"""The profiler: what it sees, sums, schedules, writes; and that nothing is left behind."""

import gzip
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

import framework as fw
from framework import nn
from framework import profiler as P
from framework.quiet import quiet


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def training_step(net=None, optimizer=None):
    net = net or Net()
    optimizer = optimizer or fw.optim.SGD(net.parameters(), lr=0.1)
    loss = nn.functional.cross_entropy(net(fw.ones(5, 4)), fw.tensor([0, 1, 2, 0, 1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def rows(averages):
    return {(row.key, row.source): row for row in averages}


def test_forward_backward_and_steps_are_seen():
    with P.profile() as prof:
        training_step()
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts["linear"] == counts["backward linear"] == 2
    assert counts["tanh"] == counts["backward tanh"] == counts["step SGD"] == 1
    assert quiet.run is quiet.plain and not P.recorder.current


def test_times_add_up():
    """What is inside counts for its own name only; the whole is at least the sum of its parts."""
    with P.profile() as prof, P.record_function("outer"):
        x = fw.randn(50, 50)
        for _ in range(5):
            with P.record_function("inner"):
                x = x @ x
    found = {row.key: row for row in prof.key_averages()}
    outer, inner, product = found["outer"], found["inner"], found["matmul"]
    assert inner.count == product.count == 5 and outer.count == 1
    assert product.cpu_time_total <= inner.cpu_time_total <= outer.cpu_time_total
    assert inner.self_cpu_time_total == pytest.approx(inner.cpu_time_total - product.cpu_time_total, abs=0.01)
    assert prof.key_averages().self_cpu_time_total == pytest.approx(outer.cpu_time_total, rel=1e-6)


def test_lines_and_modules_forward_and_backward():
    net = Net()
    with P.profile(with_stack=True, with_modules=True) as prof:
        training_step(net)
    by_module = rows(prof.key_averages(group_by="module"))
    for module, op in (("Net.body.0", "linear"), ("Net.body.1", "tanh"), ("Net.head", "linear")):
        assert by_module[op, module].count == by_module[f"backward {op}", module].count == 1
    lines = {row.source for row in prof.key_averages(group_by="line") if row.key in ("tanh", "backward tanh")}
    assert len(lines) == 1 and re.search(r"test_profiler\.py:\d+$", lines.pop())
    stack = next(span.stack for span in prof.spans if span.name == "tanh")
    assert stack[0].endswith(" forward") and any(line.endswith(" training_step") for line in stack)


def test_shapes():
    with P.profile(record_shapes=True) as prof:
        for n in (2, 3, 2):
            fw.ones(n, 4) @ fw.ones(4, 5)
            fw.cat([fw.ones(1), fw.ones(n)])
    found = {
        row.source: row.count for row in prof.key_averages(group_by_input_shape=True) if row.key == "matmul"
    }
    assert found == {"[(2, 4), (4, 5)]": 2, "[(3, 4), (4, 5)]": 1}


def test_a_failing_op_closes_its_span():
    with P.profile() as prof:
        with P.record_function("outer"), pytest.raises(RuntimeError):
            fw.ones(2) @ fw.ones(3)
        fw.ones(2).sin()
    assert [(s.name, s.depth) for s in prof.spans if s.name in ("outer", "matmul", "sin")] == [
        ("matmul", 1),
        ("outer", 0),
        ("sin", 0),
    ]


def test_bounded():
    with P.profile(limit=10, profile_memory=True) as prof:
        x = fw.ones(100)
        for _ in range(50):
            x = x + 1
    assert len(prof.spans) == 10 and prof.key_averages().dropped >= 40
    assert "older events" in prof.key_averages().table()
    peak, owners = prof.memory_at_peak()
    assert 0 < peak < 3000 and owners


def test_schedule():
    plan = P.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    names = [plan(i).name for i in range(10)]
    assert names == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"] + names[1:5] + ["NONE"]
    seen = []
    with P.profile(
        schedule=plan,
        on_trace_ready=lambda p: seen.append((p.step_num, {row.key: row.count for row in p.key_averages()})),
    ) as prof:
        for _ in range(10):
            fw.ones(2).sin()
            prof.step()
    assert [(step, counts["sin"]) for step, counts in seen] == [(4, 2), (8, 2)]
    assert quiet.run is quiet.plain
    with pytest.raises(ValueError, match="active at least 1"):
        P.schedule(wait=1, warmup=1, active=0)


def test_without_schedule_the_block_is_the_trace(tmp_path):
    handler = P.tensorboard_trace_handler(str(tmp_path / "logs"), "me", use_gzip=True)
    with P.profile(activities=[P.ProfilerActivity.CPU], on_trace_ready=handler):
        training_step()
    (file,) = (tmp_path / "logs").iterdir()
    assert re.fullmatch(r"me\.\d+\.pt\.trace\.json\.gz", file.name)
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]


def test_chrome_trace(tmp_path):
    """Complete events in microseconds that nest, per thread; nothing empty."""
    everything = {"record_shapes": True, "with_stack": True, "with_modules": True, "profile_memory": True}
    with P.profile(**everything) as prof, P.record_function("a part"):
        training_step()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(prof.spans) and {e["ph"] for e in events} == {"M", "X", "C"}
    for e in complete:
        assert e["dur"] >= 0 and e["ts"] >= 0 and e["args"] != {} if "args" in e else True
    ends = []
    for e in sorted(complete, key=lambda e: (e["ts"], -e["dur"])):
        while ends and ends[-1] <= e["ts"]:
            ends.pop()
        assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-3
        ends.append(e["ts"] + e["dur"])
    part = next(e for e in complete if e["name"] == "a part")
    tanh = next(e for e in complete if e["name"] == "tanh")
    assert part["cat"] == "user" and tanh["args"]["module"] == "Net.body.1"
    assert part["ts"] <= tanh["ts"] and tanh["ts"] + tanh["dur"] <= part["ts"] + part["dur"]


def test_flame_graph_and_stacks(tmp_path):
    with P.profile(with_stack=True) as prof:
        for _ in range(3):
            training_step()
    prof.export_stacks(tmp_path / "stacks.txt")
    for line in (tmp_path / "stacks.txt").read_text().splitlines():
        assert re.fullmatch(r".+ \d+", line)
    prof.export_flame_graph(tmp_path / "flame.svg")
    root = ElementTree.fromstring((tmp_path / "flame.svg").read_text())
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any("training_step" in t for t in titles) and any("tanh" in t or "linear" in t for t in titles)
    with P.profile() as plain:
        fw.ones(1).sin()
    with pytest.raises(RuntimeError, match="with_stack=True"):
        plain.export_stacks(tmp_path / "x")


def test_memory_at_the_peak_is_told_by_line():
    def big():
        return fw.ones(1000, 100) * 2

    with P.profile(profile_memory=True, with_stack=True) as prof:
        a = fw.ones(10) + 1
        b = big()
        c = (b + 1).sum()
        del b
        d = fw.ones(20) + c
    peak, owners = prof.memory_at_peak()
    assert 800_000 <= peak <= 1_300_000
    where = {o.place.rpartition(":")[2]: o for o in owners}
    line = big.__code__.co_firstlineno + 1
    assert owners[0].bytes >= 400_000 and where[str(line)].bytes >= 400_000
    assert a.sum().item() == 20 and d.shape == (20,)
    with P.profile() as plain:
        pass
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        plain.memory_at_peak()


def test_table():
    with P.profile() as prof:
        training_step()
    text = prof.key_averages().table(sort_by="count", row_limit=3)
    assert text.count("\n") == 7 and "Self CPU time total" in text
    with pytest.raises(ValueError, match="sort_by must be one of"):
        prof.key_averages().table(sort_by="speed")
    with pytest.raises(ValueError, match="group_by"):
        prof.key_averages(group_by="color")
    with pytest.raises(TypeError, match="unknown arguments"):
        P.profile(colour=1)


def test_record_function_decorates_and_costs_nothing_alone():
    @P.record_function("square")
    def square(x):
        """The square."""
        return x * x

    assert square(3) == 9 and square.__doc__ == "The square."
    with P.profile() as prof:
        square(fw.ones(2))
    assert [s.name for s in prof.spans if s.kind == "user"] == ["square"]


def test_results_are_those_without_a_profiler():
    fw.manual_seed(0)
    nets = [Net(), Net()]
    nets[1].load_state_dict(nets[0].state_dict())
    training_step(nets[0])
    with P.profile(record_shapes=True, with_stack=True, with_modules=True, profile_memory=True):
        training_step(nets[1])
    for a, b in zip(nets[0].parameters(), nets[1].parameters()):
        assert a.tolist() == b.tolist()


def test_ops_that_run_as_one_are_told_apart_backward():
    """The derivatives of a convolution and a relu that ran as one call know their module, too."""
    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU())

        def forward(self, x):
            return self.body(x)

    net, x = Joined(), fw.randn(2, 2, 8, 8)
    with P.profile(with_modules=True) as prof:
        net(x).sum().backward()
    modules = {span.name: span.module for span in prof.spans if span.name.startswith("backward ")}
    assert modules["backward conv"] and modules["backward relu"] and "body" in modules["backward conv"]


def test_memory_that_goes_is_counted_where_it_goes():
    with P.profile(profile_memory=True) as prof:
        x = fw.ones(1000) + 1
        with P.record_function("letting go"):
            del x
        y = (fw.ones(500) * 2).sin()
    found = {row.key: row for row in prof.key_averages()}
    assert found["letting go"].cpu_memory_freed == 4000 and found["letting go"].cpu_memory_usage == 0
    assert found["sin"].cpu_memory_usage == 2000 and y.shape == (500,)
    assert "Freed" in prof.key_averages().table()


def test_threads_that_begin_while_it_looks_are_seen_and_let_go():
    import threading

    go_on, found = threading.Event(), []

    def work():
        fw.ones(3).sin()
        go_on.wait(60)
        fw.ones(3).cos()
        found.append((quiet.run is quiet.plain, quiet.stack))

    with P.profile() as prof:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while sum(span.name == "sin" for span in prof.spans) < 3:
            threads[0].join(0.01)
        fw.ones(2).tan()
    go_on.set()
    for thread in threads:
        thread.join(60)
    names = [span.name for span in prof.spans]
    assert names.count("sin") == 3 and names.count("tan") == 1 and "cos" not in names
    assert len({span.thread for span in prof.spans}) == 4 and found == [(True, ())] * 3
    events = P.traces.chrome_trace(prof.spans)["traceEvents"]
    assert sum(event["name"] == "thread_name" for event in events) == 4
    after = []
    thread = threading.Thread(target=lambda: after.append(quiet.stack))
    thread.start()
    thread.join(60)
    assert after == [()]
