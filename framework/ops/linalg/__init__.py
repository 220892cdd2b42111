"""Products of matrices and tensors, systems of equations, factorisations, norms."""

from . import contract as contract
from . import einsum as einsum
from . import factor as factor
from . import inverses as inverses
from . import linalg as linalg
from . import made_matrices as made_matrices
from . import matmul as matmul
from . import norm as norm
from . import rank as rank
from . import solvers as solvers
