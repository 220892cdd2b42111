"""Folds on GPUs: the sum, mean, greatest or least of a scalar expression over any dimensions, in one kernel.

No element of the expression is stored. The order of a sum depends on shapes and layouts only, so that two
runs give the same bits: where few results are made of many elements, several blocks share each, and the one
that ends last adds up what the others have left. Neighbours in memory are read 16 bytes at a time.
"""

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import cuda, device_code, device_launcher
from .cuda import (
    FLOATS,
    OPERANDS,
    NoKernel,
    broadcast,
    folded,
    operands,
    pack_of,
    strides_in,
    values_of,
    write,
)

_DIMS = 6
_PLAN = np.dtype(
    [
        ("results", "i8"),
        ("each", "i8"),
        ("result_dims", "i8"),
        ("each_dims", "i8"),
        ("columns", "i8"),
        ("near", "i8"),  # the elements of a result are neighbours, in all operands
        ("share", "i8"),  # how many of them a block takes
        ("lane_bits", "i8"),  # 2 ** this many threads make a result
        ("result_size", device_code.DIVISOR, (_DIMS,)),
        ("each_size", device_code.DIVISOR, (_DIMS,)),
        ("result_stride", "i8", (OPERANDS, _DIMS)),
        ("each_stride", "i8", (OPERANDS, _DIMS)),
    ]
)
_START = {"Sum": "C(0)", "Max": "-infinity<C>()", "Min": "infinity<C>()"}
_BY_NAME = {"sum": "Sum", "mean": "Sum", "amax": "Max", "amin": "Min"}
_BUSY = 1024  # blocks that keep a device busy
_BITS = device_code.THREADS.bit_length() - 1


def fold_source(how: str, written: Any) -> str:
    """The kernel ``fold``; how: Sum, Max or Min."""
    out = device_code.c_type(written.result)
    loads = " ".join(f"auto at_{n} = {n}[base[{j}] + to[{j}]];" for j, n in enumerate(written.arrays))
    typed = [(j, n, device_code.c_type(c)) for j, (n, c) in enumerate(zip(written.arrays, written.chars))]
    fits = " && ".join(f"aligned<{t}, V>({n} + base[{j}] + from)" for j, n, t in typed)
    packs = " ".join(f"auto pack_{n} = pack_at<{t}, V>({n} + base[{j}] + i);" for j, n, t in typed)
    parts = " ".join(f"auto at_{n} = pack_{n}.at[k];" for n in written.arrays)
    return f"""{written.text}
struct Plan {{
  i64 results, each, result_dims, each_dims, columns, near, share, lane_bits;
  Divisor result_size[{_DIMS}], each_size[{_DIMS}];
  i64 result_stride[{OPERANDS}][{_DIMS}], each_stride[{OPERANDS}][{_DIMS}];
}};
// a block of 256 threads makes 256 / lanes results; blocks of one column of the grid share theirs
extern "C" __global__ void fold({out}* out, {written.parameters}, Plan plan, double scale, C* parts,
int* tickets) {{
  constexpr int V = {pack_of(written.chars)};
  __shared__ C kept[{device_code.THREADS}];
  __shared__ int last;
  const int bits = int(plan.lane_bits), lanes = 1 << bits, many = {device_code.THREADS} >> bits;
  const int tid = threadIdx.x;
  int lane = tid & lanes - 1, own = tid >> bits;
  if (plan.columns) own = tid & many - 1, lane = tid >> {_BITS} - bits;
  i64 base[{len(written.arrays)}], to[{len(written.arrays)}];
  i64 o = i64(blockIdx.x) * many + own;
  i64 from = plan.share * blockIdx.y, end = from + plan.share < plan.each ? from + plan.share : plan.each;
  bool last_one = gridDim.y == 1;
  C x = {_START[how]};
  if (o < plan.results) {{
    offsets(o, int(plan.result_dims), plan.result_size, plan.result_stride, base);
    i64 r = from;
    if (plan.near && {fits}) {{
      for (i64 i = from + lane * V; i + V <= end; i += lanes * V) {{
        {packs}
#pragma unroll
        for (int k = 0; k < V; ++k) {{ {parts} x = {how}::of(x, C(each({written.arguments}))); }}
      }}
      if (from < end) r = end - (end - from) % V;
    }}
#pragma unroll 1
    for (r += lane; r < end; r += lanes) {{
      offsets(r, int(plan.each_dims), plan.each_size, plan.each_stride, to);
      {loads}
      x = {how}::of(x, C(each({written.arguments})));
    }}
  }}
#pragma unroll 1
  for (;;) {{
    kept[lane * many + own] = x;
    __syncthreads();
#pragma unroll 1
    for (int half = lanes / 2; half; half /= 2) {{
      if (lane < half) kept[lane * many + own] = {how}::of(kept[lane * many + own], kept[(lane + half) * many
      + own]);
      __syncthreads();
    }}
    x = kept[own];
    bool mine = lane == 0 && o < plan.results;
    if (last_one) {{
      if (mine) out[o] = Of<{out}>::down(C(x * C(scale)));
      return;
    }}
    if (mine) parts[i64(blockIdx.y) * plan.results + o] = x;
    __threadfence();
    __syncthreads();
    if (tid == 0) {{
      last = atomicAdd(&tickets[blockIdx.x], 1) == int(gridDim.y) - 1;
      if (last) tickets[blockIdx.x] = 0;  // for the next call
    }}
    __syncthreads();
    if (!last) return;
    __threadfence();
    last_one = true;  // once more, of the parts that all blocks have left
    x = {_START[how]};
    if (o < plan.results)
#pragma unroll 1
      for (i64 k = lane; k < gridDim.y; k += lanes) x = {how}::of(x, parts[k * plan.results + o]);
  }}
}}
"""


_plans: dict[tuple, Any] = {}
_tickets: dict[tuple, Any] = {}


def tickets(n: int) -> Any:
    """At least ``n`` counters that are 0, for kernels of the current stream that leave them so."""
    module = cuda.cupy()
    key = (module, int(module.cuda.runtime.getDevice()), module.cuda.get_current_stream().ptr)
    found = _tickets.get(key)
    if found is None or found.size < n:
        found = _tickets[key] = module.zeros(max(n, 1024), np.int32)
    return found


def plan_of(key: tuple, dims: tuple[int, ...]) -> tuple:
    """The plan of a fold over ``dims`` of operands of these (shape, strides, bytes of an element)."""
    found = _plans.get((key, dims))
    if found is not None:
        return found
    shape = broadcast([s for s, _, _ in key])
    strides = [strides_in(shape, *one) for one in key]
    kept = [d for d in range(len(shape)) if d not in dims]
    gone = sorted(dims, key=lambda d: -max(abs(st[d]) for st in strides))
    plan = np.zeros(1, _PLAN)
    parts_of = [folded([shape[d] for d in axes], [[st[d] for d in axes] for st in strides])
                for axes in (kept, gone)]
    for name, (sizes, lying) in zip(("result", "each"), parts_of):
        if len(sizes) > _DIMS:
            raise NoKernel("too many dimensions")
        plan[f"{name}_dims"] = len(sizes)
        plan[f"{name}_size"][0, : len(sizes)] = [device_code.divisor(s) for s in sizes]
        for j, st in enumerate(lying):
            plan[f"{name}_stride"][0, j, : len(sizes)] = st
    results, each = math.prod(shape[d] for d in kept), math.prod(shape[d] for d in dims)
    plan["results"], plan["each"] = results, each
    largest = strides[max(range(len(key)), key=lambda j: math.prod(key[j][0]))]
    near_kept = min((abs(largest[d]) for d in kept if shape[d] > 1 and largest[d]), default=1 << 62)
    near_gone = min((abs(largest[d]) for d in gone if shape[d] > 1 and largest[d]), default=1 << 62)
    columns = near_kept < near_gone
    near = not columns and len(parts_of[1][0]) == 1 and all(st == [1] for st in parts_of[1][1])
    plan["columns"], plan["near"] = columns, near
    most = max(8, device_code.THREADS // max(results, 1)) if columns else device_code.THREADS
    lanes, at_once = 1, 16 // max(item for _, _, item in key)
    pack = at_once if near else 1
    while lanes * 2 <= most and lanes * pack < each:
        lanes *= 2
    across = -(-results // (device_code.THREADS // lanes))
    parts = max(1, min(_BUSY // max(across, 1), -(-each // (lanes * max(16, 4 * pack)))))
    plan["share"], plan["lane_bits"] = -(-each // (parts * at_once)) * at_once, lanes.bit_length() - 1
    if len(_plans) > 4096:
        _plans.clear()
    found = _plans[key, dims] = (plan, (across, parts), results, each)
    return found


class DeviceFold:
    """Folds of one expression on a GPU: ``fold(name, dims, shape, *arguments)``, or NotImplemented."""

    def __init__(self, text: str, names: tuple[str, ...], mend: bool = False) -> None:
        self.text, self.names, self.mend = text, names, mend
        self._made: dict[tuple, Any] = {}

    def __call__(self, name: str, dims: tuple[int, ...], shape: tuple[int, ...], *arguments: Any,
                 to: str = "") -> Any:
        """The fold "amax", say, over ``dims`` of what the operands broadcast to, of ``shape``; to: the letter
        of the dtype that the result is rounded to, if it is not the operands'."""
        if not device_code.enabled or name not in _BY_NAME:
            return NotImplemented
        how = _BY_NAME[name]
        chars, key = operands(arguments)
        if chars is None:
            return NotImplemented
        made_for = (how, to, *chars, cuda._cupy)
        made = self._made.get(made_for)
        if made is None:
            made = self._made[made_for] = self._make(how, chars, to)
        if made is NotImplemented:
            return NotImplemented
        kernel, dtype, wide = made
        try:
            plan, grid, results, each = plan_of(key, dims)
        except (NoKernel, ValueError):
            return NotImplemented
        if not each or not results:
            return NotImplemented
        out = device_launcher.empty(shape, dtype)
        parts = counters = None
        if grid[1] > 1:
            parts, counters = device_launcher.empty((grid[1] * results,), wide), tickets(grid[0])
        scale = 1.0 / each if name == "mean" else 1.0
        kernel(
            grid,
            (device_code.THREADS,),
            (out, *values_of(arguments, chars), plan, scale, parts, counters),
        )
        return out

    def _make(self, how: str, chars: tuple[str, ...], to: str) -> Any:
        try:
            written = write(self.text, self.names, chars, self.mend)
        except NoKernel:
            return NotImplemented
        if written.result not in FLOATS:
            return NotImplemented
        wide = np.dtype("d" if written.result == "d" else "f")
        written = written._replace(result=to or written.result)
        dtype = dtypes.rounded if written.result == "E" else np.dtype(written.result)
        return device_code.function(fold_source(how, written), "fold"), dtype, wide


fold_of_elements = DeviceFold("x", ("x",))
