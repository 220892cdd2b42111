"""Scalar expressions as CUDA kernels: the text of an elementwise op or rule becomes one kernel over all
operands.

    device_kernel("g * (1 - out * out)", ("g", "out"), otherwise)

is a function of arrays of a GPU. For operands that lie alike the kernel takes 16 bytes at a time; others,
broadcast or strided, are folded to the fewest dimensions. bfloat16 and float16 are computed in float32 and
rounded once. What has no kernel (complex numbers, words without one, mixed dtypes) goes to ``otherwise``,
CuPy's functions one by one.
"""

import ast
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...backends import cuda, device_code, device_launcher
from .words import CUDA_TEXTS, NUMBERS, OPERATORS, WORDS, Word

DIMS, OPERANDS = 8, 8  # of ``Layout``, which kernels take by value
_LAYOUT = np.dtype(
    [("dims", "i8"), ("size", device_code.DIVISOR, (DIMS,)), ("stride", "i8", (OPERANDS, DIMS))])
FLOATS = "eEfd"

HELPERS = """
__device__ __forceinline__ C sigmoid_of(C x) {
  C e = exp(-fabs(x));
  return (x < 0 ? e : C(1)) / (1 + e);
}
__device__ __forceinline__ C silu_slope_of(C x) {
  C w = fmin(fmax(x, C(-800)), C(800)), s = sigmoid_of(w), rest = sigmoid_of(-w);
  return x != x ? x : s * (1 + w * rest);
}
__device__ __forceinline__ C gelu_slope_of(C x) {
  C bell = C(0.3989422804014327) * exp(C(-0.5) * x * x);
  return C(0.5) * erfc(C(-0.7071067811865476) * x) + (bell == 0 ? C(0) : x * bell);
}
__device__ __forceinline__ C gate_of(C x, C y) { return x == 0 ? C(0) : x * y; }
__device__ __forceinline__ C over_of(C x, C y) { return x == 0 ? C(0) : x / y; }
__device__ __forceinline__ C sign_of(C x) { return x != x ? x : C((x > 0) - (x < 0)); }
__device__ __forceinline__ C remainder_of(C x, C y) {
  C r = fmod(x, y);
  return r != 0 ? ((r < 0) != (y < 0) ? r + y : r) : copysign(C(0), y);
}
"""


class NoKernel(Exception):
    """The expression, or its operands, are left to CuPy."""


class _Translator:
    """An expression as C++; a value is (text, whether it is a truth value)."""

    def __init__(self, names: dict[str, tuple[str, bool]], floating: bool) -> None:
        self.names, self.floating = names, floating

    def visit(self, node: ast.expr) -> tuple[str, bool]:
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            if node.id in NUMBERS and self.floating:
                return "infinity<C>()", False
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            if not self.floating and isinstance(node.value, float):
                raise NoKernel("a fraction among integers")
            return "infinity<C>()" if node.value == math.inf else f"C({node.value!r})", False
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self.apply(OPERATORS[type(node.op)], self.visit(node.left), self.visit(node.right))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.apply(
                OPERATORS[type(node.ops[0])], self.visit(node.left), self.visit(node.comparators[0])
            )
        elif isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return self.apply(OPERATORS[type(node.op)], self.visit(node.operand))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            operands = [*node.args, *[k.value for k in node.keywords]]
            return self.called(node.func.id, [self.visit(a) for a in operands])
        raise NoKernel(ast.dump(node))

    def called(self, name: str, values: list[tuple[str, bool]]) -> tuple[str, bool]:
        word = WORDS.get(name)
        if word is None or word.program is None and word.cuda is None:
            raise NoKernel(name)
        if not isinstance(word.program, tuple):
            return self.apply(word, *values)
        parameters, text = word.program
        outer, self.names = self.names, dict(zip(parameters.split(), values))
        result = self.visit(ast.parse(text, mode="eval").body)
        self.names = outer
        return result

    def apply(self, word: Word, *values: tuple[str, bool]) -> tuple[str, bool]:
        condition, operands = (values[:1], values[1:]) if word is WORDS["where"] else ((), values)
        if not all(truth for _, truth in condition):
            raise NoKernel("where of a number")
        truths = word.truth == "alike" and all(truth for _, truth in operands)
        text = word.cuda if self.floating else word.cuda_whole
        if truths and word.cuda_truth:
            text = word.cuda_truth
        if text is None:
            raise NoKernel(word.program)
        texts = [t for t, _ in condition] + [v[0] if truths else _number(v) for v in operands]
        shown = text.format(*texts) if "{" in text else f"{text}({', '.join(texts)})"
        return shown, truths or word.truth == "always"


def _number(value: tuple[str, bool]) -> str:
    return f"C({value[0]} ? 1 : 0)" if value[1] else value[0]


class Written(NamedTuple):
    """An expression for operands of certain dtypes: the C++ function ``each``, and what its result is."""

    text: str
    computed: str  # the type that it computes in
    result: str  # the letter of the result's dtype
    parameters: str  # of a kernel, behind the result
    arguments: str  # of ``each``, for operands that lie at ``at_<name>`` in memory
    arrays: tuple[str, ...]
    chars: tuple[str, ...]


def write(text: str, names: tuple[str, ...], chars: tuple[str, ...], mend: bool = False) -> Written:
    """The expression as C++; chars: for each name the letter of its dtype, or "number", or "integer".

    mend: give 0 where the result is inf or nan though the first operand is 0. Raises NoKernel.
    """
    names = tuple([f"v_{n}" for n in names])  # no name of a kernel's own
    given = {n: c for n, c in zip(names, chars) if c not in ("number", "integer")}
    kinds = {c for c in given.values() if c != "?"}
    if kinds in ({"e", "f"}, {"E", "f"}):  # computed in float32 as each of them is
        kinds = {"f"}
    if len(kinds) > 1 or "" in given.values():
        raise NoKernel("operands of several dtypes")
    kind = kinds.pop() if kinds else "?"
    floating = kind in FLOATS
    if not floating and "number" in chars:
        raise NoKernel("fractions and integers")
    computed = device_code.wide(kind)
    tree = ast.parse(text.strip(), mode="eval").body
    known = {n[2:]: (n, given.get(n) == "?") for n in names}
    value, truth = _Translator(known, floating).visit(tree)
    if not truth and kind == "?":
        raise NoKernel("arithmetic of truth values")
    if mend:
        value = f"mended({names[0]}, {value})"
    takes = ", ".join(f"bool {n}" if given.get(n) == "?" else f"C {n}" for n in names)
    helpers = HELPERS if floating else ""
    helpers += "".join(text() for start, text in CUDA_TEXTS.items() if start in value)
    if mend:
        helpers += (
            "__device__ __forceinline__ C mended(C g, C r) { return g == 0 && !isfinite(r) ? C(0) : r; }\n"
        )
    each = (
        f"typedef {computed} C;\n{helpers}"
        f"__device__ __forceinline__ {'bool' if truth else 'C'} each({takes}) {{ return {value}; }}\n"
    )
    parameters = ", ".join(
        f"const {device_code.c_type(given[n])}* {n}"
        if n in given
        else f"{'double' if c == 'number' else 'i64'} {n}"
        for n, c in zip(names, chars)
    )
    arguments = ", ".join(
        (f"at_{n}" if given[n] == "?" else f"up(at_{n})") if n in given else f"C({n})" for n in names
    )
    return Written(
        each, computed, "?" if truth else kind, parameters, arguments, tuple(given), tuple(given.values())
    )


def limits(written: Written) -> tuple[float, float]:
    """The least and the largest number that the type holds which is computed in."""
    kind = next((c for c in written.chars if c != "?"), "?")
    if kind in FLOATS:
        return -math.inf, math.inf
    return (0, 1) if kind == "?" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))


def pack_of(chars: tuple[str, ...]) -> int:
    """How many elements of operands of these dtypes are read at once: the widest ones are 16 bytes."""
    return 16 // max(map(device_code.itemsize, chars))


def elementwise_source(name: str, written: Written) -> str:
    """The kernels ``<name>_flat`` and ``<name>_strided``.

    Their loops are not unrolled: most threads go through them once, and it takes the compiler twice as long.
    """
    out = device_code.c_type(written.result)
    pack = pack_of((*written.chars, written.result))
    down = "" if written.result == "?" else f"Of<{out}>::down"
    loads = " ".join(f"auto at_{n} = {n}[i];" for n in written.arrays)
    packs = " ".join(
        f"auto pack_{n} = reinterpret_cast<const Pack<{device_code.c_type(c)}, V>*>({n})[i];"
        for n, c in zip(written.arrays, written.chars)
    )
    parts = " ".join(f"auto at_{n} = pack_{n}.at[k];" for n in written.arrays)
    fits = " && ".join(
        f"aligned<{device_code.c_type(c)}, V>({n})"
        for n, c in (*zip(written.arrays, written.chars), ("out", written.result))
    )
    far = " ".join(f"auto at_{n} = {n}[to[{j + 1}]];" for j, n in enumerate(written.arrays))
    return f"""{written.text}
struct Layout {{ i64 dims; Divisor size[{DIMS}]; i64 stride[{OPERANDS}][{DIMS}]; }};
extern "C" __global__ void {name}_flat({out}* out, {written.parameters}, i64 n) {{
  constexpr int V = {pack};
  i64 first = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x, done = 0;
  if ({fits}) {{
    done = n / V;
#pragma unroll 1
    for (i64 i = first; i < done; i += step) {{
      {packs}
      Pack<{out}, V> r;
#pragma unroll
      for (int k = 0; k < V; ++k) {{ {parts} r.at[k] = {down}(each({written.arguments})); }}
      reinterpret_cast<Pack<{out}, V>*>(out)[i] = r;
    }}
    done *= V;
  }}
#pragma unroll 1
  for (i64 i = done + first; i < n; i += step) {{ {loads} out[i] = {down}(each({written.arguments})); }}
}}
extern "C" __global__ void {name}_strided({out}* out, {written.parameters}, Layout at, i64 n) {{
  i64 step = i64(gridDim.x) * blockDim.x, to[{1 + len(written.arrays)}];
#pragma unroll 1
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {{
    offsets(i, int(at.dims), at.size, at.stride, to);
    {far}
    out[to[0]] = {down}(each({written.arguments}));
  }}
}}
"""


# -- layouts ----------------------------------------------------------------------------------------


class Placed(NamedTuple):
    """Where the elements of a call lie: flat or by ``layout``; the result's shape and order of dimensions."""

    shape: tuple[int, ...]
    size: int
    flat: bool
    layout: np.ndarray | None
    order: tuple[int, ...] | None  # dimensions from the slowest in the result's memory; None: as they come


def broadcast(shapes: Any) -> tuple[int, ...]:
    """The common shape; ValueError without one."""
    shapes = list(shapes)
    first = shapes[0] if shapes else ()
    for s in shapes:
        if s != first:
            return np.broadcast_shapes(*shapes)
    return first


def folded(sizes: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The same elements with the fewest dimensions; strides: for each operand, of each dimension."""
    kept = [d for d, s in enumerate(sizes) if s != 1]
    sizes, strides = [sizes[d] for d in kept], [[s[d] for d in kept] for s in strides]
    d = 0
    while d + 1 < len(sizes):
        if all(s[d] == s[d + 1] * sizes[d + 1] for s in strides):
            sizes[d : d + 2] = [sizes[d] * sizes[d + 1]]
            for s in strides:
                s[d : d + 2] = [s[d + 1]]
        else:
            d += 1
    return sizes, strides


def strides_in(
    shape: tuple[int, ...], a_shape: tuple[int, ...], a_strides: tuple[int, ...], item: int
) -> list[int]:
    """The strides, in elements, of an operand broadcast to ``shape``."""
    lead = len(shape) - len(a_shape)
    return [0] * lead + [0 if s == 1 else b // item for s, b in zip(a_shape, a_strides)]


def row_major_strides(shape: tuple[int, ...]) -> list[int]:
    """The strides, in elements, of an array in row-major order."""
    strides, step = [], 1
    for s in reversed(shape):
        strides.append(step)
        step *= s
    return strides[::-1]


_placed: dict[tuple, Placed] = {}


def place(key: tuple, into: tuple | None = None) -> Placed:
    """How to go over operands of these (shape, strides, bytes of an element); into: of the result."""
    found = _placed.get((key, into))
    if found is not None:
        return found
    shape = broadcast([s for s, _, _ in key])
    strides = [strides_in(shape, *one) for one in key]
    order: tuple[int, ...] | None = None
    if into is None:
        like = next((st for (s, _, _), st in zip(key, strides) if s == shape), None)
        # the result lies as the first whole operand does
        if like is not None and like != row_major_strides(shape):
            order = tuple(
                sorted(range(len(shape)), key=lambda d: -abs(like[d]) if shape[d] > 1 else -1 << 62)
            )
            if list(order) == list(range(len(shape))):
                order = None
        permuted = shape if order is None else tuple(shape[d] for d in order)
        out = [0] * len(shape)
        for d, step in zip(range(len(shape)) if order is None else order, row_major_strides(permuted)):
            out[d] = step
    else:
        out = strides_in(shape, *into)
    walk = sorted(range(len(shape)), key=lambda d: -abs(out[d]))
    sizes, lying = folded([shape[d] for d in walk], [[st[d] for d in walk] for st in (out, *strides)])
    size = 1
    for s in shape:
        size *= s
    flat = len(sizes) == 0 or len(sizes) == 1 and all(st == [1] for st in lying)
    if len(sizes) == 0:
        flat = True
    layout = None
    if not flat:
        if len(sizes) > DIMS:
            raise NoKernel("too many dimensions")
        layout = np.zeros(1, _LAYOUT)
        layout["dims"] = len(sizes)
        layout["size"][0, : len(sizes)] = [device_code.divisor(s) for s in sizes]
        for j, st in enumerate(lying):
            layout["stride"][0, j, : len(sizes)] = st
    if len(_placed) > 4096:
        _placed.clear()
    found = _placed[key, into] = Placed(shape, size, flat, layout, order)
    return found


def new(placed: Placed, dtype: Any) -> Any:
    """Memory for the result."""
    empty = device_launcher.empty
    if placed.order is None:
        return empty(placed.shape, dtype)
    made = empty(tuple(placed.shape[d] for d in placed.order), dtype)
    back = [0] * len(placed.order)
    for i, d in enumerate(placed.order):
        back[d] = i
    return made.transpose(back)


# -- calls -----------------------------------------------------------------------------------------


def operands(arguments: tuple) -> tuple[Any, tuple]:
    """The letters of the arguments' dtypes, or "number", "integer"; where the arrays lie.

    None for the letters where something else is among them, or no array.
    """
    ndarray = cuda._cupy.ndarray
    chars, key = [], []
    for a in arguments:
        if isinstance(a, ndarray):
            chars.append(device_code.letter(a.dtype))
            key.append((a.shape, a.strides, a.itemsize))
        elif type(a) is float or isinstance(a, np.floating):
            chars.append("number")
        elif type(a) in (int, bool) and -1 << 63 <= a < 1 << 63 or isinstance(a, np.signedinteger):
            chars.append("integer")
        else:
            return None, ()
    return tuple(chars) if 0 < len(key) < OPERANDS else None, tuple(key)


def values_of(arguments: tuple, chars: tuple) -> list:
    """The arguments as a kernel takes them."""
    return [float(a) if c == "number" else int(a) if c == "integer" else a for a, c in zip(arguments, chars)]


class DeviceKernel:
    """An expression on arrays of a GPU; see the head of the file."""

    __slots__ = ("text", "names", "otherwise", "mend", "quick", "_beyond", "_made")

    def __init__(self, text: str, names: tuple[str, ...], otherwise: Callable, mend: bool = False,
                 beyond: Callable | None = None) -> None:
        self.text, self.names, self.otherwise, self.mend = text, names, otherwise, mend
        self._made: dict[tuple, Any] = {}
        self._beyond = beyond  # takes what ``quick`` leaves alone; it answers NotImplemented otherwise
        self.quick: tuple = (None, None)  # (the cupy module, what launches there without Python, or None)

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        result = NotImplemented
        if device_code.enabled:
            if self.quick[1] is not None and self.quick[0] is cuda._cupy:
                result = self.quick[1](*arguments, out=out)
            if result is NotImplemented:
                result = self.launch(arguments, out)
        if result is NotImplemented:
            return self.otherwise(*arguments) if out is None else self.otherwise(*arguments, out=out)
        return result

    def launch(self, arguments: tuple, out: Any = None) -> Any:
        """The result of one kernel, or NotImplemented."""
        chars, key = operands(arguments)
        if chars is None:
            return NotImplemented
        made = self._made.get((*chars, cuda._cupy))
        if made is None:
            made = self._made[*chars, cuda._cupy] = self._make(chars)
        if made is NotImplemented:
            return NotImplemented
        flat, strided, dtype, pack, low, high = made
        numbers = [a for a, c in zip(arguments, chars) if c == "integer"] if "integer" in chars else ()
        if not all(low <= a <= high for a in numbers):
            return NotImplemented  # the type that is computed in does not hold it
        try:
            into = None if out is None else self._into(out, dtype, key, arguments)
            placed = place(key, into)
        except (NoKernel, ValueError):
            return NotImplemented
        if out is None:
            out = new(placed, dtype)
        if not placed.size:
            return out
        values = values_of(arguments, chars)
        if placed.flat:
            flat(
                (device_code.blocks(placed.size, device_code.THREADS * pack),),
                (device_code.THREADS,),
                (out, *values, placed.size),
            )
        else:
            strided(
                (device_code.blocks(placed.size),),
                (device_code.THREADS,),
                (out, *values, placed.layout, placed.size),
            )
        return out

    def _into(self, out: Any, dtype: np.dtype, key: tuple, arguments: tuple) -> tuple:
        """How memory lies that the result is to be written into; NoKernel where it must not be."""
        lies = (out.shape, out.strides, out.itemsize)
        if (
            out.dtype != dtype
            or out.shape != broadcast([k[0] for k in key])
            or 0 in [st for s, st in zip(out.shape, out.strides) if s > 1]
        ):
            raise NoKernel("another result")
        for a in arguments:
            if (
                isinstance(a, cuda._cupy.ndarray)
                and a.data.mem.ptr == out.data.mem.ptr
                and (a.data.ptr, a.shape, a.strides) != (out.data.ptr, out.shape, out.strides)
            ):
                raise NoKernel("memory that is read elsewhere")
        return lies

    def _make(self, chars: tuple[str, ...]) -> Any:
        try:
            written = write(self.text, self.names, chars, self.mend)
        except NoKernel:
            return NotImplemented
        name = "elementwise"
        source = elementwise_source(name, written)
        dtype = dtypes.rounded if written.result == "E" else np.dtype(written.result)
        pack = pack_of((*written.chars, written.result))
        flat, strided = (device_code.function(source, f"{name}_{how}") for how in ("flat", "strided"))
        low, high = limits(written)
        if self.quick[0] is not cuda._cupy:
            self.quick = cuda._cupy, device_launcher.quick(self._beyond)
        if (quick := self.quick[1]) is not None:
            kinds = "".join("n" if c == "number" else "i" if c == "integer" else "a" for c in chars)
            given = tuple([None if k != "a" else dtypes.rounded if c == "E" else np.dtype(c)
                           for k, c in zip(kinds, chars)])
            quick.add(flat, pack, dtype, kinds, given, max(low, -1 << 63), min(high, (1 << 63) - 1))
        return flat, strided, dtype, pack, low, high
