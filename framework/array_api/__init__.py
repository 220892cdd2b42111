"""The array API standard 2025.12: ``framework.array_api``, the namespace of ``Tensor.__array_namespace__()``.

NumPy-like names and rules over the same ops: results are tensors (``Array``, whose operators follow the
standard too) and stay in the graph, so programs written for the standard can be differentiated.

>>> xp = fw.tensor([1.0, 2.0]).__array_namespace__()
>>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0, keepdims=True)
tensor([[4, 6]])
"""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from ..config.listing import listing as _listing
from ..dtypes import bool_ as bool  # noqa: F401
from ..dtypes import complex64 as complex64
from ..dtypes import complex128 as complex128
from ..dtypes import float32 as float32
from ..dtypes import float64 as float64
from ..dtypes import int8 as int8
from ..dtypes import int16 as int16
from ..dtypes import int32 as int32
from ..dtypes import int64 as int64
from ..dtypes import uint8 as uint8
from ..dtypes import uint16 as uint16
from ..dtypes import uint32 as uint32
from ..dtypes import uint64 as uint64
from . import fft as fft
from . import linalg as linalg
from . import operators as operators
from .array import Array as Array
from .creation import arange as arange
from .creation import asarray as asarray
from .creation import empty as empty
from .creation import empty_like as empty_like
from .creation import eye as eye
from .creation import from_dlpack as from_dlpack
from .creation import full as full
from .creation import full_like as full_like
from .creation import linspace as linspace
from .creation import ones as ones
from .creation import ones_like as ones_like
from .creation import zeros as zeros
from .creation import zeros_like as zeros_like
from .data_types import astype as astype
from .data_types import can_cast as can_cast
from .data_types import finfo as finfo
from .data_types import iinfo as iinfo
from .data_types import isdtype as isdtype
from .data_types import result_type as result_type
from .elementwise import abs as abs
from .elementwise import acos as acos
from .elementwise import acosh as acosh
from .elementwise import add as add
from .elementwise import asin as asin
from .elementwise import asinh as asinh
from .elementwise import atan as atan
from .elementwise import atan2 as atan2
from .elementwise import atanh as atanh
from .elementwise import bitwise_and as bitwise_and
from .elementwise import bitwise_invert as bitwise_invert
from .elementwise import bitwise_left_shift as bitwise_left_shift
from .elementwise import bitwise_or as bitwise_or
from .elementwise import bitwise_right_shift as bitwise_right_shift
from .elementwise import bitwise_xor as bitwise_xor
from .elementwise import ceil as ceil
from .elementwise import clip as clip
from .elementwise import conj as conj
from .elementwise import copysign as copysign
from .elementwise import cos as cos
from .elementwise import cosh as cosh
from .elementwise import divide as divide
from .elementwise import equal as equal
from .elementwise import exp as exp
from .elementwise import expm1 as expm1
from .elementwise import floor as floor
from .elementwise import floor_divide as floor_divide
from .elementwise import greater as greater
from .elementwise import greater_equal as greater_equal
from .elementwise import hypot as hypot
from .elementwise import imag as imag
from .elementwise import isfinite as isfinite
from .elementwise import isinf as isinf
from .elementwise import isnan as isnan
from .elementwise import less as less
from .elementwise import less_equal as less_equal
from .elementwise import log as log
from .elementwise import log1p as log1p
from .elementwise import log2 as log2
from .elementwise import log10 as log10
from .elementwise import logaddexp as logaddexp
from .elementwise import logical_and as logical_and
from .elementwise import logical_not as logical_not
from .elementwise import logical_or as logical_or
from .elementwise import logical_xor as logical_xor
from .elementwise import maximum as maximum
from .elementwise import minimum as minimum
from .elementwise import multiply as multiply
from .elementwise import negative as negative
from .elementwise import nextafter as nextafter
from .elementwise import not_equal as not_equal
from .elementwise import positive as positive
from .elementwise import pow as pow
from .elementwise import real as real
from .elementwise import reciprocal as reciprocal
from .elementwise import remainder as remainder
from .elementwise import round as round
from .elementwise import sign as sign
from .elementwise import signbit as signbit
from .elementwise import sin as sin
from .elementwise import sinh as sinh
from .elementwise import sqrt as sqrt
from .elementwise import square as square
from .elementwise import subtract as subtract
from .elementwise import tan as tan
from .elementwise import tanh as tanh
from .elementwise import trunc as trunc
from .info import __array_namespace_info__ as __array_namespace_info__
from .linear import matmul as matmul
from .linear import tensordot as tensordot
from .linear import vecdot as vecdot
from .manipulation import broadcast_arrays as broadcast_arrays
from .manipulation import broadcast_shapes as broadcast_shapes
from .manipulation import broadcast_to as broadcast_to
from .manipulation import concat as concat
from .manipulation import expand_dims as expand_dims
from .manipulation import flip as flip
from .manipulation import matrix_transpose as matrix_transpose
from .manipulation import meshgrid as meshgrid
from .manipulation import moveaxis as moveaxis
from .manipulation import permute_dims as permute_dims
from .manipulation import repeat as repeat
from .manipulation import reshape as reshape
from .manipulation import roll as roll
from .manipulation import squeeze as squeeze
from .manipulation import stack as stack
from .manipulation import take as take
from .manipulation import take_along_axis as take_along_axis
from .manipulation import tile as tile
from .manipulation import tril as tril
from .manipulation import triu as triu
from .manipulation import unstack as unstack
from .searching import argmax as argmax
from .searching import argmin as argmin
from .searching import argsort as argsort
from .searching import isin as isin
from .searching import nonzero as nonzero
from .searching import searchsorted as searchsorted
from .searching import sort as sort
from .searching import unique_all as unique_all
from .searching import unique_counts as unique_counts
from .searching import unique_inverse as unique_inverse
from .searching import unique_values as unique_values
from .searching import where as where
from .statistics import all as all
from .statistics import any as any
from .statistics import count_nonzero as count_nonzero
from .statistics import cumulative_prod as cumulative_prod
from .statistics import cumulative_sum as cumulative_sum
from .statistics import diff as diff
from .statistics import max as max
from .statistics import mean as mean
from .statistics import min as min
from .statistics import prod as prod
from .statistics import std as std
from .statistics import sum as sum
from .statistics import var as var

newaxis = None
__array_api_version__ = "2025.12"

__dir__ = _listing(globals(), "fft linalg")
