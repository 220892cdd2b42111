"""Sparse tensors: see docs/sparse.md. Loaded when a program first names it, or makes a tensor sparse."""

from ..config.listing import listing as _listing
from . import methods as methods
from . import shapes as shapes
from .arithmetic import dispatch as dispatch
from .convert import from_scipy as from_scipy
from .convert import sparse_mask as sparse_mask
from .convert import to_dense as to_dense
from .convert import to_scipy as to_scipy
from .convert import to_sparse as to_sparse
from .convert import to_sparse_bsc as to_sparse_bsc
from .convert import to_sparse_bsr as to_sparse_bsr
from .convert import to_sparse_coo as to_sparse_coo
from .convert import to_sparse_csc as to_sparse_csc
from .convert import to_sparse_csr as to_sparse_csr
from .gradient import accumulate as accumulate
from .gradient import like as like
from .gradient import merged_values as merged_values
from .gradient import of_rows as of_rows
from .gradient import owned as owned
from .gradient import plus as plus
from .gradient import rows_of as rows_of
from .make import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from .make import empty_like as empty_like
from .make import equal as equal
from .make import put_together as put_together
from .make import sparse_bsc_tensor as sparse_bsc_tensor
from .make import sparse_bsr_tensor as sparse_bsr_tensor
from .make import sparse_compressed_tensor as sparse_compressed_tensor
from .make import sparse_coo_tensor as sparse_coo_tensor
from .make import sparse_csc_tensor as sparse_csc_tensor
from .make import sparse_csr_tensor as sparse_csr_tensor
from .make import taken_apart as taken_apart
from .make import zeros_like as zeros_like
from .products import addmm as addmm
from .products import hspmm as hspmm
from .products import mm as mm
from .products import product as product
from .products import sampled_addmm as sampled_addmm
from .products import smm as smm
from .reduce import log_softmax as log_softmax
from .reduce import softmax as softmax
from .reduce import spdiags as spdiags
from .reduce import sum as sum
from .shapes import filled_like as filled_like
from .tensor import SparseTensor as SparseTensor
from .typed import TYPES as _TYPES
from .typed import SparseSemiStructuredTensor as SparseSemiStructuredTensor
from .typed import to_sparse_semi_structured as to_sparse_semi_structured

dsmm = spmm = mm
BFloat16Tensor = _TYPES["BFloat16Tensor"]
BoolTensor = _TYPES["BoolTensor"]
ByteTensor = _TYPES["ByteTensor"]
CharTensor = _TYPES["CharTensor"]
DoubleTensor = _TYPES["DoubleTensor"]
FloatTensor = _TYPES["FloatTensor"]
HalfTensor = _TYPES["HalfTensor"]
IntTensor = _TYPES["IntTensor"]
LongTensor = _TYPES["LongTensor"]
ShortTensor = _TYPES["ShortTensor"]

__dir__ = _listing(globals())
