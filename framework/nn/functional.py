"""The functions of ``framework.nn.functional``, each written in its room under ``framework/ops``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ..config.listing import listing as _listing

# functions of the rooms, written by framework.ops.stub
from ..ops.image.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from ..ops.image.adaptive_pool import adaptive_avg_pool2d as adaptive_avg_pool2d
from ..ops.image.adaptive_pool import adaptive_avg_pool3d as adaptive_avg_pool3d
from ..ops.image.adaptive_pool import adaptive_max_pool1d as adaptive_max_pool1d
from ..ops.image.adaptive_pool import adaptive_max_pool2d as adaptive_max_pool2d
from ..ops.image.adaptive_pool import adaptive_max_pool3d as adaptive_max_pool3d
from ..ops.image.conv import conv1d as conv1d
from ..ops.image.conv import conv2d as conv2d
from ..ops.image.conv import conv3d as conv3d
from ..ops.image.conv import conv_transpose1d as conv_transpose1d
from ..ops.image.conv import conv_transpose2d as conv_transpose2d
from ..ops.image.conv import conv_transpose3d as conv_transpose3d
from ..ops.image.fold import fold as fold
from ..ops.image.fold import unfold as unfold
from ..ops.image.fractional import fractional_max_pool2d as fractional_max_pool2d
from ..ops.image.fractional import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from ..ops.image.fractional import fractional_max_pool3d as fractional_max_pool3d
from ..ops.image.fractional import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from ..ops.image.grid_sample import affine_grid as affine_grid
from ..ops.image.grid_sample import grid_sample as grid_sample
from ..ops.image.interpolate import interpolate as interpolate
from ..ops.image.other_names import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
from ..ops.image.other_names import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
from ..ops.image.other_names import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
from ..ops.image.other_names import conv_tbc as conv_tbc
from ..ops.image.other_names import max_pool1d_with_indices as max_pool1d_with_indices
from ..ops.image.other_names import max_pool2d_with_indices as max_pool2d_with_indices
from ..ops.image.other_names import max_pool3d_with_indices as max_pool3d_with_indices
from ..ops.image.other_names import native_channel_shuffle as native_channel_shuffle
from ..ops.image.other_names import upsample as upsample
from ..ops.image.other_names import upsample_bilinear as upsample_bilinear
from ..ops.image.other_names import upsample_nearest as upsample_nearest
from ..ops.image.pad import pad as pad
from ..ops.image.pixel_shuffle import channel_shuffle as channel_shuffle
from ..ops.image.pixel_shuffle import pixel_shuffle as pixel_shuffle
from ..ops.image.pixel_shuffle import pixel_unshuffle as pixel_unshuffle
from ..ops.image.pool import avg_pool1d as avg_pool1d
from ..ops.image.pool import avg_pool2d as avg_pool2d
from ..ops.image.pool import avg_pool3d as avg_pool3d
from ..ops.image.pool import max_pool1d as max_pool1d
from ..ops.image.pool import max_pool2d as max_pool2d
from ..ops.image.pool import max_pool3d as max_pool3d
from ..ops.image.power_pool import lp_pool1d as lp_pool1d
from ..ops.image.power_pool import lp_pool2d as lp_pool2d
from ..ops.image.power_pool import lp_pool3d as lp_pool3d
from ..ops.image.power_pool import max_unpool1d as max_unpool1d
from ..ops.image.power_pool import max_unpool2d as max_unpool2d
from ..ops.image.power_pool import max_unpool3d as max_unpool3d
from ..ops.index.embedding import embedding as embedding
from ..ops.index.embedding import one_hot as one_hot
from ..ops.index.embedding_bag import embedding_bag as embedding_bag
from ..ops.inplace_functions import celu_ as celu_
from ..ops.inplace_functions import elu_ as elu_
from ..ops.inplace_functions import hardtanh_ as hardtanh_
from ..ops.inplace_functions import leaky_relu_ as leaky_relu_
from ..ops.inplace_functions import relu_ as relu_
from ..ops.inplace_functions import selu_ as selu_
from ..ops.inplace_functions import threshold_ as threshold_
from ..ops.linalg.distances import cosine_similarity as cosine_similarity
from ..ops.linalg.distances import normalize as normalize
from ..ops.linalg.distances import pairwise_distance as pairwise_distance
from ..ops.linalg.distances import pdist as pdist
from ..ops.linalg.einsum import bilinear as bilinear
from ..ops.linalg.matmul import linear as linear
from ..ops.losses.classes import cross_entropy as cross_entropy
from ..ops.losses.classes import nll_loss as nll_loss
from ..ops.losses.ctc import ctc_loss as ctc_loss
from ..ops.losses.distances import cosine_embedding_loss as cosine_embedding_loss
from ..ops.losses.distances import hinge_embedding_loss as hinge_embedding_loss
from ..ops.losses.distances import margin_ranking_loss as margin_ranking_loss
from ..ops.losses.distances import triplet_margin_loss as triplet_margin_loss
from ..ops.losses.elements import binary_cross_entropy as binary_cross_entropy
from ..ops.losses.elements import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from ..ops.losses.elements import gaussian_nll_loss as gaussian_nll_loss
from ..ops.losses.elements import huber_loss as huber_loss
from ..ops.losses.elements import kl_div as kl_div
from ..ops.losses.elements import l1_loss as l1_loss
from ..ops.losses.elements import mse_loss as mse_loss
from ..ops.losses.elements import poisson_nll_loss as poisson_nll_loss
from ..ops.losses.elements import smooth_l1_loss as smooth_l1_loss
from ..ops.losses.elements import soft_margin_loss as soft_margin_loss
from ..ops.losses.linear import linear_cross_entropy as linear_cross_entropy
from ..ops.losses.margins import multi_margin_loss as multi_margin_loss
from ..ops.losses.margins import multilabel_margin_loss as multilabel_margin_loss
from ..ops.losses.margins import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from ..ops.losses.margins import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from ..ops.normalization.channels import batch_norm as batch_norm
from ..ops.normalization.channels import group_norm as group_norm
from ..ops.normalization.channels import instance_norm as instance_norm
from ..ops.normalization.channels import local_response_norm as local_response_norm
from ..ops.normalization.moments import layer_norm as layer_norm
from ..ops.normalization.moments import rms_norm as rms_norm
from ..ops.pointwise.activations import celu as celu
from ..ops.pointwise.activations import elu as elu
from ..ops.pointwise.activations import gelu as gelu
from ..ops.pointwise.activations import glu as glu
from ..ops.pointwise.activations import hardshrink as hardshrink
from ..ops.pointwise.activations import hardsigmoid as hardsigmoid
from ..ops.pointwise.activations import hardswish as hardswish
from ..ops.pointwise.activations import hardtanh as hardtanh
from ..ops.pointwise.activations import leaky_relu as leaky_relu
from ..ops.pointwise.activations import logsigmoid as logsigmoid
from ..ops.pointwise.activations import mish as mish
from ..ops.pointwise.activations import prelu as prelu
from ..ops.pointwise.activations import relu as relu
from ..ops.pointwise.activations import relu6 as relu6
from ..ops.pointwise.activations import selu as selu
from ..ops.pointwise.activations import silu as silu
from ..ops.pointwise.activations import softplus as softplus
from ..ops.pointwise.activations import softshrink as softshrink
from ..ops.pointwise.activations import softsign as softsign
from ..ops.pointwise.activations import tanhshrink as tanhshrink
from ..ops.pointwise.activations import threshold as threshold
from ..ops.pointwise.elementary import sigmoid as sigmoid
from ..ops.pointwise.elementary import tanh as tanh
from ..ops.random.activations import gumbel_softmax as gumbel_softmax
from ..ops.random.activations import rrelu as rrelu
from ..ops.random.activations import rrelu_ as rrelu_
from ..ops.random.dropout import alpha_dropout as alpha_dropout
from ..ops.random.dropout import dropout as dropout
from ..ops.random.dropout import dropout1d as dropout1d
from ..ops.random.dropout import dropout2d as dropout2d
from ..ops.random.dropout import dropout3d as dropout3d
from ..ops.random.dropout import feature_alpha_dropout as feature_alpha_dropout
from ..ops.reduce.softmax import log_softmax as log_softmax
from ..ops.reduce.softmax import softmax as softmax
from ..ops.reduce.softmax import softmin as softmin
from ..ops.sequence.attention import scaled_dot_product_attention as scaled_dot_product_attention
from ..ops.sequence.multihead import multi_head_attention_forward as multi_head_attention_forward

# end of the functions


def __getattr__(name: str) -> _Any:
    """What functions of one's own ask about ``__torch_function__``, where PyTorch's own file imports it."""
    if name == "handle_torch_function" or name.startswith("has_torch_function"):
        return getattr(_import_module("framework.ops.record.torch_function"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = _listing(globals())
