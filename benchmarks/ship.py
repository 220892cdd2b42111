"""Models on their way out: ``python -m benchmarks.ship [--into FILE] [NAME ...]``, then ``--table``.

Each model is written as ONNX and, where that is built in, for the runtime without Python, both of which
compare with the model itself at batches of 1, 2 and 5 before they write; then loaded, and called with batches
of 1 and 32 in turns with eager execution and, where it is installed, with the same source on PyTorch. One
thread each; times are the processor's, of the calling thread (medians of alternating rounds), so other work
on the machine moves them little. A model that is in FILE already is not measured again.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import framework as fw
from benchmarks import onnx_models, quantized
from framework import nn

RUNTIME = import_module("framework.runtime") if find_spec("framework.runtime") else None
COLUMNS = ("eager", "runtime", "ONNX Runtime", "PyTorch")
BATCHES = (1, 32)


def alternating(calls: dict[str, Callable], seconds: float) -> dict[str, float]:
    """The median time of each call in ms, run in turns for about so long."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    end = time.monotonic() + seconds
    while (time.monotonic() < end or len(times["eager"]) < 5) and len(times["eager"]) < 400:
        for name, call in calls.items():
            start = time.thread_time()
            call()
            times[name].append(time.thread_time() - start)
    return {name: 1e3 * statistics.median(found) for name, found in times.items()}


def loading(load: Callable) -> tuple[Any, float]:
    """What is loaded, and the median time of three loads in ms."""
    times = []
    for _ in range(3):
        start = time.thread_time()
        loaded = load()
        times.append(1e3 * (time.thread_time() - start))
    return loaded, statistics.median(times)


def as_onnx(model: Any, x: Any, axes: dict, path: Path) -> dict:
    """The model as an ONNX file: nodes, bytes, at how many sizes it is equal and how far off."""
    program = fw.onnx.export(model, x, path, input_names=["x"], dynamic_axes={"x": axes})
    return {"nodes": len(program.model_proto.graph.node), "bytes": path.stat().st_size,
            "equal": len(program.checked), "off": max(worst for _, worst in program.checked)}


def for_runtime(model: Any, x: Any, axes: dict, path: Path) -> dict:
    """The model as a file of the runtime, or why there is none."""
    if RUNTIME is None:
        return {"lacking": "the runtime is not built in"}
    try:
        made = RUNTIME.export(model, x, path, input_names=["x"], dynamic_axes={"x": axes})
    except fw.errors.FrameworkError as error:
        return {"lacking": " ".join(str(error).split())[:300]}
    return {"steps": made.steps, "bytes": path.stat().st_size, "equal": len(made.checked)}


def measured(name: str, make: Callable, batch: Callable, axes: dict, twins: Any, seconds: float) -> dict:
    """All figures of one model; "int8" at the end of its name: in 8-bit numbers."""
    fw.manual_seed(0)
    model = make(fw.models, nn).eval()
    if name.endswith("int8"):
        model = quantized.calibrated(quantized.fused(model), [fw.from_numpy(batch(32))])
    x = fw.from_numpy(batch(2))
    found: dict[str, Any] = {"name": name, "load": {}, "ms": {}, "cores": os.cpu_count(),
                             "load average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "model.onnx", Path(folder) / "model.fwk"
        found["onnx"] = as_onnx(model, x, axes, paths[0])
        session, found["load"]["ONNX Runtime"] = loading(lambda: onnx_models.session(paths[0]))
        found["runtime"] = for_runtime(model, x, axes, paths[1])
        ours = None
        if "lacking" not in found["runtime"]:
            ours, found["load"]["runtime"] = loading(lambda: RUNTIME.load(paths[1]))
        twin = None
        if twins is not None and not name.endswith("int8"):
            import torch
            twin = make(twins, torch.nn).eval()
        for n in BATCHES:
            array = batch(n)
            tensor = fw.from_numpy(array)

            def eager(tensor: Any = tensor) -> None:
                with fw.inference_mode():
                    model(tensor)

            def in_torch(array: Any = array) -> None:
                with torch.inference_mode():
                    twin(torch.from_numpy(array))
            calls = {"eager": eager, "ONNX Runtime": lambda array=array: session.run(None, {"x": array})}
            if ours is not None:
                calls["runtime"] = lambda array=array: ours.run(array)
            if twin is not None:
                calls["PyTorch"] = in_torch
            found["ms"][str(n)] = alternating(calls, seconds)
    return found


HEAD = ("model", "ONNX Runtime: equal at", "off by", "runtime: same bits at", "MB, ONNX", "MB, runtime",
        "load, ONNX Runtime", "load, runtime", *[f"{k}, {n}" for n in BATCHES for k in COLUMNS])


def row(found: dict) -> list[str]:
    """The cells of one line, of all columns."""
    onnx, runtime, load = found["onnx"], found["runtime"], found["load"]

    def shown(value: Any, form: str) -> str:
        return "-" if value is None else format(value, form)
    times = [shown(found["ms"][str(n)].get(k), ".2f") for n in BATCHES for k in COLUMNS]
    return [found["name"], f"{onnx['equal']} sizes", f"{onnx['off']:.0e}",
            f"{runtime['equal']} sizes" if "equal" in runtime else "-", f"{onnx['bytes'] / 1e6:.2f}",
            shown(runtime["bytes"] / 1e6 if "bytes" in runtime else None, ".2f"),
            shown(load.get("ONNX Runtime"), ".1f"), shown(load.get("runtime"), ".1f"), *times]


def table(rows: list[dict]) -> str:
    """The rows as Markdown, without columns that have nothing in them."""
    lines = list(map(row, rows))
    kept = [i for i in range(len(HEAD)) if any(cells[i] != "-" for cells in lines)]
    return "\n".join("| " + " | ".join(cells[i] for i in kept) + " |"
                     for cells in (HEAD, ["---"] * len(HEAD), *lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only models whose names hold one of these")
    parser.add_argument("--into", type=Path, default=Path("build/ship.jsonl"), help="a line for each model")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each batch size of a model")
    parser.add_argument("--table", action="store_true", help="print what is there as a table")
    args = parser.parse_args()
    done = [json.loads(line) for line in args.into.read_text().splitlines()] if args.into.exists() else []
    if args.table:
        print(table(done))
        return
    fw.set_num_threads(1)
    if RUNTIME is not None:
        RUNTIME.library.set_threads(1)
    twins = onnx_models.in_torch()
    args.into.parent.mkdir(parents=True, exist_ok=True)
    models = dict(onnx_models.MODELS)
    for name in ("CNN of the digits, 28 x 28", "ResNet-18, 64 x 64", "GPT-2, 4 x 256, length 64"):
        models[f"{name}, int8"] = models[name]
    for name, (make, batch, axes) in models.items():
        if name in [d["name"] for d in done] or args.names and not any(n in name for n in args.names):
            continue
        found = measured(name, make, batch, axes, twins, args.seconds)
        with args.into.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(*row(found), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
