"""Kernels that read the same arrays, of which one native function computes two in one pass: a plan knows in
the forward pass what the backward is going to ask for. Kernels that take less in another order.
"""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from .. import _native
from ..backends.native import asked
from ..ops.image.conv import conv
from ..ops.image.joined import _conv_relu_op as conv_relu
from ..ops.image.pool import max_pool, max_position, max_spread
from ..ops.linalg.matmul import matmul_op
from ..ops.pointwise.activations import _relu as relu
from ..ops.shape.broadcast import sum_to
from ..ops.shape.join import stack_op
from ..ops.shape.view import permute_op, reshape_op
from .kernels import Array, Step

_EXAMPLE = np.zeros(1, np.float32)


@cache
def _pairs() -> dict[Any, tuple[Any, Any]]:
    """By the first one's native function: that of the second, and what gives both."""
    module: Any = _native.module
    first, second = asked(max_pool.cpu), asked(max_position.cpu)
    if first is None or second is None or not hasattr(module, "max_with_position"):
        return {}

    def one_by_one(x: Any, **windows: Any) -> tuple:
        return max_pool.cpu(x, **windows), max_position.cpu(x, **windows)
    return {first: (second, module.preferring(module.max_with_position, one_by_one))}


def _reads(step: Step) -> tuple | None:
    """What the step takes, to be compared; None where that cannot be."""
    if not all(type(x) is Array for x in step.operands):
        return None
    key = tuple([x.name for x in step.operands]), tuple(sorted(step.settings.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def paired(steps: list[Step]) -> list[Step]:
    """The steps, where two such are one."""
    kinds = _pairs()
    firsts = [i for i, step in enumerate(steps) if asked(step.kernel) in kinds]
    gone: set[int] = set()
    steps = list(steps)
    for i in firsts:
        step = steps[i]
        second, both = kinds[asked(step.kernel)]
        reads = _reads(step)
        at = next((j for j in range(i + 1, len(steps)) if j not in gone and asked(steps[j].kernel) is second
                   and _reads(steps[j]) == reads), None) if reads is not None else None
        if at is not None:
            steps[i] = Step(both, step.operands, step.settings, [step.results, steps[at].results], None)
            gone.add(at)
    return [step for i, step in enumerate(steps) if i not in gone]


def masked_early(steps: list[Step], outputs: list[str], shapes: dict) -> list[Step]:
    """The steps, where relu stands before max pooling and nobody else asks for the gradient between: its
    slope is that of the largest elements, whose gradients are masked before they are spread over the images.
    The bits are the same, since all other places get 0 either way, and the images are not needed any more.

    shapes: of the arrays that are known; those of new ones are added.
    """
    both = {one for _, one in _pairs().values()}
    largest = {(step.operands[0].name, step.results[1]): step.results[0]
               for step in steps if step.kernel in both}
    if not largest:
        return steps
    spreading, slope = asked(max_spread.cpu), relu.op.rules[0].on(_EXAMPLE)
    spread = {step.results: at for at, step in enumerate(steps) if asked(step.kernel) is spreading}
    readers = Counter([name for step in steps for name in step.reads] + outputs)
    steps = list(steps)
    for at, mask in enumerate(steps):
        if mask.kernel is not slope or not all(type(x) is Array for x in mask.operands):
            continue
        g, image = [x.name for x in mask.operands]
        if g not in spread or readers[g] != 1:
            continue
        before, name = steps[spread[g]], "m" + g
        given, places = before.operands
        top = largest.get((image, places.name), "")
        if top not in shapes:
            continue
        shapes[name] = shapes[top]
        steps[spread[g]] = Step(slope, (given, Array(top)), {}, name, shapes[top])
        steps[at] = Step(before.kernel, (Array(name), places), before.settings, mask.results, mask.shapes)
    return steps


@cache
def _convolutions() -> dict[Any, Any]:
    """By the kernel of a convolution: the one that gives the largest elements of windows of its results, and
    where they lie; and whether relu is between.
    """
    module: Any = _native.module
    if not _pairs() or not hasattr(module, "conv_max"):
        return {}
    (_, both), = _pairs().values()

    def then_pooled(kernel: Any) -> Any:
        def one_by_one(*operands: Any, windows: tuple, relu: bool, **layer: Any) -> Any:
            return both(kernel(*operands, **layer), **dict(zip(_WINDOWS, windows)))
        return module.preferring(module.conv_max, one_by_one)
    return {op.cpu: (then_pooled(op.cpu), op is conv_relu) for op in (conv, conv_relu)}


_WINDOWS = ("kernel", "stride", "padding", "dilation", "out")


def pooled_at_once(steps: list[Step], outputs: list[str]) -> list[Step]:
    """The steps, where convolutions of whose results only the largest elements of windows are asked for give
    these, image after image: the results are not kept.
    """
    both, kinds, gone = {one for _, one in _pairs().values()}, _convolutions(), set[int]()
    readers = Counter([name for step in steps for name in step.reads] + outputs)
    layers = {step.results: at for at, step in enumerate(steps)
              if isinstance(step.results, str) and readers[step.results] == 1 and step.kernel in kinds}
    steps = list(steps)
    for at, step in enumerate(steps):
        image = step.operands[0].name if step.kernel in both else None
        if image in layers:
            layer = steps[layers[image]]
            kernel, relu = kinds[layer.kernel]
            windows = tuple([step.settings[name] for name in _WINDOWS])
            settings = {**layer.settings, "relu": relu, "windows": windows}
            steps[at] = Step(kernel, layer.operands, settings, step.results, None)
            gone.add(layers[image])
    return [step for at, step in enumerate(steps) if at not in gone]


@cache
def _by_gate() -> Any:
    """A product and the slope of relu as one kernel; None where there is none."""
    module: Any = _native.module
    if not hasattr(module, "matmul_by_gate"):
        return None
    slope = relu.op.rules[0].on(_EXAMPLE)
    return module.preferring(module.matmul_by_gate, lambda x, y, out: slope(matmul_op.cpu(x, y), out))


def masked_in_products(steps: list[Step], outputs: list[str]) -> list[Step]:
    """The steps, where products of which only the slope of relu takes the result end in that."""
    kernel, gone = _by_gate(), set[int]()
    slope, product = relu.op.rules[0].on(_EXAMPLE), getattr(_native.module, "matmul", None)
    readers = Counter([name for step in steps for name in step.reads] + outputs)
    products = {step.results: at for at, step in enumerate(steps)
                if kernel is not None and isinstance(step.results, str) and readers[step.results] == 1
                and asked(step.kernel) is product and not step.settings}
    steps = list(steps)
    for at, mask in enumerate(steps):
        if mask.kernel is slope and all(type(x) is Array for x in mask.operands) \
                and mask.operands[0].name in products:
            before = products[mask.operands[0].name]
            operands = (*steps[before].operands, mask.operands[1])
            steps[at] = Step(kernel, operands, {}, mask.results, mask.shapes)
            gone.add(before)
    return [step for at, step in enumerate(steps) if at not in gone]


@cache
def _stack_in_order() -> Any:
    """The kernel that stacks arrays into one whose dimensions have that order in memory; None without one."""
    module: Any = _native.module
    if not hasattr(module, "stack_in_order"):
        return None

    def one_by_one(*xs: Any, dim: int, order: tuple) -> Any:
        turned = np.ascontiguousarray(stack_op.cpu(*xs, dim=dim).transpose(order))
        return turned.transpose(np.argsort(order))
    return module.preferring(module.stack_in_order, one_by_one)


def stacked_in_order(steps: list[Step], outputs: list[str]) -> list[Step]:
    """The steps, where what is stacked, turned and then seen in another shape (the gradient of a product for
    queries, keys and values) is stacked in the order of that shape, of which it is a view then.
    """
    readers = Counter([name for step in steps for name in step.reads] + outputs)
    alone = {step.operands[0].name: step for step in steps if step.kernel in (permute_op.cpu, reshape_op.cpu)
             and type(step.operands[0]) is Array and readers[step.operands[0].name] == 1}
    steps = list(steps)
    for at, step in enumerate(steps):
        turn = alone.get(step.results) if step.kernel is stack_op.cpu and _stack_in_order() else None
        if turn is None or turn.kernel is not permute_op.cpu or getattr(
                alone.get(turn.results), "kernel", None) is not reshape_op.cpu:
            continue
        dims = turn.settings.get("dims", turn.operands[-1])
        if type(dims) is tuple:
            steps[at] = Step(_stack_in_order(), step.operands, {**step.settings, "order": dims}, step.results,
                             step.shapes)
    return steps


@cache
def _of_parameters() -> Any:
    """The kernel that gives the gradients of a linear layer's weights and bias; None without one."""
    module: Any = _native.module
    if not hasattr(module, "linear_parameters"):
        return None

    def one_by_one(g: Any, x: Any, size: tuple) -> tuple:
        rows, left = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        return matmul_op.cpu(left.T, rows), sum_to.cpu(g, size=size)
    return module.preferring(module.linear_parameters, one_by_one)


def _said(step: Step, name: str) -> Any:
    return step.settings.get(name, step.operands[-1])


def parameters_at_once(steps: list[Step], outputs: list[str], own: Any) -> tuple[list[Step], list[str]]:
    """The steps, where the product for the gradient of weights and the sum for that of the bias are one,
    which reads both operands as they lie; and the outputs. What they give is new: it need not become the
    leaf's ``own``.
    """
    kernel = _of_parameters()
    sums: dict[str, list[int]] = {}
    made: dict[str, int] = {}
    for at, step in enumerate(steps):
        if kernel is not None and step.kernel is sum_to.cpu and len(_said(step, "size")) == 1:
            sums.setdefault(step.operands[0].name, []).append(at)
        made.update(dict.fromkeys([step.results] if isinstance(step.results, str) else step.results, at))
    readers = Counter([name for step in steps for name in step.reads] + outputs)

    def before(x: Any, view: Any) -> str:
        """What a view is of, which nobody else reads; else itself."""
        step = steps[made[x.name]] if x.name in made else None
        return step.operands[0].name if step is not None and step.kernel is view else x.name
    steps, fresh, gone = list(steps), dict[str, str](), set[int]()
    for at, step in enumerate(steps if sums else ()):
        if asked(step.kernel) is not asked(matmul_op.cpu) or len(step.operands) != 2 or step.settings:
            continue
        turned, right = step.operands
        turn = steps[made[turned.name]] if turned.name in made else step
        if turn.kernel is not permute_op.cpu or _said(turn, "dims") != (1, 0) or readers[turned.name] != 1:
            continue
        g = before(turn.operands[0], reshape_op.cpu)
        x, total = before(right, reshape_op.cpu), (sums.get(g) or [-1])[0]
        if total < 0 or made.get(x, -1) >= min(at, total):
            continue
        sums[g].pop(0)  # another layer may have the same gradient
        results = [step.results, steps[total].results]
        steps[min(at, total)] = Step(kernel, (Array(g), Array(x)), {"size": _said(steps[total], "size")},
                                     results, None)
        gone.add(max(at, total))
        fresh.update({r: r for r in results if readers[r] == 1})
    for at, step in enumerate(steps):
        if step.kernel is own and step.operands[0].name in fresh and outputs.count(step.results) == 1 \
                and readers[step.results] == 1:
            fresh[step.results] = step.operands[0].name
            gone.add(at)
    return [step for at, step in enumerate(steps) if at not in gone], [fresh.get(n, n) for n in outputs]
