"""Elementwise programs: a scalar expression as a list of vector instructions over registers.

``compile_program("g * (1 - out * out)", ("g", "out"))`` gives a ``Program``, a plain value that prints as::

    g, out -> mul r0 = out, out; sub r0 = 1, r0; mul result = g, r0

The native engine runs it in one pass over memory. A program is made in microseconds, once per expression.
"""

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import _native
from ...backends.native import native_or
from ..record.rounded import by_float32
from .words import NUMBERS, OPERATORS, WORDS, Word

# {operation: (the one that made its operand, {place of that operand: the one instruction for both})}
PAIRS: dict[str, tuple[str, dict[int, str]]] = {
    "add": ("mul", {1: "mul_add", 0: "mul_add"}), "sub": ("mul", {1: "sub_mul"}),
    "mul": ("mul", {1: "mul_mul", 0: "mul_mul"}), "minimum": ("maximum", {0: "limit"}),
}


# whose first two operands may change places: a number comes second, where the engine keeps it in a register
EITHER_WAY = {"add", "mul", "mul_add", "mul_mul"}


class Step(NamedTuple):
    """One instruction: its name, the slot of the result, and those of up to three operands."""

    name: str
    result: int
    operands: tuple[int, ...]


class Program(NamedTuple):
    """Slots are numbered: the arguments, the constants, the registers, and last the result.

    truth: which arguments are truth values. truth_result: whether the result is. once: so many steps at
    the beginning depend on settings and constants only; no later step writes into their registers.
    """

    arguments: tuple[str, ...]
    truth: tuple[bool, ...]
    constants: tuple[float, ...]
    registers: int
    steps: tuple[Step, ...]
    truth_result: bool
    once: int = 0

    def __str__(self) -> str:
        names = [*self.arguments, *(f"{c:g}" for c in self.constants),
                 *(f"r{i}" for i in range(self.registers)), "result"]
        steps = "; ".join(f"{s.name} {names[s.result]} = {', '.join(names[o] for o in s.operands)}"
                          for s in self.steps)
        return f"{', '.join(self.arguments)} -> {steps}"


# {instruction: (its operands, the expression that it computes, the settings among them)}: the first that fits
_WHOLE: dict[str, tuple[str, str, str]] = {
    "sub_limit": ("x y z", "x - minimum(maximum(x, y), z)", ""),
    "lerp": ("x y z", "x + y * (z - x)", ""),
    "lerp_near": ("x y z", "where(abs(y) < 0.5, x + y * (z - x), z + (1 - y) * (x - z))", ""),
    "leaky": ("x y", "where(x > 0, x, y * x)", ""),
    "where_positive": ("x y z", "where(x > 0, y, z)", ""),
    "where_nan": ("x y z", "where(x != x, y, z)", ""),
    "shrink": ("x y z", "where(abs(x) <= y, 0.0, z)", ""),
    "raised": ("x y z", "where(x <= y, z, x)", "y z"),
    "finite_or": ("x y z", "where(x == 1e999, y, where(x == -1e999, z, x))", "y z"),
    "rsqrt": ("x", "1 / sqrt(x)", ""),
    "reciprocal": ("x", "1 / x", ""),
    "outside": ("x y z", "(x <= y) | (x >= z)", ""),
    "heaviside": ("x y", "where(x == 0, y, x > 0)", ""),
    "frac": ("x", "x - trunc(x)", ""),
    "hard_gate": ("x", "minimum(maximum(x + 3, 0), 6) / 6", ""),
    "hardswish": ("x", "x * (minimum(maximum(x + 3, 0), 6) / 6)", ""),
    "hardswish_slope": ("x", "where(x <= -3, 0.0, where(x < 3, x / 3 + 0.5, 1.0))", ""),
    "smooth": ("x y z", "where(abs(x - y) < z, square(x - y) * (0.5 / z), abs(x - y) - 0.5 * z)", "z"),
    "huber": ("x y z", "where(abs(x - y) <= z, square(x - y) * 0.5, z * (abs(x - y) - 0.5 * z))", "z"),
    "above": ("x y z", "where(x <= y, 0.0, z)", ""),
}


class NoProgram(Exception):
    """The expression uses what the engine has no instruction for."""


class _Compiler:
    """Turns an expression into values (each distinct instruction once), then places them in registers."""

    def __init__(self, arguments: tuple[str, ...], settings: tuple[str, ...]) -> None:
        self.arguments = arguments
        self.settings = settings
        self.values: dict[Any, int] = {}  # ("mul", a, b) -> its number
        self.settled: set[int] = set()  # those that are made of settings and constants only
        self.names = {name: self.value(("argument", name)) for name in arguments}
        self.arguments_at = set(self.names.values())
        self.truth: set[int] = set()  # values that are true or false
        self.truth_arguments: set[int] = set()
        self.number_arguments: set[int] = set()

    def value(self, key: tuple) -> int:
        number = self.values.setdefault(key, len(self.values))
        if key[0] == "constant" or (
                key[1] in self.settings if key[0] == "argument" else self.settled.issuperset(key[1:])):
            self.settled.add(number)
        return number

    def constant(self, number: float) -> int:
        return self.value(("constant", float(number).hex()))  # as text, 0.0 and -0.0 differ

    def visit(self, node: ast.expr) -> int:
        if isinstance(node, ast.Name):
            return self.named(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return self.constant(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self.apply(OPERATORS[type(node.op)], self.visit(node.left), self.visit(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self.visit(node.left), self.visit(node.comparators[0])
            return self.apply(OPERATORS[type(node.ops[0])], left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                return self.constant(-float(node.operand.value))  # type: ignore[arg-type]
            return self.apply(OPERATORS[ast.USub], self.visit(node.operand))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.apply(OPERATORS[ast.Invert], self.visit(node.operand))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.called(node.func.id, node.args)
        raise NoProgram(ast.dump(node))

    def named(self, name: str) -> int:
        if name in self.names:
            return self.names[name]
        if name in NUMBERS:
            return self.constant(NUMBERS[name])
        raise NoProgram(name)

    def called(self, name: str, arguments: list[ast.expr]) -> int:
        word = WORDS.get(name)
        if word is None or word.program is None:
            raise NoProgram(name)
        places = [self.visit(a) for a in arguments]
        if isinstance(word.program, str):
            return self.apply(word, *places)
        parameters, text = word.program
        outer, self.names = self.names, dict(zip(parameters.split(), places))
        result = self.visit(ast.parse(text, mode="eval").body)
        self.names = outer
        return result

    def apply(self, word: Word, *places: int) -> int:
        name = word.program
        condition, operands = (places[:1], places[1:]) if word is WORDS["where"] else ((), places)
        truths = all(p in self.truth for p in operands)
        if not (truths and word.truth == "alike"):
            operands = tuple(map(self.number, operands))
            if word.truth == "alike" and not condition:
                name = f"bit_{name}"  # and, or, xor, not of whole numbers
        for c in condition:
            if c in self.arguments_at:
                self.truth_arguments.add(c)
            elif c not in self.truth:
                raise NoProgram("where of a number")
        if name not in _instructions():
            raise NoProgram(name)
        result = self.value(self.shorter((name, *condition, *operands)))
        if word.truth == "always" or word.truth == "alike" and truths:
            self.truth.add(result)
        return result

    def shorter(self, key: tuple) -> tuple:
        """One instruction for several: ``log1p(exp(-abs(x)))``, and the pairs of ``PAIRS``."""
        keys, inner = list(self.values), key
        for name in ("log1p", "exp", "neg", "abs"):
            if inner[0] != name:
                return self.whole(self.paired(key, keys), keys)
            inner = keys[inner[1]]
        return "softplus_rest", self.values[inner]

    def paired(self, key: tuple, keys: list[tuple]) -> tuple:
        """An operation and the one before it as one instruction, unless that is the same for all elements."""
        name, *places = key
        wanted, pairs = PAIRS.get(name, ("", {}))
        for at, both in pairs.items():
            before, *operands = keys[places[at]]
            if before == wanted and not self.settled.issuperset(operands):
                return both, *operands, places[1 - at]
        return key

    def whole(self, key: tuple, keys: list[tuple]) -> tuple:
        """The one instruction for an expression of ``_WHOLE``."""
        for name, operands, tree in _trees().get(key[0], ()):
            found: dict[str, int] = {}
            if _matches(tree, key, keys, found):
                return name, *[found[operand] for operand in operands]
        return key

    def tree(self, place: int) -> Any:
        """A value as a pattern: the name of an argument, or a key with patterns in it."""
        name, *places = list(self.values)[place]
        if name == "argument":
            return places[0]
        return (name, *places) if name == "constant" else (name, *map(self.tree, places))

    def number(self, place: int) -> int:
        """A truth value that is used as a number is 1 or 0."""
        if place in self.truth:
            return self.value(("where", place, self.constant(1), self.constant(0)))
        self.number_arguments.add(place)
        return place

    def finish(self, result: int) -> Program:
        keys = list(self.values)
        if keys[result][0] in ("argument", "constant"):
            result = self.value(("copy", result))
            keys = list(self.values)
        constants = [key[1] for key in keys if key[0] == "constant"]
        slots: dict[int, int] = {}
        for number, key in enumerate(keys):
            if key[0] == "argument":
                slots[number] = self.arguments.index(key[1])
            elif key[0] == "constant":
                slots[number] = len(self.arguments) + constants.index(key[1])
        needed = {result}
        for n in range(result, -1, -1):
            if n in needed and keys[n][0] not in ("argument", "constant"):
                needed.update(keys[n][1:])
        work = [n for n in sorted(needed) if keys[n][0] not in ("argument", "constant")]
        once = self.settled - {result}
        work.sort(key=lambda n: n not in once)
        last_use = {o: n for n in work for o in keys[n][1:]}
        first = len(self.arguments) + len(constants)
        used, free, placed = 0, [], []
        for n in work:
            name, *operands = keys[n]
            if name in EITHER_WAY and operands[0] in self.settled and operands[1] not in self.settled:
                operands[:2] = operands[1::-1]
            places = tuple(slots[o] for o in operands)
            for o in dict.fromkeys(operands):
                if last_use[o] == n and slots[o] >= first and o not in once:
                    free.append(slots[o])
            if n == result:
                slots[n] = -1
            else:
                if not free:
                    free.append(first + used)
                    used += 1
                slots[n] = free.pop()
            placed.append((name, slots[n], places))
        if self.truth_arguments & self.number_arguments:
            raise NoProgram("an argument is a number and a truth value")
        truth = tuple(i in self.truth_arguments for i in range(len(self.arguments)))
        end = first + used
        steps = tuple(Step(name, end if d < 0 else d, places) for name, d, places in placed)
        return Program(self.arguments, truth, tuple(map(float.fromhex, constants)), used, steps,
                       result in self.truth, len(once.intersection(work)))


def compile_program(text: str, arguments: tuple[str, ...], settings: tuple[str, ...] = ()) -> Program:
    """The program of a scalar expression; settings: the arguments that are numbers. Raises NoProgram."""
    compiler = _Compiler(arguments, settings)
    return compiler.finish(compiler.visit(ast.parse(text.strip(), mode="eval").body))


_made_trees: dict[str, list[tuple[str, list[str], tuple]]] | None = None


def _trees() -> dict[str, list[tuple[str, list[str], tuple]]]:
    """The expressions of ``_WHOLE`` that the engine knows, by their last step: name, operands, tree."""
    global _made_trees
    if _made_trees is None:
        _made_trees = {}
        for name, (operands, text, settings) in _WHOLE.items():
            if name in _instructions():
                compiler = _Compiler(tuple(operands.split()), tuple(settings.split()))
                tree = compiler.tree(compiler.visit(ast.parse(text, mode="eval").body))
                _made_trees.setdefault(tree[0], []).append((name, operands.split(), tree))
    return _made_trees


def _matches(tree: tuple, key: tuple, keys: list[tuple], found: dict[str, int]) -> bool:
    """Whether a value has this form; ``found``: which values stand for the operands."""
    if tree[0] != key[0] or len(tree) != len(key):
        return False
    if tree[0] == "constant":
        return tree == key
    for part, place in zip(tree[1:], key[1:]):
        if isinstance(part, str):
            if found.setdefault(part, place) != place:
                return False
        elif not _matches(part, keys[place], keys, found):
            return False
    return True


_known: set[str] = set()


def _instructions() -> set[str]:
    if not _known:
        _known.update(_native.module.instructions())
    return _known


def native_kernel(text: str, arguments: tuple[str, ...], fallback: Callable,
                  settings: tuple[str, ...] = ()) -> Callable:
    """``fallback``, with the native engine in front where there is one and it has such a program."""
    if _native.module is None:
        return fallback
    try:
        program = compile_program(text, arguments, settings)
    except NoProgram:
        rounding = by_float32(fallback, lambda: fallback)
        return native_or(_lone_word(text, arguments), rounding, rounding)
    steps = tuple((s.name, s.result, *(s.operands * 3)[:3]) for s in program.steps)
    behind = native_or(_lone_word(text, arguments), by_float32(fallback, lambda: kernel))
    kernel = _native.module.make_kernel(program.arguments, program.truth, program.constants,
                                        program.registers, steps, program.once, program.truth_result, behind)
    return kernel


# expressions that the extension has a function of complex numbers for, which are none of the engine's
_OF_COMPLEX = {"-x": "complex_negative", "1 / x": "complex_reciprocal", "x / y": "complex_quotient"}


def _lone_word(text: str, arguments: tuple[str, ...]) -> str | None:
    """The extension's function for an expression that is one word of its arguments, in order, or their
    comparison, or a sign or a quotient."""
    if text in _OF_COMPLEX and arguments in (("x",), ("x", "y")):
        return _OF_COMPLEX[text]
    call = ast.parse(text.strip(), mode="eval").body
    if isinstance(call, ast.Compare) and len(call.ops) == 1:
        given = tuple([getattr(a, "id", "") for a in (call.left, *call.comparators)])
        return f"compare_{OPERATORS[type(call.ops[0])].program}" if given == arguments else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords \
            or tuple([getattr(a, "id", "") for a in call.args]) != arguments or call.func.id not in WORDS:
        return None
    return getattr(WORDS[call.func.id].array, "native", None)


SLICES = 1 << 18  # numbers that stay in the caches between a fold of them and what is made with it


def in_slices(fold: Callable, each: Callable, x: np.ndarray) -> np.ndarray:
    """``each(x, fold(x))`` with one pass over memory: fold and kernel take a few rows of x after another.

    x is in row-major order; the fold is one of the last dimension, which it keeps.
    """
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    step = max(1, SLICES // rows.shape[1])
    for at in range(0, len(rows), step):
        part = rows[at:at + step]
        each(part, fold(part), out=out[at:at + step])
    return out.reshape(x.shape)


def folding(kernel: Callable) -> Callable:
    """``kernel.fold``: "sum", "mean", "amax", "amin" or "var" of the result, of which no element is stored.

    ``fold(name, dims, keepdim, correction, *arguments)``, the correction for the variance. Answers
    NotImplemented for what the engine does not take.
    """
    return getattr(kernel, "fold", _no_fold)


def _no_fold(*arguments: Any, **settings: Any) -> Any:
    return NotImplemented
