"""Run the examples in full, each as a user runs it, and beside it the same program on PyTorch.

    python -m benchmarks.examples [--only NAME ...] [--vs torch] [--seeds 0 1 2] [--page examples/README.md]

Each run is a process of its own, one at a time, the two in turns. Its time is that of the whole process,
imports included, on ``--cores`` processor cores with as many threads. Random numbers differ between the two,
so metrics agree only as two seeds of one program do.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
DATA = ROOT.parent / "shared" / "data"


@dataclass
class Program:
    """An example: what its last line with the metric looks like, and how it is called."""

    pattern: str             # its first group is the number that counts
    says: str                # that number in a sentence
    arguments: str = ""      # {data}: the folder of data, {out}: a folder of the run
    full: str = ""           # further arguments of the full run
    torch: bool = True       # PyTorch has everything that it uses


PROGRAMS = {
    "digits": Program(r"accuracy ([\d.]+)%", "test accuracy {} %", "--out {out}", "--mnist {data}/mnist"),
    "cifar_resnet": Program(r"test accuracy ([\d.]+)%", "test accuracy {} %",
                            "--data {data}/cifar10-subset --out {out}"),
    "transfer": Program(r"learnt from, ([\d.]+)% on others", "accuracy {} % on other photos",
                        "--data {data}/hymenoptera", torch=False),
    "vit": Program(r"test accuracy ([\d.]+)%", "test accuracy {} %", "--out {out}"),
    "super_resolution": Program(r"([-\d.]+) dB above", "{} dB above cubic interpolation", "--out {out}",
                                "--final", torch=False),  # its parts of the photo would be others
    "names": Program(r"test accuracy ([\d.]+)%", "test accuracy {} %", "--data {data}/names"),
    "translation": Program(r"next word right ([\d.]+)%", "next word right {} %",
                           "--data {data}/eng-fra/eng-fra.txt"),
    "language_model": Program(r"held-out loss ([\d.]+) bits", "{} bits per letter",
                              "--text {data}/text/tinyshakespeare.txt"),
    "gpt": Program(r"held-out loss ([\d.]+) nats", "{} nats per letter"),
    "vae": Program(r"held-out bound ([\d.]+) nats", "bound {} nats per image", "--out {out}"),
    "wgan_gp": Program(r"clouds found, ([\d.]+)%", "{} % of points in a cloud", "--out {out}"),
    "dcgan": Program(r"kinds, ([\d.]+) from the nearest", "{} from the nearest real digit", "--out {out}"),
    "flow": Program(r"held-out ([-\d.]+) nats", "{} nats per point", "--out {out}"),
    "unet": Program(r"intersection over union ([\d.]+)", "intersection over union {}", "--out {out}"),
    "reinforce": Program(r"mean episode ([\d.]+) steps", "{} of 200 steps", "--out {out}"),
    "cartpole": Program(r"mean episode ([\d.]+) steps", "{} of 200 steps", "--out {out}"),
    "ppo": Program(r"mean episode ([\d.]+) steps", "{} of 200 steps", "--out {out}"),
    "hypernetwork": Program(r"error ([\d.]+) on waves", "error {}", "--out {out}"),
    "modular": Program(r"one deeper ([\d.]+)%", "one deeper {} % right"),
    "maml": Program(r"after five steps ([\d.]+)", "error {} after five steps", "--out {out}"),
    "sine_lbfgs": Program(r"test loss ([\d.e-]+) after", "test loss {}", "--out {out}"),
    "neural_ode": Program(r"is off by ([\d.]+) on average", "off by {}", "--out {out}"),
    "hessian": Program(r"residue of the first ([\d.e+-]+)", "residue {}", "--out {out}"),
    "custom_op": Program(r"loss ([\d.]+) for", "loss {}"),
    "custom_dataset": Program(r"test accuracy ([\d.]+)%", "test accuracy {} %", "--out {out}"),
    "scipy_optimizer": Program(r"loss ([\d.e+-]+) \(", "loss {}"),
    "sklearn_estimator": Program(r"accuracy ([\d.]+)% over", "accuracy {} %"),
    "tree_lstm": Program(r"test accuracy ([\d.]+)%", "test accuracy {} %", "", "--data {data}/sst2",
                         torch=False),
    "structures": Program(r"at least ([\d.]+)% right", "at least {} % right", torch=False),
    "gcn": Program(r"accuracy ([\d.]+)$", "accuracy {}", torch=False),
}


def run(name: str, module: str, further: Sequence[str], cores: int, limit: float,
        pictures: Path | None = None) -> tuple[float, float, str]:
    """(metric, seconds, last line with the metric) of one run; RuntimeError with its last words if it fails.

    pictures: a folder that gets the first picture of the run, under the program's name.
    """
    program = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as out:
        text = f"{program.arguments} {'' if '--quick' in further else program.full}"
        call = [str(EXAMPLES / f"{name}.py"), *text.format(data=DATA, out=out).split(), *further]
        road = [] if module == "framework" else ["-m", "benchmarks.on_torch"]
        keep = sorted(os.sched_getaffinity(0))[:cores]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *road, *call], cwd=out, capture_output=True, text=True, timeout=limit,
            preexec_fn=lambda: os.sched_setaffinity(0, keep),
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(cores), "TQDM_DISABLE": "1"})
        seconds = time.perf_counter() - start
        drawn = sorted(file for file in Path(out).rglob("*") if file.suffix in (".png", ".svg"))
        if pictures and drawn:
            pictures.mkdir(parents=True, exist_ok=True)
            shutil.copy(drawn[-1], pictures / f"{name}{drawn[-1].suffix}")
    found = [(match[1], line) for line in done.stdout.splitlines()
             if (match := re.search(program.pattern, line))]
    if done.returncode or not found:
        raise RuntimeError(f"{name}: {(done.stderr or done.stdout)[-800:]}")
    return float(found[-1][0]), seconds, found[-1][1]


def said(name: str, values: list[float]) -> str:
    """The median in the program's words, and the range where there were several runs."""
    text = PROGRAMS[name].says.format(f"{median(values):.4g}")
    return text if len(values) == 1 else f"{text} ({min(values):.4g} to {max(values):.4g})"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def write(page: Path, name: str, cells: list[str]) -> None:
    """Put the last cells of the program's row of the table."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        if line.startswith(f"| [{name}.py]"):
            kept = line.strip("| ").split(" | ")[:3]
            lines[i] = f"| {' | '.join([*kept, *cells])} |"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(name: str, options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Metrics and seconds of a program by module, over the seeds."""
    modules = ["framework", *([options.vs] if options.vs and PROGRAMS[name].torch else [])]
    found = {module: {"metric": [], "seconds": []} for module in modules}
    for seed in options.seeds:
        for module in modules:
            further = ["--seed", str(seed), *(["--quick"] if options.quick else [])]
            metric, seconds, line = run(name, module, further, options.cores, options.limit,
                                        options.pictures if module == "framework" else None)
            found[module]["metric"].append(metric)
            found[module]["seconds"].append(seconds)
            print(f"{name:18}{module:11}{seconds:7.1f} s, load {os.getloadavg()[0]:.1f}  {line}", flush=True)
    return found


def main(given: Sequence[str] | None = None) -> int:
    """0, or 1 if a program failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.examples",
                                     description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--vs", choices=["torch"], help="run each on PyTorch, too")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--quick", action="store_true", help="the short run of each")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1800, help="seconds that one run may take")
    parser.add_argument("--page", type=Path, help="a page whose table gets the figures")
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each run")
    parser.add_argument("--json", type=Path, help="append each program's figures to this file, a line each")
    options = parser.parse_args(given)
    if options.vs and find_spec("torch") is None:
        parser.error("PyTorch is not installed: pip install 'framework[compare]'")
    failed = False
    for name in options.only:
        try:
            found = measured(name, options)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed = True
            print(f"{name}: FAILED: {error}", flush=True)
            continue
        cells = [text for one in found.values()
                 for text in (said(name, one["metric"]), duration(min(one["seconds"])))]
        if options.page:
            write(options.page, name, cells + ["-", "-"] * (2 - len(found)))
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps({"name": name, **found}) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
