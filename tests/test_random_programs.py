"""Random programs beside PyTorch: values, dtypes, shapes, aliases, refusals, two orders of gradients.

A program is a few tensors of random shapes, dtypes and layouts, and a few random lines of code on them.
Both libraries run each line; after it all tensors are compared, those that a line changed through an alias
included. Where both refuse a line, ours must have left its tensors as they were. Many more programs run by
``python tests/test_random_programs.py --programs 100000 --seed 1``, which prints the shortest failing ones.
"""

import argparse
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from program_lines import ALONE, DTYPES, IN_PLACE, PURE, SHAPES

import framework as fw
import framework.nn.functional as fw_functional

torch = pytest.importorskip("torch", reason="PyTorch is what this is compared with: the compare extra")

LAYOUTS = ("plain", "turned", "gaps")
PROGRAMS, SEED = 400, 0
LARGEST = 1e7  # beyond, cancellation makes any comparison of gradients idle

class Absent(Exception):
    """No tensor of the wanted kind."""


class Unstable(Exception):
    """Numbers too large to compare what follows."""


Spec = tuple[tuple[int, ...], str, str, bool, int]  # shape, dtype, layout, requires_grad, seed
Code = list[tuple[str, str]]  # name of the result, line


class Writer:
    """Fills templates with the names of tensors and random settings."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def pick(self, items: Any) -> Any:
        items = list(items)
        if not items:
            raise Absent
        return items[self.random.integers(len(items))]

    def line(self, template: str, env: dict) -> str:
        self.env, self.first, self.dim, self.kept = env, "", 0, ""
        return re.sub(r"\{(\w+)\}", lambda found: str(self.part(found[1])), template)

    def part(self, kind: str) -> Any:
        tensors = {n: t for n, t in self.env.items() if isinstance(t, torch.Tensor)}
        kinds: dict[str, Callable] = {
            "x": lambda t: True, "f": lambda t: t.is_floating_point() or t.is_complex(),
            "r": lambda t: t.is_floating_point(), "z": lambda t: t.is_complex(),
            "b": lambda t: t.dtype == torch.bool, "t3": lambda t: t.ndim in (3, 4) and t.numel() > 0,
            "i": lambda t: not (t.is_floating_point() or t.is_complex()),
            "sq": lambda t: t.is_floating_point() and t.ndim > 1 and t.shape[-1] == t.shape[-2]}
        if kind in kinds:
            name = self.pick(n for n, t in tensors.items() if kinds[kind](t))
            self.first = self.first or name
            return name
        size = tensors[self.first].shape if self.first else ()
        n = len(size) or 1
        simple = {"x0": self.first, "d0": self.dim, "at0": self.kept, "p": bool(self.random.integers(2)),
                  "k": self.random.integers(-2, 4), "e": self.random.integers(-n, n),
                  "c": self.pick(["2", "0.5", "-1.5", "3", "True", "1.25"])}
        if kind in simple:
            return simple[kind]
        if kind == "y":
            return self.pick(m for m, t in tensors.items() if fits(t.shape, size) or self.rare())
        if kind == "s":
            return self.pick(n for n, t in tensors.items() if t.shape == size)
        return getattr(self, f"_{kind}")(size)

    def rare(self) -> bool:
        return bool(self.random.random() < 0.04)

    def _d(self, size: tuple) -> int:
        n = len(size) or 1
        wide = 2 * self.rare()  # out of range now and then
        self.dim = int(self.random.integers(-n - wide, n + wide))
        return self.dim

    def _ds(self, size: tuple) -> tuple:
        n = len(size) or 1
        chosen = self.random.permutation(n)[:max(1, self.random.integers(n + 1))]
        return tuple(int(i) - n * (self.random.random() < 0.3) for i in chosen)

    def _row(self, size: tuple) -> str:
        n = size[0] if size else 1
        return f"M.tensor({self.random.integers(-n, max(n, 1), self.random.integers(1, 4)).tolist()})"

    def _at(self, size: tuple) -> str:
        n = size[self.dim] if -len(size) <= self.dim < len(size) else 1
        self.kept = f"M.tensor({self.random.permutation(max(n, 1))[:self.random.integers(1, 4)].tolist()})"
        return self.kept

    def _g(self, size: tuple) -> str:
        n = size[self.dim] if -len(size) <= self.dim < len(size) else 1
        places = self.random.integers(0, max(n, 1), size)
        return f"M.tensor({places.tolist()}, dtype=M.int64).reshape({tuple(size)})"

    def _key(self, size: tuple) -> str:
        parts, left = [], list(size)
        for _ in range(self.random.integers(1, 4)):
            chance = self.random.random()
            if chance < 0.2 or not left:
                parts.append("..." if chance < 0.1 and "..." not in parts else "None")
                continue
            n = left.pop(0)
            if chance < 0.4:
                parts.append(str(self.random.integers(-n - 1, n + 1)))
            elif chance < 0.75 or not n:
                parts.append(self.pick([":", "1:", ":-1", "::2", "-2:", "5:"]))
            elif chance < 0.9:
                parts.append(f"M.tensor({self.random.integers(0, n, 2).tolist()})")
            else:
                parts.append(f"M.tensor({(self.random.random(n) < 0.6).tolist()}, dtype=M.bool)")
        return ", ".join(parts)


def fits(a: tuple, b: tuple) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def made_inputs(random: np.random.Generator) -> list[Spec]:
    base, specs = SHAPES[random.integers(len(SHAPES))], []
    for _ in range(random.integers(1, 4)):
        chance = random.random()
        shape = base if chance < 0.5 else SHAPES[random.integers(len(SHAPES))]
        if chance > 0.8:
            shape = tuple(n if random.random() < 0.6 else 1 for n in base)[random.integers(2):]
        dtype, layout = DTYPES[random.integers(len(DTYPES))], LAYOUTS[random.integers(3)]
        specs.append((shape, dtype, layout, bool(random.random() < 0.75), int(random.integers(1 << 30))))
    return specs


def array_of(spec: Spec) -> np.ndarray:
    shape, dtype, layout, _, seed = spec
    random = np.random.default_rng(seed)
    memory = shape[::-1] if layout == "turned" else shape
    if shape and layout == "gaps":
        memory = (*shape[:-1], 2 * shape[-1])
    a = random.normal(size=memory) * 1.2
    if dtype[0] == "c":
        a = a + 1j * random.normal(size=memory)
    elif dtype[0] != "f":
        a = a > 0 if dtype == "bool" else np.abs(np.rint(a * 2)) if dtype == "uint8" else np.rint(a * 2)
    a = np.asarray(a).astype(dtype)
    return a.T if layout == "turned" else a[..., ::2] if shape and layout == "gaps" else a


class Side:
    """One library, and the tensors of the program in it."""

    def __init__(self, M: Any, specs: list[Spec]) -> None:
        self.M, self.env = M, {}
        self.names = {"M": M, "F": torch.nn.functional if M is torch else fw_functional, "T": self.fixed,
                      "I": lambda x: M.eye(x.shape[-1], dtype=x.dtype)}
        for i, spec in enumerate(specs):
            self.env[f"v{i}"] = M.from_numpy(array_of(spec))
            if spec[3] and spec[1][0] in "fc":
                self.env[f"v{i}"].requires_grad_()
        self.leaves = [t for t in self.env.values() if t.requires_grad]

    def fixed(self, like: Any, *shape: int) -> Any:
        """A tensor of the dtype of another."""
        numbers = np.sin(np.arange(1, int(np.prod(shape)) + 1) * 1.7) * 1.3
        return self.M.from_numpy(numbers.reshape(shape)).to(like.dtype)

    def run(self, name: str, line: str) -> Exception | None:
        try:
            if re.search(r" [+*/]?= ", line):
                exec(line, self.names, self.env)
            else:
                out = self.env[name] = eval(line, self.names, self.env)
                for i, t in enumerate(out[:3] if isinstance(out, tuple | list) else ()):
                    self.env[f"{name}_{i}"] = t
        except Exception as error:
            return error
        return None

    def tensors(self) -> Iterator[tuple[str, Any]]:
        return ((n, t) for n, t in sorted(self.env.items()) if isinstance(t, (fw.Tensor, torch.Tensor)))

    def gradients(self) -> list[np.ndarray]:
        """First and second derivatives of a sum over all that was computed."""
        leaves = [t for t in self.leaves if t.is_leaf]
        first = self._pulled([t for _, t in self.tensors() if t.requires_grad and not t.is_leaf], leaves, 0.2)
        second = self._pulled(first, leaves, 0.7)
        return [np.zeros(tuple(t.shape)) if g is None else number(g)
                for grads in (first, second) for g, t in zip(grads, leaves)]

    def _pulled(self, outputs: list, leaves: list, shift: float) -> list:
        total = None
        for i, t in enumerate(outputs):
            if t is None or not t.requires_grad:
                continue
            t = t.real + 0.7 * t.imag if t.is_complex() else t
            weights = np.cos(np.arange(t.numel()) + i).reshape(tuple(t.shape)) + shift
            term = (t.to(self.M.float64) * self.M.from_numpy(np.asarray(weights))).sum()
            total = term if total is None else total + term
        if total is None or not leaves:
            return [None] * len(leaves)
        return list(self.M.autograd.grad(total, leaves, create_graph=True, allow_unused=True))


def number(t: Any) -> np.ndarray:
    if isinstance(t, fw.Tensor):
        return t.detach().numpy()
    try:
        return t.detach().resolve_conj().resolve_neg().numpy(force=True)
    except RuntimeError:  # PyTorch invalidates views of unbind and split when their base changes
        raise Unstable from None


def unequal(x: np.ndarray, y: np.ndarray, tolerance: float, finite: bool = False) -> str:
    """What differs between two arrays; finite: only where PyTorch's is finite."""
    if x.shape != y.shape:
        return f"shape {x.shape}, PyTorch has {y.shape}"
    if y.dtype.kind not in "fc":
        return "" if np.array_equal(x, y) else f"{x.ravel()[:6]}, PyTorch has {y.ravel()[:6]}"
    known = np.isfinite(y)
    scale = max(1.0, float(np.abs(y[known]).max(initial=0)))
    if scale > LARGEST:
        raise Unstable
    if finite or y.dtype.kind == "c":
        x, y = np.where(known, x, 0), np.where(known, y, 0)
    x = np.where(np.isinf(x) & np.isnan(y), y, x)  # PyTorch's nan is less exact there
    close = np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return "" if close else f"{x.ravel()[:6]}, PyTorch has {y.ravel()[:6]}"


def compared(ours: Any, theirs: Any, tolerance: float) -> str:
    """What differs between two results."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, fw.Tensor):
            return f"a {type(ours).__name__}, PyTorch has a tensor"
        for what in ("dtype", "requires_grad"):
            a, b = (str(getattr(t, what)).split(".")[-1] for t in (ours, theirs))
            if a != b and (what == "dtype" or theirs.is_floating_point() or theirs.is_complex()):
                return f"{what} {a}, PyTorch has {b}"
        return unequal(number(ours), number(theirs), tolerance)
    if isinstance(theirs, tuple | list):
        if len(ours) != len(theirs):
            return f"{len(ours)} results, PyTorch has {len(theirs)}"
        return next(filter(None, (compared(a, b, tolerance) for a, b in zip(ours, theirs))), "")
    return unequal(np.asarray(ours), np.asarray(theirs), tolerance)


def alone(ours: Exception | None, theirs: Exception | None, where: str) -> str:
    """The finding that one library refuses what the other takes, unless that is on purpose."""
    who, error = ("ours", ours) if ours is not None else ("theirs", theirs)
    known = any(who == w and re.search(pattern, str(error)) for w, pattern, _ in ALONE)
    return "" if known else f"{where}only {who} raises {type(error).__name__}: {str(error)[:200]}"


class Program:
    """A program on both sides, run line by line until the first difference."""

    def __init__(self, specs: list[Spec]) -> None:
        self.ours, self.theirs = Side(fw, specs), Side(torch, specs)
        self.tolerance = 1e-7

    def step(self, name: str, line: str) -> tuple[str, bool]:
        """The difference after a line, and whether the program may go on."""
        before = [{n: number(t).copy() for n, t in side.tensors()} for side in (self.ours, self.theirs)]
        errors = self.ours.run(name, line), self.theirs.run(name, line)
        if errors != (None, None):
            changed = [any(not np.array_equal(a, number(side.env[n]), equal_nan=True) for n, a in b.items())
                       for b, side in zip(before, (self.ours, self.theirs))]
            if errors[0] is not None and changed[0]:
                return f"something was changed though the line failed: {errors[0]}", False
            if None in errors:
                return alone(*errors, ""), False
            return "", not changed[1]  # PyTorch may have written before it refused
        if any(t.dtype in (torch.float32, torch.complex64) for _, t in self.theirs.tensors()):
            self.tolerance = 2e-3
        for n, t in self.theirs.env.items():
            text = compared(self.ours.env[n], t, self.tolerance)
            if text:
                return f"{n}: {text}", False
        return "", sum(t.numel() for _, t in self.theirs.tensors()) < 10000

    def gradients(self) -> str:
        grads: list = []
        for side in (self.ours, self.theirs):
            try:
                grads.append(side.gradients())
            except Exception as error:
                grads.append(error)
        errors = [g if isinstance(g, Exception) else None for g in grads]
        if errors != [None, None]:
            return "" if None not in errors else alone(*errors, "gradients: ")
        for i, (x, y) in enumerate(zip(*grads)):
            if not np.isfinite(y).all():
                break  # what follows depends on it
            if any(not np.isfinite(number(t)).all() for _, t in self.ours.tensors()):
                x = np.where(np.isnan(x) | (y == 0), y, x)  # nan, 0, or what passes behind a nan
            text = unequal(x, y, 20 * self.tolerance, finite=True)
            if text:
                return f"gradient {i}: {text}"
        return ""


def outcome(specs: list[Spec], code: Code) -> str:
    """The first difference when a program runs again."""
    program = Program(specs)
    try:
        for name, line in code:
            text, going = program.step(name, line)
            if text or not going:
                return text
        return program.gradients()
    except Unstable:
        return ""


def generated(seed: int) -> tuple[list[Spec], Code, str]:
    """A random program, and the first difference in it."""
    random = np.random.default_rng(seed)
    specs, code = made_inputs(random), []
    program, writer = Program(specs), Writer(random)
    try:
        for i in range(random.integers(2, 9)):
            templates = IN_PLACE if random.random() < 0.25 else PURE
            try:
                line = writer.line(templates[random.integers(len(templates))], program.theirs.env)
            except Absent:
                continue
            code.append((f"w{i}", line))
            text, going = program.step(*code[-1])
            if text:
                return specs, code, text
            if not going:
                return specs, code[:-1], outcome(specs, code[:-1])
        return specs, code, program.gradients()
    except Unstable:
        return specs, code, ""


def shrunk(specs: list[Spec], code: Code, text: str) -> str:
    """The failing program without the lines it does not need, as text."""
    i = 0
    while i < len(code):
        shorter = code[:i] + code[i + 1:]
        found = outcome(specs, shorter)
        if found[:12] == text[:12] or found and text[0] == "g" == found[0]:
            code, text = shorter, found
        else:
            i += 1
    lines = [f"    v{i} = {s}" for i, s in enumerate(specs)] + [f"    {name} = {line}" for name, line in code]
    return "\n".join([*lines, f"  {text}"])


def test_random_programs() -> None:
    """A fixed slice of the programs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [(seed, *generated(seed)) for seed in range(SEED, SEED + PROGRAMS)]
        failures = [f"seed {seed}:\n{shrunk(*run)}" for seed, *run in runs if run[2]]
    assert sum(len(code) for _, _, code, _ in runs) > 2 * PROGRAMS
    assert not failures, f"{len(failures)} programs differ from PyTorch:\n" + "\n".join(failures[:20])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    count = 0
    for number_ in range(given.seed, given.seed + given.programs):
        *run, found_ = generated(number_)
        if found_:
            count += 1
            print(f"seed {number_}:\n{shrunk(*run, found_)}", flush=True)
    print(f"{given.programs} programs, {count} differ")
