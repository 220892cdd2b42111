"""PyTorch's place for parameters as one vector."""

from .gradients import parameters_to_vector as parameters_to_vector
from .gradients import vector_to_parameters as vector_to_parameters
