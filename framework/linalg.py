"""Linear algebra: ``framework.linalg``."""

from .errors import LinAlgError as LinAlgError

# functions of the rooms, written by framework.ops.stub
from .ops.linalg.checked import cholesky_ex as cholesky_ex
from .ops.linalg.checked import inv_ex as inv_ex
from .ops.linalg.checked import lu_factor_ex as lu_factor_ex
from .ops.linalg.checked import solve_ex as solve_ex
from .ops.linalg.decompositions import cholesky as cholesky
from .ops.linalg.decompositions import qr as qr
from .ops.linalg.decompositions import svd as svd
from .ops.linalg.decompositions import svdvals as svdvals
from .ops.linalg.determinant import det as det
from .ops.linalg.determinant import slogdet as slogdet
from .ops.linalg.eigen import eig as eig
from .ops.linalg.eigen import eigh as eigh
from .ops.linalg.eigen import eigvals as eigvals
from .ops.linalg.eigen import eigvalsh as eigvalsh
from .ops.linalg.ldl import ldl_factor as ldl_factor
from .ops.linalg.ldl import ldl_factor_ex as ldl_factor_ex
from .ops.linalg.ldl import ldl_solve as ldl_solve
from .ops.linalg.lu import lu as lu
from .ops.linalg.lu import lu_factor as lu_factor
from .ops.linalg.lu import lu_solve as lu_solve
from .ops.linalg.made_matrices import _diagonal as diagonal  # noqa: F401
from .ops.linalg.made_matrices import _linalg_vander as vander  # noqa: F401
from .ops.linalg.made_matrices import householder_product as householder_product
from .ops.linalg.matmul import matmul as matmul
from .ops.linalg.matrix_norm import cond as cond
from .ops.linalg.matrix_norm import matrix_norm as matrix_norm
from .ops.linalg.matrix_norm import norm as norm
from .ops.linalg.powers import matrix_exp as matrix_exp
from .ops.linalg.powers import matrix_power as matrix_power
from .ops.linalg.powers import multi_dot as multi_dot
from .ops.linalg.products import _linalg_cross as cross  # noqa: F401
from .ops.linalg.products import vecdot as vecdot
from .ops.linalg.rank import matrix_rank as matrix_rank
from .ops.linalg.rank import pinv as pinv
from .ops.linalg.systems import inv as inv
from .ops.linalg.systems import lstsq as lstsq
from .ops.linalg.systems import solve as solve
from .ops.linalg.systems import solve_triangular as solve_triangular
from .ops.linalg.systems import tensorinv as tensorinv
from .ops.linalg.systems import tensorsolve as tensorsolve
from .ops.reduce.vector_norm import vector_norm as vector_norm

# end of the functions
