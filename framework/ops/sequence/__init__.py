"""Attention and recurrent layers."""

from . import attention as attention
from . import attention_kernels as attention_kernels
from . import multihead as multihead
from . import rnn as rnn
from . import rnn_steps as rnn_steps
