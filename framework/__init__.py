"""A deep-learning research framework with PyTorch's public API, over NumPy and CuPy."""

from importlib import import_module as _import_module
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any as _Any

from .collector import patience as _patience  # first: it is for what comes

# isort: split
from . import errors as errors
from . import ops as ops
from . import protocols as _protocols
from .autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from .autograd.mode import enable_grad as enable_grad
from .autograd.mode import inference_mode as inference_mode
from .autograd.mode import is_grad_enabled as is_grad_enabled
from .autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd.mode import no_grad as no_grad
from .autograd.mode import set_grad_enabled as set_grad_enabled
from .backends import cuda as _gpus
from .backends import forking as _forking
from .backends.precision import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from .backends.precision import get_deterministic_debug_mode as get_deterministic_debug_mode
from .backends.precision import get_float32_matmul_precision as get_float32_matmul_precision
from .backends.precision import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from .backends.precision import set_deterministic_debug_mode as set_deterministic_debug_mode
from .backends.precision import set_float32_matmul_precision as set_float32_matmul_precision
from .backends.precision import use_deterministic_algorithms as use_deterministic_algorithms
from .backends.threads import get_num_threads as get_num_threads
from .backends.threads import set_flush_denormal as set_flush_denormal
from .backends.threads import set_num_threads as set_num_threads
from .checks import _assert as _assert
from .checks import _check as _check
from .checks import _check_index as _check_index
from .checks import _check_is_size as _check_is_size
from .checks import _check_not_implemented as _check_not_implemented
from .checks import _check_type as _check_type
from .checks import _check_value as _check_value
from .creation import arange as arange
from .creation import empty as empty
from .creation import empty_like as empty_like
from .creation import empty_permuted as empty_permuted
from .creation import empty_strided as empty_strided
from .creation import eye as eye
from .creation import full as full
from .creation import full_like as full_like
from .creation import is_floating_point as is_floating_point
from .creation import is_tensor as is_tensor
from .creation import linspace as linspace
from .creation import logspace as logspace
from .creation import numel as numel
from .creation import ones as ones
from .creation import ones_like as ones_like
from .creation import range_ as range
from .creation import scalar_tensor as scalar_tensor
from .creation import zeros as zeros
from .creation import zeros_like as zeros_like
from .device import Device as device
from .device import get_default_device as get_default_device
from .device import set_default_device as set_default_device
from .doors import hang as _hang
from .dtypes import DType as dtype
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool_ as bool
from .dtypes import can_cast as can_cast
from .dtypes import complex64 as cfloat
from .dtypes import complex64 as complex64
from .dtypes import complex128 as cdouble
from .dtypes import complex128 as complex128
from .dtypes import finfo as finfo
from .dtypes import float16 as float16
from .dtypes import float16 as half
from .dtypes import float32 as float
from .dtypes import float32 as float32
from .dtypes import float64 as double
from .dtypes import float64 as float64
from .dtypes import get_default_dtype as get_default_dtype
from .dtypes import iinfo as iinfo
from .dtypes import int8 as int8
from .dtypes import int16 as int16
from .dtypes import int16 as short
from .dtypes import int32 as int
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import int64 as long
from .dtypes import promote_types as promote_types
from .dtypes import set_default_dtype as set_default_dtype
from .dtypes import uint8 as uint8
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .errors import OutOfMemoryError as OutOfMemoryError
from .from_data import as_tensor as as_tensor
from .from_data import asarray as asarray
from .from_data import from_dlpack as from_dlpack
from .from_data import from_numpy as from_numpy
from .from_data import frombuffer as frombuffer
from .from_data import tensor as tensor
from .layouts import Layout as layout
from .layouts import jagged as jagged
from .layouts import sparse_bsc as sparse_bsc
from .layouts import sparse_bsr as sparse_bsr
from .layouts import sparse_coo as sparse_coo
from .layouts import sparse_csc as sparse_csc
from .layouts import sparse_csr as sparse_csr
from .layouts import strided as strided
from .memory_formats import MemoryFormat as memory_format
from .memory_formats import channels_last as channels_last
from .memory_formats import channels_last_3d as channels_last_3d
from .memory_formats import contiguous_format as contiguous_format
from .memory_formats import contiguous_format as legacy_contiguous_format
from .memory_formats import preserve_format as preserve_format

# functions of the rooms, written by framework.ops.stub
from .ops.convert.cast import clone as clone
from .ops.convert.types import is_same_size as is_same_size
from .ops.convert.types import is_signed as is_signed
from .ops.convert.types import result_type as result_type
from .ops.copies import alias_copy as alias_copy
from .ops.copies import alias_copy as detach_copy
from .ops.copies import as_strided_copy as as_strided_copy
from .ops.copies import diagonal_copy as diagonal_copy
from .ops.copies import expand_copy as expand_copy
from .ops.copies import permute_copy as permute_copy
from .ops.copies import select_copy as select_copy
from .ops.copies import slice_copy as slice_copy
from .ops.copies import split_copy as split_copy
from .ops.copies import split_with_sizes_copy as split_with_sizes_copy
from .ops.copies import squeeze_copy as squeeze_copy
from .ops.copies import t_copy as t_copy
from .ops.copies import transpose_copy as transpose_copy
from .ops.copies import unbind_copy as unbind_copy
from .ops.copies import unfold_copy as unfold_copy
from .ops.copies import unsqueeze_copy as unsqueeze_copy
from .ops.copies import view_as_complex_copy as view_as_complex_copy
from .ops.copies import view_as_real_copy as view_as_real_copy
from .ops.copies import view_copy as view_copy
from .ops.image.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from .ops.image.conv import conv1d as conv1d
from .ops.image.conv import conv2d as conv2d
from .ops.image.conv import conv3d as conv3d
from .ops.image.conv import conv_transpose1d as conv_transpose1d
from .ops.image.conv import conv_transpose2d as conv_transpose2d
from .ops.image.conv import conv_transpose3d as conv_transpose3d
from .ops.image.other_names import conv_tbc as conv_tbc
from .ops.image.other_names import native_channel_shuffle as native_channel_shuffle
from .ops.image.pixel_shuffle import channel_shuffle as channel_shuffle
from .ops.image.pixel_shuffle import pixel_shuffle as pixel_shuffle
from .ops.image.pixel_shuffle import pixel_unshuffle as pixel_unshuffle
from .ops.image.pool import avg_pool1d as avg_pool1d
from .ops.image.pool import max_pool1d as max_pool1d
from .ops.image.pool import max_pool2d as max_pool2d
from .ops.image.pool import max_pool3d as max_pool3d
from .ops.index.index import index_add as index_add
from .ops.index.index import index_copy as index_copy
from .ops.index.index import index_fill as index_fill
from .ops.index.index import index_select as index_select
from .ops.index.index import take as take
from .ops.index.masks import masked_scatter as masked_scatter
from .ops.index.masks import masked_select as masked_select
from .ops.index.nonzero import argwhere as argwhere
from .ops.index.nonzero import isin as isin
from .ops.index.nonzero import nonzero as nonzero
from .ops.index.nonzero import nonzero_static as nonzero_static
from .ops.index.nonzero import unravel_index as unravel_index
from .ops.index.repeat import combinations as combinations
from .ops.index.repeat import repeat_interleave as repeat_interleave
from .ops.index.scatter import gather as gather
from .ops.index.scatter import scatter as scatter
from .ops.index.scatter import scatter_add as scatter_add
from .ops.index.scatter import take_along_dim as take_along_dim
from .ops.index.scatter_reduce import index_reduce as index_reduce
from .ops.index.scatter_reduce import scatter_reduce as scatter_reduce
from .ops.index.setitem import index_put as index_put
from .ops.index.setitem import put as put
from .ops.inplace_functions import abs_ as abs_
from .ops.inplace_functions import acos_ as acos_
from .ops.inplace_functions import acosh_ as acosh_
from .ops.inplace_functions import addmv_ as addmv_
from .ops.inplace_functions import arccos_ as arccos_
from .ops.inplace_functions import arccosh_ as arccosh_
from .ops.inplace_functions import arcsin_ as arcsin_
from .ops.inplace_functions import arcsinh_ as arcsinh_
from .ops.inplace_functions import arctan_ as arctan_
from .ops.inplace_functions import arctanh_ as arctanh_
from .ops.inplace_functions import as_strided_ as as_strided_
from .ops.inplace_functions import asin_ as asin_
from .ops.inplace_functions import asinh_ as asinh_
from .ops.inplace_functions import atan_ as atan_
from .ops.inplace_functions import atanh_ as atanh_
from .ops.inplace_functions import ceil_ as ceil_
from .ops.inplace_functions import celu_ as celu_
from .ops.inplace_functions import clamp_ as clamp_
from .ops.inplace_functions import clamp_max_ as clamp_max_
from .ops.inplace_functions import clamp_min_ as clamp_min_
from .ops.inplace_functions import clip_ as clip_
from .ops.inplace_functions import cos_ as cos_
from .ops.inplace_functions import cosh_ as cosh_
from .ops.inplace_functions import deg2rad_ as deg2rad_
from .ops.inplace_functions import detach_ as detach_
from .ops.inplace_functions import erf_ as erf_
from .ops.inplace_functions import erfc_ as erfc_
from .ops.inplace_functions import exp2_ as exp2_
from .ops.inplace_functions import exp_ as exp_
from .ops.inplace_functions import expm1_ as expm1_
from .ops.inplace_functions import fill_ as fill_
from .ops.inplace_functions import fix_ as fix_
from .ops.inplace_functions import floor_ as floor_
from .ops.inplace_functions import frac_ as frac_
from .ops.inplace_functions import gcd_ as gcd_
from .ops.inplace_functions import i0_ as i0_
from .ops.inplace_functions import index_put_ as index_put_
from .ops.inplace_functions import lcm_ as lcm_
from .ops.inplace_functions import log1p_ as log1p_
from .ops.inplace_functions import log2_ as log2_
from .ops.inplace_functions import log10_ as log10_
from .ops.inplace_functions import log_ as log_
from .ops.inplace_functions import logit_ as logit_
from .ops.inplace_functions import nan_to_num_ as nan_to_num_
from .ops.inplace_functions import neg_ as neg_
from .ops.inplace_functions import negative_ as negative_
from .ops.inplace_functions import rad2deg_ as rad2deg_
from .ops.inplace_functions import reciprocal_ as reciprocal_
from .ops.inplace_functions import relu_ as relu_
from .ops.inplace_functions import round_ as round_
from .ops.inplace_functions import rsqrt_ as rsqrt_
from .ops.inplace_functions import selu_ as selu_
from .ops.inplace_functions import sigmoid_ as sigmoid_
from .ops.inplace_functions import sin_ as sin_
from .ops.inplace_functions import sinc_ as sinc_
from .ops.inplace_functions import sinh_ as sinh_
from .ops.inplace_functions import sqrt_ as sqrt_
from .ops.inplace_functions import square_ as square_
from .ops.inplace_functions import tan_ as tan_
from .ops.inplace_functions import tanh_ as tanh_
from .ops.inplace_functions import threshold_ as threshold_
from .ops.inplace_functions import trunc_ as trunc_
from .ops.inplace_functions import xlogy_ as xlogy_
from .ops.inplace_functions import zero_ as zero_
from .ops.linalg.decompositions import _cholesky as cholesky
from .ops.linalg.determinant import det as det
from .ops.linalg.determinant import logdet as logdet
from .ops.linalg.determinant import slogdet as slogdet
from .ops.linalg.distances import cdist as cdist
from .ops.linalg.distances import cosine_similarity as cosine_similarity
from .ops.linalg.distances import dist as dist
from .ops.linalg.distances import pairwise_distance as pairwise_distance
from .ops.linalg.distances import pdist as pdist
from .ops.linalg.einsum import bilinear as bilinear
from .ops.linalg.einsum import einsum as einsum
from .ops.linalg.lu import lu_unpack as lu_unpack
from .ops.linalg.made_matrices import orgqr as orgqr
from .ops.linalg.made_matrices import vander as vander
from .ops.linalg.matmul import bmm as bmm
from .ops.linalg.matmul import matmul as matmul
from .ops.linalg.matmul import mm as mm
from .ops.linalg.norm import norm as norm
from .ops.linalg.older_names import geqrf as geqrf
from .ops.linalg.older_names import lu as lu
from .ops.linalg.older_names import lu_solve as lu_solve
from .ops.linalg.older_names import ormqr as ormqr
from .ops.linalg.older_names import pca_lowrank as pca_lowrank
from .ops.linalg.older_names import qr as qr
from .ops.linalg.older_names import svd as svd
from .ops.linalg.older_names import svd_lowrank as svd_lowrank
from .ops.linalg.older_names import triangular_solve as triangular_solve
from .ops.linalg.powers import matrix_exp as matrix_exp
from .ops.linalg.powers import matrix_power as matrix_power
from .ops.linalg.products import addbmm as addbmm
from .ops.linalg.products import addmm as addmm
from .ops.linalg.products import addmv as addmv
from .ops.linalg.products import addr as addr
from .ops.linalg.products import baddbmm as baddbmm
from .ops.linalg.products import cross as cross
from .ops.linalg.products import dot as dot
from .ops.linalg.products import inner as inner
from .ops.linalg.products import kron as kron
from .ops.linalg.products import mv as mv
from .ops.linalg.products import outer as ger
from .ops.linalg.products import outer as outer
from .ops.linalg.products import tensordot as tensordot
from .ops.linalg.products import vdot as vdot
from .ops.linalg.rank import pinverse as pinverse
from .ops.linalg.systems import cholesky_inverse as cholesky_inverse
from .ops.linalg.systems import cholesky_solve as cholesky_solve
from .ops.linalg.systems import inverse as inverse
from .ops.main_forms import alpha_dropout as alpha_dropout
from .ops.main_forms import batch_norm as batch_norm
from .ops.main_forms import constant_pad_nd as constant_pad_nd
from .ops.main_forms import dropout as dropout
from .ops.main_forms import dropout_ as dropout_
from .ops.main_forms import embedding as embedding
from .ops.main_forms import feature_alpha_dropout as feature_alpha_dropout
from .ops.main_forms import grid_sampler as grid_sampler
from .ops.main_forms import grid_sampler_2d as grid_sampler_2d
from .ops.main_forms import grid_sampler_3d as grid_sampler_3d
from .ops.main_forms import group_norm as group_norm
from .ops.main_forms import instance_norm as instance_norm
from .ops.main_forms import layer_norm as layer_norm
from .ops.main_forms import native_batch_norm as native_batch_norm
from .ops.main_forms import native_dropout as native_dropout
from .ops.main_forms import native_group_norm as native_group_norm
from .ops.main_forms import native_layer_norm as native_layer_norm
from .ops.normalization.moments import rms_norm as rms_norm
from .ops.pointwise.activations import _relu as relu
from .ops.pointwise.activations import celu as celu
from .ops.pointwise.activations import hardshrink as hardshrink
from .ops.pointwise.activations import prelu as prelu
from .ops.pointwise.activations import selu as selu
from .ops.pointwise.activations import threshold as threshold
from .ops.pointwise.arithmetic import abs as abs
from .ops.pointwise.arithmetic import abs as absolute
from .ops.pointwise.arithmetic import add as add
from .ops.pointwise.arithmetic import addcdiv as addcdiv
from .ops.pointwise.arithmetic import addcmul as addcmul
from .ops.pointwise.arithmetic import atan2 as arctan2
from .ops.pointwise.arithmetic import atan2 as atan2
from .ops.pointwise.arithmetic import copysign as copysign
from .ops.pointwise.arithmetic import div as div
from .ops.pointwise.arithmetic import div as divide
from .ops.pointwise.arithmetic import div as true_divide
from .ops.pointwise.arithmetic import float_power as float_power
from .ops.pointwise.arithmetic import floor_divide as floor_divide
from .ops.pointwise.arithmetic import fmax as fmax
from .ops.pointwise.arithmetic import fmin as fmin
from .ops.pointwise.arithmetic import fmod as fmod
from .ops.pointwise.arithmetic import gcd as gcd
from .ops.pointwise.arithmetic import heaviside as heaviside
from .ops.pointwise.arithmetic import lcm as lcm
from .ops.pointwise.arithmetic import lerp as lerp
from .ops.pointwise.arithmetic import maximum as maximum
from .ops.pointwise.arithmetic import minimum as minimum
from .ops.pointwise.arithmetic import mul as mul
from .ops.pointwise.arithmetic import mul as multiply
from .ops.pointwise.arithmetic import neg as neg
from .ops.pointwise.arithmetic import neg as negative
from .ops.pointwise.arithmetic import positive as positive
from .ops.pointwise.arithmetic import pow as pow
from .ops.pointwise.arithmetic import reciprocal as reciprocal
from .ops.pointwise.arithmetic import remainder as remainder
from .ops.pointwise.arithmetic import rsub as rsub
from .ops.pointwise.arithmetic import sign as sign
from .ops.pointwise.arithmetic import square as square
from .ops.pointwise.arithmetic import sub as sub
from .ops.pointwise.arithmetic import sub as subtract
from .ops.pointwise.choose import clamp as clamp
from .ops.pointwise.choose import clamp as clip
from .ops.pointwise.choose import clamp_max as clamp_max
from .ops.pointwise.choose import clamp_min as clamp_min
from .ops.pointwise.choose import masked_fill as masked_fill
from .ops.pointwise.choose import nan_to_num as nan_to_num
from .ops.pointwise.choose import where as where
from .ops.pointwise.compare import allclose as allclose
from .ops.pointwise.compare import bitwise_and as bitwise_and
from .ops.pointwise.compare import bitwise_left_shift as bitwise_left_shift
from .ops.pointwise.compare import bitwise_not as bitwise_not
from .ops.pointwise.compare import bitwise_or as bitwise_or
from .ops.pointwise.compare import bitwise_right_shift as bitwise_right_shift
from .ops.pointwise.compare import bitwise_xor as bitwise_xor
from .ops.pointwise.compare import eq as eq
from .ops.pointwise.compare import equal as equal
from .ops.pointwise.compare import ge as ge
from .ops.pointwise.compare import ge as greater_equal
from .ops.pointwise.compare import gt as greater
from .ops.pointwise.compare import gt as gt
from .ops.pointwise.compare import is_nonzero as is_nonzero
from .ops.pointwise.compare import isclose as isclose
from .ops.pointwise.compare import isfinite as isfinite
from .ops.pointwise.compare import isinf as isinf
from .ops.pointwise.compare import isnan as isnan
from .ops.pointwise.compare import isneginf as isneginf
from .ops.pointwise.compare import isposinf as isposinf
from .ops.pointwise.compare import le as le
from .ops.pointwise.compare import le as less_equal
from .ops.pointwise.compare import logical_and as logical_and
from .ops.pointwise.compare import logical_not as logical_not
from .ops.pointwise.compare import logical_or as logical_or
from .ops.pointwise.compare import logical_xor as logical_xor
from .ops.pointwise.compare import lt as less
from .ops.pointwise.compare import lt as lt
from .ops.pointwise.compare import ne as ne
from .ops.pointwise.compare import ne as not_equal
from .ops.pointwise.compare import signbit as signbit
from .ops.pointwise.complex_numbers import adjoint as adjoint
from .ops.pointwise.complex_numbers import angle as angle
from .ops.pointwise.complex_numbers import complex as complex
from .ops.pointwise.complex_numbers import conj as conj
from .ops.pointwise.complex_numbers import conj_physical as conj_physical
from .ops.pointwise.complex_numbers import imag as imag
from .ops.pointwise.complex_numbers import is_complex as is_complex
from .ops.pointwise.complex_numbers import is_conj as is_conj
from .ops.pointwise.complex_numbers import is_neg as is_neg
from .ops.pointwise.complex_numbers import isreal as isreal
from .ops.pointwise.complex_numbers import polar as polar
from .ops.pointwise.complex_numbers import real as real
from .ops.pointwise.complex_numbers import resolve_conj as resolve_conj
from .ops.pointwise.complex_numbers import resolve_neg as resolve_neg
from .ops.pointwise.complex_numbers import sgn as sgn
from .ops.pointwise.complex_numbers import view_as_complex as view_as_complex
from .ops.pointwise.complex_numbers import view_as_real as view_as_real
from .ops.pointwise.elementary import acos as acos
from .ops.pointwise.elementary import acos as arccos
from .ops.pointwise.elementary import acosh as acosh
from .ops.pointwise.elementary import acosh as arccosh
from .ops.pointwise.elementary import asin as arcsin
from .ops.pointwise.elementary import asin as asin
from .ops.pointwise.elementary import asinh as arcsinh
from .ops.pointwise.elementary import asinh as asinh
from .ops.pointwise.elementary import atan as arctan
from .ops.pointwise.elementary import atan as atan
from .ops.pointwise.elementary import atanh as arctanh
from .ops.pointwise.elementary import atanh as atanh
from .ops.pointwise.elementary import cos as cos
from .ops.pointwise.elementary import cosh as cosh
from .ops.pointwise.elementary import deg2rad as deg2rad
from .ops.pointwise.elementary import erf as erf
from .ops.pointwise.elementary import erfc as erfc
from .ops.pointwise.elementary import exp as exp
from .ops.pointwise.elementary import exp2 as exp2
from .ops.pointwise.elementary import expm1 as expm1
from .ops.pointwise.elementary import hypot as hypot
from .ops.pointwise.elementary import log as log
from .ops.pointwise.elementary import log1p as log1p
from .ops.pointwise.elementary import log2 as log2
from .ops.pointwise.elementary import log10 as log10
from .ops.pointwise.elementary import logaddexp as logaddexp
from .ops.pointwise.elementary import logaddexp2 as logaddexp2
from .ops.pointwise.elementary import rad2deg as rad2deg
from .ops.pointwise.elementary import rsqrt as rsqrt
from .ops.pointwise.elementary import sigmoid as sigmoid
from .ops.pointwise.elementary import sin as sin
from .ops.pointwise.elementary import sinh as sinh
from .ops.pointwise.elementary import sqrt as sqrt
from .ops.pointwise.elementary import tan as tan
from .ops.pointwise.elementary import tanh as tanh
from .ops.pointwise.float_parts import frexp as frexp
from .ops.pointwise.float_parts import ldexp as ldexp
from .ops.pointwise.float_parts import nextafter as nextafter
from .ops.pointwise.rounding import ceil as ceil
from .ops.pointwise.rounding import floor as floor
from .ops.pointwise.rounding import frac as frac
from .ops.pointwise.rounding import round as round
from .ops.pointwise.rounding import trunc as fix
from .ops.pointwise.rounding import trunc as trunc
from .ops.random.activations import rrelu as rrelu
from .ops.random.activations import rrelu_ as rrelu_
from .ops.random.draws import _sample_dirichlet as _sample_dirichlet
from .ops.random.draws import _standard_gamma as _standard_gamma
from .ops.random.draws import bernoulli as bernoulli
from .ops.random.draws import binomial as binomial
from .ops.random.draws import multinomial as multinomial
from .ops.random.draws import normal as normal
from .ops.random.draws import poisson as poisson
from .ops.random.numbers import rand as rand
from .ops.random.numbers import rand_like as rand_like
from .ops.random.numbers import randint as randint
from .ops.random.numbers import randint_like as randint_like
from .ops.random.numbers import randn as randn
from .ops.random.numbers import randn_like as randn_like
from .ops.random.numbers import randperm as randperm
from .ops.reduce.extremes import amax as amax
from .ops.reduce.extremes import amin as amin
from .ops.reduce.extremes import aminmax as aminmax
from .ops.reduce.extremes import argmax as argmax
from .ops.reduce.extremes import argmin as argmin
from .ops.reduce.extremes import max as max
from .ops.reduce.extremes import min as min
from .ops.reduce.histograms import bincount as bincount
from .ops.reduce.histograms import histc as histc
from .ops.reduce.histograms import histogram as histogram
from .ops.reduce.histograms import histogramdd as histogramdd
from .ops.reduce.moments import corrcoef as corrcoef
from .ops.reduce.moments import cov as cov
from .ops.reduce.moments import std as std
from .ops.reduce.moments import std_mean as std_mean
from .ops.reduce.moments import var as var
from .ops.reduce.moments import var_mean as var_mean
from .ops.reduce.quantiles import mode as mode
from .ops.reduce.quantiles import nanmedian as nanmedian
from .ops.reduce.quantiles import nanquantile as nanquantile
from .ops.reduce.quantiles import quantile as quantile
from .ops.reduce.scan import cummax as cummax
from .ops.reduce.scan import cummin as cummin
from .ops.reduce.scan import cumprod as cumprod
from .ops.reduce.scan import cumsum as cumsum
from .ops.reduce.scan import diff as diff
from .ops.reduce.scan import logcumsumexp as logcumsumexp
from .ops.reduce.search import bucketize as bucketize
from .ops.reduce.search import searchsorted as searchsorted
from .ops.reduce.softmax import log_softmax as log_softmax
from .ops.reduce.softmax import softmax as softmax
from .ops.reduce.sort import argsort as argsort
from .ops.reduce.sort import kthvalue as kthvalue
from .ops.reduce.sort import median as median
from .ops.reduce.sort import msort as msort
from .ops.reduce.sort import sort as sort
from .ops.reduce.sort import topk as topk
from .ops.reduce.sums import all as all
from .ops.reduce.sums import any as any
from .ops.reduce.sums import count_nonzero as count_nonzero
from .ops.reduce.sums import logsumexp as logsumexp
from .ops.reduce.sums import mean as mean
from .ops.reduce.sums import nanmean as nanmean
from .ops.reduce.sums import nansum as nansum
from .ops.reduce.sums import prod as prod
from .ops.reduce.sums import sum as sum
from .ops.reduce.unique import unique as unique
from .ops.reduce.unique import unique_consecutive as unique_consecutive
from .ops.reduce.vector_norm import renorm as renorm
from .ops.shape.arrange import flip as flip
from .ops.shape.arrange import fliplr as fliplr
from .ops.shape.arrange import flipud as flipud
from .ops.shape.arrange import roll as roll
from .ops.shape.arrange import rot90 as rot90
from .ops.shape.arrange import tile as tile
from .ops.shape.broadcast import broadcast_to as broadcast_to
from .ops.shape.diagonals import diag as diag
from .ops.shape.diagonals import diag_embed as diag_embed
from .ops.shape.diagonals import diagflat as diagflat
from .ops.shape.diagonals import diagonal as diagonal
from .ops.shape.diagonals import trace as trace
from .ops.shape.diagonals import tril as tril
from .ops.shape.diagonals import tril_indices as tril_indices
from .ops.shape.diagonals import triu as triu
from .ops.shape.diagonals import triu_indices as triu_indices
from .ops.shape.grids import atleast_1d as atleast_1d
from .ops.shape.grids import atleast_2d as atleast_2d
from .ops.shape.grids import atleast_3d as atleast_3d
from .ops.shape.grids import broadcast_shapes as broadcast_shapes
from .ops.shape.grids import broadcast_tensors as broadcast_tensors
from .ops.shape.grids import meshgrid as meshgrid
from .ops.shape.join import block_diag as block_diag
from .ops.shape.join import cartesian_prod as cartesian_prod
from .ops.shape.join import cat as cat
from .ops.shape.join import cat as concat
from .ops.shape.join import cat as concatenate
from .ops.shape.join import column_stack as column_stack
from .ops.shape.join import dstack as dstack
from .ops.shape.join import hstack as hstack
from .ops.shape.join import stack as stack
from .ops.shape.join import vstack as row_stack
from .ops.shape.join import vstack as vstack
from .ops.shape.slices import narrow as narrow
from .ops.shape.slices import narrow_copy as narrow_copy
from .ops.shape.slices import select as select
from .ops.shape.split import chunk as chunk
from .ops.shape.split import chunk as unsafe_chunk
from .ops.shape.split import dsplit as dsplit
from .ops.shape.split import hsplit as hsplit
from .ops.shape.split import split as split
from .ops.shape.split import split_with_sizes as split_with_sizes
from .ops.shape.split import split_with_sizes as unsafe_split_with_sizes
from .ops.shape.split import tensor_split as tensor_split
from .ops.shape.split import unbind as unbind
from .ops.shape.split import unsafe_split as unsafe_split
from .ops.shape.split import vsplit as vsplit
from .ops.shape.view import flatten as flatten
from .ops.shape.view import movedim as moveaxis
from .ops.shape.view import movedim as movedim
from .ops.shape.view import permute as permute
from .ops.shape.view import ravel as ravel
from .ops.shape.view import reshape as reshape
from .ops.shape.view import squeeze as squeeze
from .ops.shape.view import swapaxes as swapaxes
from .ops.shape.view import t as t
from .ops.shape.view import transpose as swapdims
from .ops.shape.view import transpose as transpose
from .ops.shape.view import unflatten as unflatten
from .ops.shape.view import unsqueeze as unsqueeze
from .ops.signal.calculus import cumulative_trapezoid as cumulative_trapezoid
from .ops.signal.calculus import gradient as gradient
from .ops.signal.calculus import trapezoid as trapezoid
from .ops.signal.calculus import trapezoid as trapz
from .ops.signal.stft import istft as istft
from .ops.signal.stft import stft as stft
from .ops.signal.windows import bartlett_window as bartlett_window
from .ops.signal.windows import blackman_window as blackman_window
from .ops.signal.windows import hamming_window as hamming_window
from .ops.signal.windows import hann_window as hann_window
from .ops.signal.windows import kaiser_window as kaiser_window
from .ops.special.bessel import i0 as i0
from .ops.special.entropy import logit as logit
from .ops.special.entropy import xlogy as xlogy
from .ops.special.gamma import digamma as digamma
from .ops.special.gamma import igamma as igamma
from .ops.special.gamma import igammac as igammac
from .ops.special.gamma import lgamma as lgamma
from .ops.special.gamma import mvlgamma as mvlgamma
from .ops.special.gamma import polygamma as polygamma
from .ops.special.normal import erfinv as erfinv
from .ops.special.sinc import sinc as sinc
from .ops.write.inplace import fill as fill
from .ops.write.strided import as_strided as as_strided
from .ops.write.strided import as_strided_scatter as as_strided_scatter
from .ops.write.strided import diagonal_scatter as diagonal_scatter
from .ops.write.strided import select_scatter as select_scatter
from .ops.write.strided import slice_scatter as slice_scatter

# end of the functions
from .printing import set_printoptions as set_printoptions
from .random import Generator as Generator
from .random import default_generator as default_generator
from .random import get_rng_state as get_rng_state
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import seed as seed
from .random import set_rng_state as set_rng_state
from .size import Size as Size
from .storage import TypedStorage as TypedStorage
from .storage import UntypedStorage as UntypedStorage
from .storage import is_storage as is_storage
from .tensor import Tensor as Tensor
from .traits import detach as detach
from .traits import get_device as get_device
from .traits import resize_as_ as resize_as_
from .traits import typename as typename
from .typed import BFloat16Tensor as BFloat16Tensor
from .typed import BoolTensor as BoolTensor
from .typed import ByteTensor as ByteTensor
from .typed import CharTensor as CharTensor
from .typed import DoubleTensor as DoubleTensor
from .typed import FloatTensor as FloatTensor
from .typed import HalfTensor as HalfTensor
from .typed import IntTensor as IntTensor
from .typed import LongTensor as LongTensor
from .typed import ShortTensor as ShortTensor
from .typed import set_default_tensor_type as set_default_tensor_type

newaxis = None
_patience.end()
__version__ = "0.1.0"

_LAZY = (
    "__config__",
    "accelerator",
    "amp",
    "ao",
    "array_api",
    "autograd",
    "batching",
    "classes",
    "compiler",
    "cpu",
    "cuda",
    "data",
    "distributed",
    "distributions",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "io",
    "jit",
    "library",
    "linalg",
    "models",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "runtime",
    "serialization",
    "signal",
    "sparse",
    "special",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
)
_FROM_LAZY = {"compile": "jit", "load": "io", "save": "io", "vmap": "func",
              "get_device_module": "accelerator", "Stream": "accelerator", "Event": "accelerator",
              "ScriptModule": "jit", "qint8": "ao.quantization",
              "quint8": "ao.quantization", **dict.fromkeys((
    "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
    "sparse_compressed_tensor", "spmm", "smm", "dsmm", "hspmm"), "sparse"), **dict.fromkeys((
    "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
    "get_autocast_dtype", "is_autocast_cache_enabled", "is_autocast_enabled", "set_autocast_cache_enabled",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cpu_enabled", "set_autocast_dtype",
    "set_autocast_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype"), "amp")}


# what stands below this file and needs something above it goes through these
_hang(array_api=lambda: _import_module(f"{__name__}.array_api"),
      batch=lambda: _import_module(f"{__name__}.func.batch"),
      compile=lambda: _import_module(f"{__name__}.jit").compile,
      numpy_protocol=lambda: _import_module(f"{__name__}.numpy_protocol"),
      parameters=lambda: _import_module(f"{__name__}.nn.parameter"),
      ragged=lambda: _import_module(f"{__name__}.nested.ragged"),
      sparse=lambda: _import_module(f"{__name__}.sparse"))
_gpus.owners = lambda index: _import_module(f"{__name__}.cuda.memory").owners(index)  # asked when it is full


def __getattr__(name: str) -> _Any:
    """The sub-packages, imported when first named, and what they have under the package's own name."""
    if name in _LAZY or name == "_C":
        return _import_module(f"{__name__}.{name}")
    if name in _FROM_LAZY:
        return getattr(_import_module(f"{__name__}.{_FROM_LAZY[name]}"), name)
    if name.startswith("_foreach_"):
        return getattr(_import_module(f"{__name__}.foreach"), name)
    raise AttributeError(f"module 'framework' has no attribute '{name}'")


_MODULES = ("backends", "config", "errors", "random")  # public beside the sub-packages


def __dir__() -> list[str]:
    """The public names, those of sub-packages that are not imported yet included.

    Modules of the inside (`node`, `quiet`, ...) are attributes once they are imported, but no public names.
    """
    shown = {*_LAZY, *_FROM_LAZY, *_MODULES}
    return sorted(shown | {name for name, value in globals().items() if name.startswith("__")
                           or not (name.startswith("_") or type(value) is type(ops))})
