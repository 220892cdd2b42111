"""Linear algebra: ``framework.linalg``."""

# functions of the rooms, written by framework.ops.stub
from .ops.inverses import cholesky_ex as cholesky_ex
from .ops.inverses import inv_ex as inv_ex
from .ops.inverses import lu_factor_ex as lu_factor_ex
from .ops.inverses import solve_ex as solve_ex
from .ops.inverses import tensorinv as tensorinv
from .ops.inverses import tensorsolve as tensorsolve
from .ops.linalg import cholesky as cholesky
from .ops.linalg import det as det
from .ops.linalg import eigh as eigh
from .ops.linalg import eigvalsh as eigvalsh
from .ops.linalg import inv as inv
from .ops.linalg import matrix_norm as matrix_norm
from .ops.linalg import matrix_power as matrix_power
from .ops.linalg import multi_dot as multi_dot
from .ops.linalg import norm as norm
from .ops.linalg import qr as qr
from .ops.linalg import slogdet as slogdet
from .ops.linalg import solve as solve
from .ops.linalg import svd as svd
from .ops.linalg import svdvals as svdvals
from .ops.made_matrices import _linalg_vander as vander  # noqa: F401
from .ops.made_matrices import householder_product as householder_product
from .ops.matmul import _linalg_cross as cross  # noqa: F401
from .ops.matmul import matmul as matmul
from .ops.rank import matrix_rank as matrix_rank
from .ops.rank import pinv as pinv
from .ops.solvers import _diagonal as diagonal  # noqa: F401
from .ops.solvers import cond as cond
from .ops.solvers import eig as eig
from .ops.solvers import eigvals as eigvals
from .ops.solvers import lstsq as lstsq
from .ops.solvers import lu as lu
from .ops.solvers import lu_factor as lu_factor
from .ops.solvers import lu_solve as lu_solve
from .ops.solvers import matrix_exp as matrix_exp
from .ops.solvers import solve_triangular as solve_triangular
from .ops.solvers import vecdot as vecdot
from .ops.stats import vector_norm as vector_norm

# end of the functions
