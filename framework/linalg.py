"""Linear algebra: ``framework.linalg``."""

# functions of the rooms, written by framework.ops.stub
from .ops.linalg.inverses import cholesky_ex as cholesky_ex
from .ops.linalg.inverses import inv_ex as inv_ex
from .ops.linalg.inverses import lu_factor_ex as lu_factor_ex
from .ops.linalg.inverses import solve_ex as solve_ex
from .ops.linalg.inverses import tensorinv as tensorinv
from .ops.linalg.inverses import tensorsolve as tensorsolve
from .ops.linalg.linalg import cholesky as cholesky
from .ops.linalg.linalg import det as det
from .ops.linalg.linalg import eigh as eigh
from .ops.linalg.linalg import eigvalsh as eigvalsh
from .ops.linalg.linalg import inv as inv
from .ops.linalg.linalg import matrix_norm as matrix_norm
from .ops.linalg.linalg import matrix_power as matrix_power
from .ops.linalg.linalg import multi_dot as multi_dot
from .ops.linalg.linalg import norm as norm
from .ops.linalg.linalg import qr as qr
from .ops.linalg.linalg import slogdet as slogdet
from .ops.linalg.linalg import solve as solve
from .ops.linalg.linalg import svd as svd
from .ops.linalg.linalg import svdvals as svdvals
from .ops.linalg.made_matrices import _linalg_vander as vander  # noqa: F401
from .ops.linalg.made_matrices import householder_product as householder_product
from .ops.linalg.matmul import _linalg_cross as cross  # noqa: F401
from .ops.linalg.matmul import matmul as matmul
from .ops.linalg.rank import matrix_rank as matrix_rank
from .ops.linalg.rank import pinv as pinv
from .ops.linalg.solvers import _diagonal as diagonal  # noqa: F401
from .ops.linalg.solvers import cond as cond
from .ops.linalg.solvers import eig as eig
from .ops.linalg.solvers import eigvals as eigvals
from .ops.linalg.solvers import lstsq as lstsq
from .ops.linalg.solvers import lu as lu
from .ops.linalg.solvers import lu_factor as lu_factor
from .ops.linalg.solvers import lu_solve as lu_solve
from .ops.linalg.solvers import matrix_exp as matrix_exp
from .ops.linalg.solvers import solve_triangular as solve_triangular
from .ops.linalg.solvers import vecdot as vecdot
from .ops.reduce.moments import vector_norm as vector_norm

# end of the functions
