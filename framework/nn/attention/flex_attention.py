"""Attention whose scores and mask are functions of one's own (Dong et al., arXiv:2412.05496).

``score_mod(score, batch, head, query, key)`` changes a score, ``mask_mod(batch, head, query, key)`` says
who may attend to whom. Each is called once, on tensors that broadcast to (B, H, L, S), so it must be
written with operations of elements and indices (PyTorch calls it under ``vmap``, which asks for the same).
It runs op by op, and the table of scores is made: memory grows with
L times S.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import creation
from ...device import as_device
from ...errors import ShapeError
from ...tensor import Tensor
from .. import functional as F

DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What ``flex_attention`` is to return besides: the logarithms of the sums, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an `AuxRequest`, (B, H, L) each."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _places(sizes: Any, device: Any) -> tuple[Any, ...]:
    """The four indices, of shapes that broadcast to the four ``sizes``."""
    return tuple(
        creation.arange(n, device=device).reshape([-1 if i == j else 1 for j in range(4)])  # type: ignore
        for i, n in enumerate(sizes)
    )


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Tensor:
    """The mask by which all attend to all."""
    return creation.ones((), dtype=bool)


def and_masks(*mask_mods: Callable) -> Callable:
    """The mask where all of these allow it.

    >>> from framework.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 1)
    >>> create_mask(near, 1, 1, 2, 2).int()[0, 0].tolist()
    [[1, 0], [0, 1]]
    """

    def both(b: Any, h: Any, q: Any, k: Any) -> Any:
        result = mask_mods[0](b, h, q, k)
        for mod in mask_mods[1:]:
            result = result & mod(b, h, q, k)
        return result

    return both


def or_masks(*mask_mods: Callable) -> Callable:
    """The mask where one of these allows it."""

    def either(b: Any, h: Any, q: Any, k: Any) -> Any:
        result = mask_mods[0](b, h, q, k)
        for mod in mask_mods[1:]:
            result = result | mod(b, h, q, k)
        return result

    return either


def create_mask(
    mod_fn: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) as booleans; of a function of five arguments the scores."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(shape, device)
    code = getattr(mod_fn, "__code__", None)
    if code is not None and code.co_argcount == 5:
        return mod_fn(creation.zeros(shape, device=device), *places).expand(shape)
    return mod_fn(*places).expand(shape).bool()


class BlockMask:
    """Which blocks of queries and keys have anything to do with each other, and the mask inside of them.

    kv_num_blocks (B, H, rows), kv_indices (B, H, rows, columns): how many and which blocks of keys each block
    of queries attends to, by ``mask_mod``; full_kv_...: those that it attends to whole. Made by
    `create_block_mask`, or from such tables by ``from_kv_blocks``.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        block_size: tuple[int, int],
        mask_mod: Callable,
    ) -> None:
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, block_size, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: Any = DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> "BlockMask":
        """A mask of tables of blocks; seq_lengths: default, all of the blocks.

        compute_q_blocks: changes nothing, those tables are made when they are asked for. Raises ShapeError
        for tables that do not fit each other.
        """
        if kv_indices.ndim < 2 or kv_num_blocks.shape != kv_indices.shape[:-1]:
            raise ShapeError(
                f"from_kv_blocks: kv_indices must be (..., rows, columns) and kv_num_blocks (..., rows), "
                f"got {list(kv_indices.shape)} and {list(kv_num_blocks.shape)}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError("from_kv_blocks: give both tables of full blocks, or none")
        block = _pair(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        lengths = seq_lengths or (rows * block[0], columns * block[1])
        return cls(
            lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            block,
            mask_mod or noop_mask,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, L, S)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are, masked ones included."""
        return math.prod(self.shape)

    def blocks(self) -> Tensor:
        """(B, H, rows, columns): 0 for blocks left out, 1 for those with a mask inside, 2 for full ones."""
        partial = _table(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return partial
        full: Any = _table(self.full_kv_num_blocks, self.full_kv_indices)
        return partial + 2 * full

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns): 1 for the blocks that are looked at."""
        return (self.blocks() > 0).int()  # type: ignore[attr-defined]

    def sparsity(self) -> float:
        """How many in a hundred scores are in blocks that are left out; blocks over the edge count whole."""
        blocks: Any = self.to_dense()
        return 100.0 * (1.0 - int(blocks.sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def allowed(self, device: Any = None) -> Tensor:
        """The whole mask (B, H, L, S)."""
        rows, columns = self.seq_lengths
        kinds: Any = self.blocks()
        kinds = kinds.repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)
        kinds = kinds[..., :rows, :columns]
        sizes = (1,) * (4 - kinds.ndim) + tuple(kinds.shape)
        inside = self.mask_mod(*_places(sizes, device)).expand(sizes).reshape(kinds.shape).bool()
        return (kinds == 2) | (kinds == 1) & inside

    def _turned(self) -> tuple[Tensor, Tensor]:
        return _listed((self.blocks() == 1).int().transpose(-1, -2))  # type: ignore[attr-defined]

    @property
    def q_num_blocks(self) -> Tensor:
        """How many blocks of queries attend to each block of keys, by the mask."""
        return self._turned()[0]

    @property
    def q_indices(self) -> Tensor:
        """Which blocks of queries these are, those first."""
        return self._turned()[1]

    def to(self, device: Any) -> "BlockMask":
        """The mask with its tables on another device."""
        moved: list[Any] = [
            None if x is None else x.to(device)
            for x in (  # type: ignore[attr-defined]
                self.kv_num_blocks,
                self.kv_indices,
                self.full_kv_num_blocks,
                self.full_kv_indices,
            )
        ]
        kv, places, full, full_places = moved
        return BlockMask(self.seq_lengths, kv, places, full, full_places, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index: Any) -> "BlockMask":
        """The mask of some of the batch, heads or blocks of queries."""
        parts: list[Any] = [
            None if x is None else x[index]
            for x in (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        ]
        return BlockMask.from_kv_blocks(
            *parts,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,  # type: ignore
            seq_lengths=self.seq_lengths,
        )

    def __repr__(self) -> str:
        return f"BlockMask(shape={tuple(self.shape)}, sparsity={self.sparsity():.2f}%)"


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _table(counts: Any, indices: Any) -> Any:
    """1 at the indices that count, in each row."""
    columns = indices.shape[-1]
    counted = creation.arange(columns, device=indices.device) < counts[..., None]
    return creation.zeros(indices.shape, dtype="int32", device=indices.device).scatter_reduce(  # type: ignore
        -1, indices.long(), counted.int(), "amax", include_self=True
    )


def _listed(table: Any) -> tuple[Any, Any]:
    """The inverse of ``_table``: how many there are in each row, and which, those first."""
    return table.sum(-1).int(), (-table).argsort(dim=-1, stable=True).int()


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """The `BlockMask` of ``mask_mod``; B, H None: the same for all.

    >>> from framework.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
    BlockMask(shape=(1, 1, 256, 256), sparsity=25.00%)
    """
    block = _pair(BLOCK_SIZE)
    mask: Any = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // block[0]), -(-KV_LEN // block[1])
    padded = F.pad(mask.int(), (0, columns * block[1] - KV_LEN, 0, rows * block[0] - Q_LEN))
    sums: Any = padded.reshape(*mask.shape[:2], rows, block[0], columns, block[1]).sum((-3, -1))
    full = sums == block[0] * block[1]
    return BlockMask(
        (Q_LEN, KV_LEN), *_listed(((sums > 0) & ~full).int()), *_listed(full.int()), block, mask_mod
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores changed by ``score_mod`` and masked by ``block_mask``.

    ``softmax(score_mod(scale * query @ key^T)) @ value``: query (B, Hq, L, E), key (B, H, S, E), value
    (B, H, S, D), result (B, Hq, L, D), with zeros for queries that may attend to nothing. scale: default
    1 / sqrt(E). enable_gqa: Hq is a multiple of H, and heads of queries share keys. return_lse: also the
    logarithms of the sums of exponentials, (B, Hq, L). kernel_options: taken; there is one way to compute it.
    Raises ShapeError.

    >>> from framework.nn.attention.flex_attention import flex_attention
    >>> q = k = v = fw.ones(1, 1, 2, 4)
    >>> flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j)).shape
    (1, 1, 2, 4)
    """
    q, k, v = query, key, value  # type: Any, Any, Any
    for name, x in (("query", q), ("key", k), ("value", v)):
        if x.ndim != 4:
            raise ShapeError(
                f"flex_attention: {name} must be (batch, heads, length, features), got {list(x.shape)}"
            )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"flex_attention: query {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)} do not fit"
        )
    if q.shape[1] != k.shape[1]:
        if not enable_gqa or q.shape[1] % k.shape[1]:
            raise ShapeError(
                f"flex_attention: {q.shape[1]} heads of queries and {k.shape[1]} of keys; enable_gqa=True "
                f"shares keys among heads where the one is a multiple of the other"
            )
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    scores: Any = (q * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)) @ k.transpose(-1, -2)
    b, h, rows, columns = scores.shape
    device = as_device(q.device)
    if score_mod is not None:
        scores = score_mod(scores, *_places(scores.shape, device)).expand(b, h, rows, columns)
    if block_mask is not None:
        if block_mask.seq_lengths != (rows, columns):
            raise ShapeError(
                f"flex_attention: the mask is for {block_mask.seq_lengths} queries and keys, these are "
                f"{rows} and {columns}"
            )
        scores = scores.masked_fill(~block_mask.allowed(device), -math.inf)
    largest = scores.detach().amax(-1, keepdim=True)
    top = largest.masked_fill(largest == -math.inf, 0.0)
    weights = (scores - top).exp()
    total = weights.sum(-1, keepdim=True)
    out = (weights / total.masked_fill(total == 0, 1.0)).to(v.dtype) @ v
    if not return_lse and return_aux is None:
        return out
    lse = (total.log() + top)[..., 0]
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse if return_aux.lse else None, largest[..., 0] if return_aux.max_scores else None)
