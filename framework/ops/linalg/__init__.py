"""Products of matrices and tensors, systems of equations, factorisations, norms."""

from . import checked as checked
from . import contract as contract
from . import decompositions as decompositions
from . import determinant as determinant
from . import distances as distances
from . import eigen as eigen
from . import einsum as einsum
from . import factor as factor
from . import int8 as int8
from . import ldl as ldl
from . import lu as lu
from . import made_matrices as made_matrices
from . import matmul as matmul
from . import matrix_norm as matrix_norm
from . import norm as norm
from . import older_names as older_names
from . import powers as powers
from . import products as products
from . import rank as rank
from . import systems as systems
