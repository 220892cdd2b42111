"""Write ``docs/ops.md``: every public function, from its record and from what its samples show.

``python -m framework.ops.docs`` in a checkout writes the page; a test compares it. Record, in-place form,
``out=``, view and the words of the derivatives are asked of the registry. Dtypes are measured: the calls of
``tests/samples`` are made with their inputs in each dtype, and those that some call takes are listed. The
order of derivatives is that to which the samples are checked by numbers.
"""

import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import framework

from .record.op import OPS, NoDerivative
from .record.public import PUBLIC, Public

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "ops.md"
# letter of the page -> dtypes, of which all must be taken
LETTERS = {"b": ("bool",), "i": ("uint8", "int64"), "h": ("float16",), "B": ("bfloat16",),
           "f": ("float32", "float64"), "c": ("complex64",)}
HEADER = """# Operations

Written by `python -m framework.ops.docs`; a test compares this page with what that gives. Functions
that only make tensors (`zeros`, `arange`, ...) and plain methods (`item`, `numpy`, ...) are not operations
and not here.

* **names**: the function and its aliases; `Tensor.` where there is only a method.
* **dtypes**, measured with the calls of the sample table: `b` bool, `i` integers (int64 and uint8), `h`
  float16, `B` bfloat16, `f` float32 and float64, `c` complex64. Other arguments (indices, masks) have dtypes
  of their own.
* **vjp**: the reverse rule: a formula per input for elementwise records (`g` is the incoming gradient),
  `rule` for other records, `composed` where the function calls others, `none` where there is no derivative.
* **jvp**: the word of the record, or `derived` from the reverse rule.
* **order**: to which derivatives are checked by numbers in the tests. Every rule is written in operations
  that have rules, so higher orders follow.
* **forms**: `m` method, `_` in place, `o` `out=`, `v` the result is a view, `(v)` it may be one.
* **vmap**: `rule` where a call for a batch of examples is one call (`loop`: one per example, after a
  warning), `composed` where the function calls others. {count}

| names | dtypes | vjp | jvp | order | forms | vmap |
| --- | --- | --- | --- | --- | --- | --- |
"""


def _rows() -> dict[tuple[str, str], Any]:
    """The sample table of the tests: (namespace, name) -> row."""
    tests = str(ROOT / "tests")
    if not Path(tests, "samples").is_dir():
        raise FileNotFoundError(f"docs: the sample table is in {tests}, which is not here; run in a checkout")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    table = importlib.import_module("table")
    if table.BROKEN:
        raise ImportError(f"docs: rows that cannot be read: {table.BROKEN}")
    return {(row.namespace, row.name): row for row in table.ROWS}


def _is_array(a: Any) -> bool:
    return isinstance(a, (np.ndarray, np.generic))


def _converted(a: Any, dtype: str) -> Any:
    """An input's numbers in another dtype, whole and not negative where it must be."""
    a = np.asarray(a)
    if dtype in ("bool", "uint8", "int64"):
        a = np.abs(np.rint(np.where(np.isfinite(a), a, 0)))
        return framework.from_numpy(np.array(a if dtype != "bool" else a > 0, dtype))
    if dtype == "complex64":
        return framework.from_numpy(np.array(a * (1 + 0.3j), dtype))
    return framework.from_numpy(np.array(a, "float64")).to(  # type: ignore[attr-defined]
        getattr(framework, dtype))


def _takes(sample: Any, dtype: str) -> bool:
    """Whether the call runs with its floating inputs (or, without any, those like its first) in ``dtype``."""
    arrays = [np.asarray(a).dtype for a in sample.inputs if _is_array(a)]
    changed = np.dtype(np.float64) if np.dtype(np.float64) in arrays else arrays[0]
    inputs = [framework.from_numpy(np.array(a)) if _is_array(a) and np.asarray(a).dtype != changed
              else _converted(a, dtype) if _is_array(a) else a for a in sample.inputs]
    try:
        sample.call(framework, *inputs)
    except Exception:  # whatever it raises: this dtype is not taken
        return False
    return True


def _dtypes(rows: list) -> str:
    samples = [s for row in rows for s in row.samples if any(_is_array(a) and np.size(a) for a in s.inputs)]
    if not samples:
        return "–"
    return "".join(letter for letter, names in LETTERS.items()
                   if all(any(_takes(s, dtype) for s in samples) for dtype in names)) or "–"


def _order(rows: list) -> str:
    orders = [s.order for row in rows for s in row.samples
              if s.grad and any(_is_array(a) and np.asarray(a).dtype == np.float64 for a in s.inputs)
              and _carries(s)]
    return str(max(orders)) if orders else "–"


def _carries(sample: Any) -> bool:
    """Whether the result of a sample has a place in the graph."""
    inputs = [framework.from_numpy(np.array(a)) if _is_array(a) else a for a in sample.inputs]
    inputs = [(x * 1.0).requires_grad_() if isinstance(x, framework.Tensor) and x.is_floating_point() else x
              for x in inputs]
    inputs = [x * 1 if isinstance(x, framework.Tensor) and x.requires_grad else x for x in inputs]
    out = sample.call(framework, *inputs)
    return any(isinstance(y, framework.Tensor) and y.requires_grad
               for y in (out if isinstance(out, (tuple, list)) else (out,)))


def _vjp(p: Public, order: str) -> str:
    op = p.op
    if op is not None and isinstance(op.joint, NoDerivative):
        return "none"
    if op is None or not op.has_vjp:
        return "none" if order == "–" else "composed"
    texts = [getattr(rule, "text", None) for rule in op.rules or ()]
    if not texts or not all(texts):
        return "rule"
    shown = [f"`{name}: {text}`" for name, text in zip(op.arguments, texts)]
    return "<br>".join(shown).replace("|", "\\|")


def _jvp(p: Public, vjp: str) -> str:
    if vjp in ("none", "composed"):
        return "–" if vjp == "none" else "composed"
    return p.op.jvp or "derived"  # type: ignore[union-attr]


def _count() -> str:
    """How many records have a rule for batches."""
    records = [op for op in OPS if ".ops." in getattr(op.kernel, "__module__", "")]
    return f"Of {len(records)} records {sum(op.batch is not None for op in records)} have a rule."


def _batch(p: Public) -> str:
    if p.op is None:
        return "composed"
    return "rule" if p.op.batch is not None else "loop"


def _forms(group: list[Public]) -> str:
    p = group[0]
    if p.name.endswith("_"):
        return "_"
    takes_out = "out" in inspect.signature(p.function).parameters
    view = {True: "v", "maybe": "(v)"}.get(getattr(p.op, "view", False), "")
    marks = ["m" * any(q.methods for q in group), "_" * any(q.inplace for q in group), "o" * takes_out, view]
    return " ".join(mark for mark in marks if mark) or "–"


def _groups() -> Iterator[list[Public]]:
    """The public functions, aliases of one together; dunder methods stand with their functions."""
    groups: dict[Any, list[Public]] = {}
    for p in PUBLIC:
        if not p.name.startswith("__"):
            groups.setdefault(p.function, []).append(p)
    yield from sorted(groups.values(), key=lambda group: (
        group[0].namespace != "framework", _name(group[0]).lower(), _name(group[0])))


def _name(p: Public) -> str:
    return {"": f"Tensor.{p.name}", "framework": p.name}.get(p.namespace, f"{p.namespace}.{p.name}")


def generate() -> str:
    """The text of the page."""
    table, lines = _rows(), []
    with warnings.catch_warnings(), framework.enable_grad():
        warnings.simplefilter("ignore")
        for group in _groups():
            rows = [table[p.namespace, p.name] for p in group if (p.namespace, p.name) in table]
            order = _order(rows)
            vjp = _vjp(group[0], order)
            names = ", ".join(f"`{_name(p)}`" for p in group)
            lines.append(f"| {names} | {_dtypes(rows)} | {vjp} | {_jvp(group[0], vjp)} | {order} | "
                         f"{_forms(group)} | {_batch(group[0])} |")
    return HEADER.replace("{count}", _count()) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(generate(), encoding="utf-8")
    print(f"wrote {PATH}")
