"""What has to be measured in fresh processes: importing, peak memory, loading with workers.

Each measurement gives one number for the module of a name; less is better.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .checkpoint import memory
from .runner import Plan, per_call, set_threads, summary
from .workload import REGISTRY, Workload

ROOT = Path(__file__).resolve().parents[1]
STEPS = 3
NUMPY = "NumPy by hand"
PLAIN = "without kernels"


@dataclass(frozen=True)
class Process:
    """A named measurement of a module, and of NumPy by hand where that means something."""

    name: str
    what: str
    unit: str
    number: Callable[[str], float]
    with_numpy: bool = False
    rounds: int | None = None

    def measure(self, names: Sequence[str], rounds: int) -> dict[str, Any]:
        """Medians and ratios as for workloads, the modules in opposite order every round."""
        everyone = [*names, "numpy"] if self.with_numpy else list(names)
        rows = []
        for i in range(self.rounds or rounds):
            order = everyone[::-1] if i % 2 else everyone
            row = {name: self.number(name) for name in order}
            rows.append([row[name] for name in everyone])
        found = summary(names, rows)
        found["beside"] = {NUMPY: summary(everyone, rows)["median"]["numpy"]} if self.with_numpy else {}
        return {"name": self.name, "family": "processes", "what": self.what, "unit": self.unit, "note": "",
                **found}


def _child(*command: str, **settings: str) -> Any:
    """What a fresh interpreter prints as JSON; compiled modules are kept, as in any installation."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": str(ROOT), **settings})
    if done.returncode:
        says = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{says[-1]}; in: {' '.join(command)}")
    return json.loads(done.stdout)


def _import_time(name: str) -> float:
    return _child("-c", "import time; start = time.perf_counter()\n"
                  f"import {name}; print(time.perf_counter() - start)")


def _import_memory(name: str) -> float:
    return _child("-c", f"import {name}; from benchmarks.checkpoint import memory; print(memory('VmRSS'))")


def _step_memory(work: str) -> Callable[[str], float]:
    return lambda name: _child("-m", "benchmarks.processes", "memory", name, work)


def without_kernels(module: str, work: str, threads: int) -> float:
    """Seconds of a workload in a process of its own that does not load the native kernels."""
    return _child("-m", "benchmarks.processes", "time", module, work, str(threads), FRAMEWORK_NATIVE="off")


def _loader(name: str) -> float:
    """Seconds per sample, by the loader's own benchmark."""
    found = _child(str(ROOT / "benchmarks" / "loader.py"), "--child", name, "memory", "--workers", "2")
    return 1 / found["rate"]


def measurements() -> dict[str, Process]:
    """All of them by name; one of memory for each training step among the workloads."""
    found = [Process("import", "import in a fresh process (beside it NumPy's)", "s", _import_time, True),
             Process("import-memory", "Resident memory after the import", "B", _import_memory, True,
                     rounds=1),
             Process("loader-workers", "DataLoader with 2 workers, time per row of 784 floats", "s", _loader,
                     rounds=2)]
    for work in REGISTRY.values():
        if work.training:
            found.append(Process(f"memory-{work.name}", f"Peak memory that {STEPS} runs of {work.name} "
                                 "add", "B", _step_memory(work.name), rounds=1))
    return {p.name: p for p in found}


def _memory(work: Workload, module: ModuleType) -> float:
    # a small run first: the code that a library reads from its files when first needed is not counted
    small, = work.cases([module], tiny=True)
    small.run()
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    case, = work.cases([module])
    for _ in range(STEPS):
        case.run()
    return memory("VmHWM") - before


def _time(work: Workload, module: ModuleType, threads: int) -> float:
    set_threads([module], threads)
    case, = work.cases([module])
    return summary([""], per_call([case], Plan(3, 0.03)))["median"][""]


def main() -> None:
    """In the fresh process: print the peak memory that a workload adds, or its time."""
    from importlib import import_module

    from . import workloads  # noqa: F401

    kind, name, work, *threads = sys.argv[1:]
    module = import_module(name)
    for part in ("nn", "optim"):
        import_module(f"{name}.{part}")
    measured = {"memory": _memory, "time": _time}[kind]
    print(measured(REGISTRY[work], module, *map(int, threads)))


if __name__ == "__main__":
    main()
