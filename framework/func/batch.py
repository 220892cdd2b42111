"""``vmap``, which calls the function once per slice, and what belongs to runs over many slices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ..ops.shape.join import stack
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor
from .tree import flatten, spread


class Draws:
    """How the runs of one function may use the random generator of the CPU."""

    def __init__(self, randomness: str, op: str) -> None:
        if randomness not in ("error", "same", "different"):
            raise ValueError(f"{op}: randomness must be 'error', 'same' or 'different', got {randomness!r}")
        self.randomness, self.op = randomness, op
        self.before = get_rng_state() if randomness != "different" else None

    @contextmanager
    def once(self) -> Iterator[None]:
        """One run."""
        if self.before is None:
            yield
            return
        if self.randomness == "same":
            set_rng_state(self.before)
        yield
        if self.randomness == "error" and get_rng_state().tolist() != self.before.tolist():
            raise RuntimeError(f"{self.op}: the function drew random numbers; pass randomness='same' (every "
                               f"run draws the same ones) or randomness='different'")


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable:
    """``func``, written for one example, as a function of a batch.

    It is called once per example and the results are stacked: as quick as the loop it replaces, and no
    quicker. in_dims: the batch dimension of every tensor argument, or a tuple with one entry (an int, None
    for "the same for all", or a nest of these) per argument. out_dims: where the batch dimension of the
    outputs goes. randomness: "error", "same" or "different" numbers for the examples. chunk_size has no
    effect. Raises ValueError if sizes differ or nothing is batched. Nests, and can be differentiated.

    >>> fw.func.vmap(fw.dot)(fw.ones(2, 3), fw.ones(2, 3))
    tensor([3., 3.])
    """
    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = flatten(args)
        dims = spread(in_dims, args, "vmap", "in_dims")
        size = _batch_size(leaves, dims)
        draws = Draws(randomness, "vmap")
        outs = []
        for i in range(size):
            with draws.once():
                one = [x if d is None or not isinstance(x, Tensor)
                       else x.select(d, i) for x, d in zip(leaves, dims)]  # type: ignore[attr-defined]
                outs.append(func(*spec.build(one), **kwargs))
        return _stacked(outs, out_dims)
    return run


def _batch_size(leaves: list, dims: list) -> int:
    sizes = set()
    for x, d in zip(leaves, dims):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise TypeError(f"vmap: in_dims={d} is for a Tensor, the argument is {type(x).__name__}; give "
                            f"None for it")
        if not -x.ndim <= d < x.ndim:
            raise IndexError(f"vmap: in_dims={d} is out of range for a tensor of shape {list(x.shape)}")
        sizes.add(x.shape[d])
    if len(sizes) != 1:
        raise ValueError("vmap: no argument has a batch dimension (in_dims are all None)" if not sizes else
                         f"vmap: the batch dimensions have different sizes: {sorted(sizes)}")
    (size,) = sizes
    if not size:
        raise ValueError("vmap: the batch is empty, so what the function returns cannot be learned")
    return size


def _stacked(outs: Sequence, out_dims: Any) -> Any:
    flat = [flatten(out)[0] for out in outs]
    spec = flatten(outs[0])[1]
    for leaf in flat[0]:
        if not isinstance(leaf, Tensor):
            raise TypeError(f"vmap: the function must return Tensors (or nests of them), found "
                            f"{type(leaf).__name__}")
    dims = spread(out_dims, outs[0], "vmap", "out_dims")
    if None in dims:
        raise ValueError("vmap: out_dims=None is not possible: every output has a batch dimension")
    return spec.build([stack([leaves[k] for leaves in flat], d) for k, d in enumerate(dims)])
