"""Helpers around parameters and sequences."""

from . import fusion as fusion
from . import rnn as rnn
from . import stateless as stateless
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .gradients import clip_grad_norm_ as clip_grad_norm_
from .gradients import clip_grad_value_ as clip_grad_value_
from .gradients import parameters_to_vector as parameters_to_vector
from .gradients import vector_to_parameters as vector_to_parameters
from .summary import summary as summary
