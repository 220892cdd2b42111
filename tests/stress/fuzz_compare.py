"""Native results beside those of the plain formulas, for the calls of ``fuzz_native.py``.

``sound`` makes other calls out of noted ones that still fit: one size becomes another wherever it occurs, the
numbers others, the memory lies otherwise. ``Formulas.differs`` says what is wrong with a result.
"""

import contextlib
import random

import numpy as np

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 130, 257, 1000)
MOST_NUMBERS = 60_000  # of an array, which the formulas are to be quick on
PLAIN = (int, np.integer)
PLACES = {"dim", "dims", "wanted"}  # settings that are no sizes


def sizes_of(a, found):
    if isinstance(a, np.ndarray):
        found.update(a.shape)
    elif isinstance(a, (tuple, list)):
        for each in a:
            sizes_of(each, found)


def resized(a, old, new, numbers):
    """`a` with size `new` for `old`; in settings, too, where `numbers` says so."""
    if isinstance(a, np.ndarray):
        shape = tuple(new if n == old else n for n in a.shape)
        if shape == a.shape:
            return a
        if np.prod(shape, dtype=float) > MOST_NUMBERS:
            raise ValueError("too large")
        return np.resize(a, shape) if a.size else np.zeros(shape, a.dtype)
    if isinstance(a, (tuple, list)):
        return type(a)(resized(each, old, new, numbers) for each in a)
    return new if numbers and type(a) in PLAIN and a == old else a


def laid_out(a, r):
    """The same numbers in other memory."""
    how = r.randrange(6)
    if how == 0 and a.ndim:
        wide = np.repeat(a, 2, axis=-1)
        return wide[..., ::2]
    if how == 1 and a.ndim:
        d = r.randrange(a.ndim)
        return np.flip(np.flip(a, d).copy(), d)
    if how == 2:
        order = r.sample(range(a.ndim), a.ndim)
        back = np.argsort(order)
        return a.transpose(order).copy().transpose(back)
    if how == 3 and a.ndim:
        d = r.randrange(a.ndim)
        if a.shape[d]:
            first = a[(slice(None),) * d + (slice(0, 1),)]
            return np.broadcast_to(first, a.shape)
    if how == 4 and a.ndim:
        room = np.zeros([n + 3 for n in a.shape], a.dtype)
        inner = room[tuple(slice(1, n + 1) for n in a.shape)]
        inner[...] = a
        return inner
    return a.copy()


def other_numbers(a, r):
    g = np.random.default_rng(r.randrange(1 << 30))
    if a.dtype.kind == "f":
        how = r.randrange(8)
        fresh = g.standard_normal(a.shape).astype(a.dtype)
        if how == 0:
            return np.round(fresh)  # ties
        if how == 1:
            return np.abs(fresh)
        if how == 2 and a.size:
            fresh.flat[g.integers(0, a.size, 2)] = r.choice((np.nan, np.inf, -np.inf, 0, -0.0))
        return fresh
    if a.dtype.kind == "b":
        return g.random(a.shape) < r.choice((0.1, 0.5, 1))
    if a.dtype.kind in "iu" and a.size:  # positions stay in their bounds
        return g.integers(int(a.min()), int(a.max()) + 1, a.shape).astype(a.dtype)
    return a


def each_array(a, change):
    if isinstance(a, np.ndarray):
        return change(a)
    return type(a)(each_array(b, change) for b in a) if isinstance(a, (tuple, list)) else a


def sound(args, kwargs, r):
    """(args, kwargs) of a call that is like this one, and may fit as well."""
    given = (list(args), list(kwargs.values()))
    if r.random() < 0.8:
        found = set()
        sizes_of(given, found)
        if found:
            old, new, numbers = r.choice(sorted(found)), r.choice(SIZES), r.random() < 0.7
            with contextlib.suppress(ValueError):
                given = (resized(given[0], old, new, numbers),
                         [resized(v, old, new, numbers and k not in PLACES)
                          for k, v in zip(kwargs, given[1])])
    if r.random() < 0.5:
        given = each_array(given, lambda a: other_numbers(a, r))
    if r.random() < 0.3:
        kinds = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.float32}
        given = each_array(given, lambda a: a.astype(kinds[a.dtype]) if a.dtype in kinds else a)
    if r.random() < 0.5:
        given = each_array(given, lambda a: laid_out(a, r) if r.random() < 0.6 else a)
    return list(given[0]), dict(zip(kwargs, given[1]))


def fresh(a):
    if isinstance(a, np.ndarray):
        return a.copy(order="K")
    return type(a)(map(fresh, a)) if isinstance(a, (tuple, list)) else a


def wide(a):
    """In double precision, as far as it is floating point."""
    if isinstance(a, np.ndarray):
        return a.astype(np.float64) if a.dtype.kind == "f" else a.copy(order="K")
    return type(a)(map(wide, a)) if isinstance(a, (tuple, list)) else a


def flat(out):
    if isinstance(out, (tuple, list)):
        return [one for part in out for one in flat(part)]
    return [out]


def moderate(a):
    """Whether no sum or product of these numbers overflows or is a nan."""
    if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
        return a.size == 0 or bool(np.abs(a).max() < 1e4)  # not so for nan
    return all(map(moderate, a)) if isinstance(a, (tuple, list)) else True


def distance(out, exact):
    """The largest difference, in parts of the largest number."""
    if exact.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.abs(out.astype(np.float64) - exact).max() / max(1.0, np.abs(exact).max()))


def undecided(name, args, kwargs):
    """Whether rounding decides what comes out."""
    first = args[0] if args else None
    limits = {"ldl_factor": 1e5, "small_slogdet": 1e6}
    if name in limits:
        if not isinstance(first, np.ndarray) or first.ndim < 2 or first.dtype.kind != "f" or not first.size:
            return False
        if first.shape[-1] != first.shape[-2] or not np.isfinite(first).all():
            return False
        return bool((np.linalg.cond(first.astype(np.float64)) > limits[name]).any())
    return False


# Of matrices whose factors depend on rounding: what must hold of any right answer. Each gives what is wrong,
# or None.


def wrong_pivots(A, pivots, order):
    """Each pivot is as large as any number below it, but for rounding; ties may go either way."""
    *batch, m, n = A.shape
    for at in np.ndindex(*batch):
        a, rows = A[at].astype(np.float64), np.arange(m)
        slack = 1e-11 * np.abs(a).max() * n  # rounding, and numbers that grow
        for i in range(min(m, n)):
            p = int(pivots[at][i]) - 1
            if not i <= p < m:
                return f"pivot {p + 1} in step {i + 1} of {m} rows"
            a[[i, p]], rows[[i, p]] = a[[p, i]], rows[[p, i]]
            if abs(a[i, i]) < np.abs(a[i:, i]).max() - slack:
                return f"the pivot of step {i + 1} is {a[i, i]}, the largest is {np.abs(a[i:, i]).max()}"
            if a[i, i] != 0:
                a[i + 1:, i] /= a[i, i]
                a[i + 1:, i + 1:] -= a[i + 1:, i, None] * a[i, i + 1:]
        if not np.array_equal(rows, order[at]):
            return f"the order is {order[at].tolist()}, the pivots say {rows.tolist()}"
    return None


def wrong_factors(A, LU):
    """L U is A, as far as the numbers of L and U reach."""
    n = A.shape[-1]
    packed = LU.astype(np.float64)
    upper, lower = np.triu(packed), np.tril(packed, -1) + np.eye(n)
    if (np.diagonal(upper, axis1=-2, axis2=-1) == 0).any() or not np.isfinite(packed).all():
        return None  # no such factors
    off = np.abs(lower @ upper - A) / np.maximum(np.abs(lower) @ np.abs(upper), 1e-30)
    return f"L U is off by {off.max():.2g}" if off.max() > n * np.finfo(LU.dtype).eps * 4 else None


def wrong_reflections(A, Q, R):
    """Q R is A, and the columns of Q are orthonormal; of what is left by rounding any direction will do."""
    slack = 32 * max(A.shape[-2:]) * np.finfo(Q.dtype).eps
    A, Q, R = (x.astype(np.float64) for x in (A, Q, R))
    off = np.abs(Q @ R - A).max() / max(np.abs(A).max(), 1e-30)
    turned = np.abs(np.swapaxes(Q, -1, -2) @ Q - np.eye(Q.shape[-1])).max()
    return f"Q R is off by {off:.2g}, Q.T Q by {turned:.2g}" if max(off, turned) > slack else None


def wrong_solution(A, B, X):
    """A X is B: the rest is small beside the numbers that are added up."""
    if B.ndim != X.ndim or B.shape[-2:] != X.shape[-2:] or not np.isfinite(X).all():
        return NotImplemented
    A, x = A.astype(np.float64), X.astype(np.float64)
    scale = np.abs(A).max() * np.abs(x).max() * A.shape[-1] + np.abs(B).max()
    off = np.abs(A @ x - B).max() / max(scale, 1e-30)
    return f"the rest is {off:.2g} of what is added up" if off > 8 * np.finfo(X.dtype).eps else None


def wrong_substitution(A, B, X, upper):
    """A triangle's solution holds row by row up to the first number that is too large for its dtype; what
    comes behind that is anything."""
    if B.shape != X.shape:
        return NotImplemented
    for at in np.ndindex(*X.shape[:-2]):
        turn = slice(None, None, -1 if upper else 1)  # rows in the order in which they are solved
        a, b, x = A[at][turn, turn].astype(np.float64), B[at][turn].astype(np.float64), X[at][turn]
        held = int(np.argmin(np.append(np.isfinite(x).all(axis=1), False)))
        y = x[:held].astype(np.float64)
        rest = np.abs(a[:held, :held] @ y - b[:held])
        added = np.abs(a[:held, :held]) @ np.abs(y) + np.abs(b[:held])
        off = (rest / np.maximum(added, np.finfo(x.dtype).tiny)).max(initial=0)
        if off > len(x) * np.finfo(x.dtype).eps:
            return f"the rest of a row is {off:.2g} of what is added up in it"
        if held < len(x):
            row = (b[held] - a[held, :held] @ y) / a[held, held]
            parts = np.abs(a[held, :held, None] * y).max(initial=0)
            if max(np.abs(row).max(), parts) < np.finfo(x.dtype).max / 16:
                return f"row {held} of {len(x)} is {x[held].tolist()}, wanted {row.tolist()}"
    return None


def wrong_vectors(name, A, kwargs, out):
    """The same of singular vectors and of those of symmetric matrices, which are free to turn."""
    if name == "small_svd":
        U, values, Vh = out
    else:
        A = np.tril(A) if kwargs.get("uplo") == "L" else np.triu(A)
        A = A + np.tril(A, -1).swapaxes(-1, -2) + np.triu(A, 1).swapaxes(-1, -2)
        values, U = out
        Vh = U.swapaxes(-1, -2)
    k, few = values.shape[-1], 64 * np.finfo(A.dtype).eps
    scale = np.abs(A).max((-1, -2), initial=np.finfo(A.dtype).tiny).astype(np.float64)
    A, values = A / scale[..., None, None], values / scale[..., None]
    U, Vh = U.astype(np.float64), Vh.astype(np.float64)
    order = np.diff(values, axis=-1) * (-1 if name == "small_svd" else 1)
    if (order < -few).any():
        return f"values are out of order: {values.tolist()}"
    for vectors in (U, Vh.swapaxes(-1, -2)):
        off = np.abs(vectors.swapaxes(-1, -2) @ vectors - np.eye(vectors.shape[-1])).max(initial=0)
        if not off <= few:
            return f"vectors are off by {off:.2g} from being orthonormal"
    off = np.abs(U[..., :k] * values[..., None, :] @ Vh[..., :k, :] - A).max(initial=0)
    return None if off <= few else f"their product is off by {off:.2g} of the largest number"


def wrong_eigenvalues(A, values, vectors=None):
    """They add up to the trace, and A minus one of them has no inverse, or takes its vector to 0."""
    few = np.sqrt(np.finfo(A.dtype).eps)  # rows of all sizes cost half of the digits
    A = A.astype(np.float64)
    size = np.abs(A).sum(-1).max(-1)[..., None] + 1e-300
    off = np.abs(values.sum(-1) - np.trace(A, axis1=-2, axis2=-1)).max(initial=0) / size.max()
    if not off <= few:
        return f"they add up to {off:.2g} of the largest number more or less than the diagonal"
    if vectors is None:
        less = A[..., None, :, :] - values[..., None, None] * np.eye(A.shape[-1])
        rest = np.linalg.svd(less / size[..., None, None], compute_uv=False)[..., -1]
    else:
        rest = np.abs(A @ vectors - vectors * values[..., None, :]).max(-1) / size
        long = np.abs(np.linalg.norm(vectors, axis=-2) - 1).max(initial=0)
        if not long <= few:
            return f"lengths of vectors are off by {long:.2g}"
    return None if not rest.size or rest.max() <= few else f"a value is off by {rest.max():.2g}"


def wrong_answer(name, args, kwargs, out):
    """What is wrong with the answer for matrices, whatever the formula makes of them; NotImplemented where
    the formula has to be asked."""
    A = args[0] if args else None
    if name in ("eig", "eigvals"):
        A = args[0]
        if not np.isfinite(A).all():
            return NotImplemented
        return wrong_eigenvalues(A, *(out if name == "eig" else (out,)))
    if name in ("small_svd", "small_eigh"):
        return wrong_vectors(name, A, kwargs, out)
    if not isinstance(A, np.ndarray) or A.dtype.kind != "f" or A.ndim < 2 or not A.size or not moderate(args):
        return NotImplemented
    if name == "lu_factor" and kwargs.get("pivot"):
        return wrong_pivots(A, *out[1:])
    if name == "small_qr":
        return wrong_reflections(A, *out)
    if name == "geqrf":
        from framework.ops.linalg.made_matrices import product_op

        k = min(A.shape[-2:])
        return wrong_reflections(A, product_op.plain(out[0][..., :k], out[1]), np.triu(out[0][..., :k, :]))
    if A.shape[-1] != A.shape[-2]:
        return NotImplemented
    if name == "lu_factor":
        return wrong_factors(A, out[0])
    if name == "ldl_factor":  # rounding decides among pivots: whatever they are, the factors have to solve
        import framework as fw

        B = np.random.default_rng(0).standard_normal((A.shape[-1], 2)).astype(A.dtype)
        whole = np.tril(A) + np.swapaxes(np.tril(A, -1), -1, -2)
        factors, pivots = (fw.tensor(np.array(part)) for part in out[:2])
        try:
            X = fw.linalg.ldl_solve(factors, pivots, fw.tensor(np.broadcast_to(B, (*A.shape[:-1], 2)).copy()))
        except fw.errors.LinAlgError:  # a singular matrix
            return NotImplemented
        return wrong_solution(whole, np.broadcast_to(B, X.shape), X.numpy())
    if name == "small_inv":
        return wrong_solution(A, np.broadcast_to(np.eye(A.shape[-1]), A.shape), out)
    if name == "solve_triangular" and isinstance(args[1], np.ndarray) and args[1].ndim >= 2 and args[1].size:
        triangle, unit = (np.triu if kwargs.get("upper") else np.tril)(A), kwargs.get("unit")
        diagonal = np.einsum("...ii->...i", triangle)
        diagonal[...] = 1 if unit else diagonal
        return wrong_substitution(triangle, args[1], out, kwargs.get("upper"))
    if name == "small_solve" and isinstance(args[1], np.ndarray) and args[1].ndim >= 2 and args[1].size:
        return wrong_solution(A, args[1], out)
    return NotImplemented


class Formulas:
    """The plain formulas of the native functions of a module, by their names."""

    # of equal numbers any place will do; of several writes to one place any may stay; drawn by chance
    loose = {"kthvalue", "median", "topk", "index_put", "scatter", "dropout", "index_assign", "mask_put",
             "searchsorted"}  # where what is searched is not sorted

    def __init__(self):
        from framework.ops import OPS

        self.plain = {}
        for op in OPS:
            native = getattr(op, "native", None)
            if native and native not in self.loose:
                self.plain.setdefault(native, op.plain)
        self.compared = 0

    def differs(self, name, args, kwargs, out):
        """What is wrong with `out`; None where nothing is, or where the formula takes no such call."""
        plain = self.plain.get(name)
        if plain is None or out is NotImplemented or undecided(name, args, kwargs):
            return None
        try:
            with np.errstate(all="ignore"):
                wanted = plain(*map(fresh, args), **{k: fresh(v) for k, v in kwargs.items()})
        except Exception:  # refused by what comes before the kernel
            return None
        self.compared += 1
        if (said := wrong_answer(name, args, kwargs, out)) is not NotImplemented:
            return said
        ours, theirs = flat(out), flat(wanted)
        if len(ours) != len(theirs):
            return f"{len(ours)} results, wanted {len(theirs)}"
        usual = moderate(args) and moderate(list(kwargs.values()))
        exact = None
        for k, (a, b) in enumerate(zip(ours, theirs)):
            if "wanted" in kwargs and k < len(kwargs["wanted"]) and not kwargs["wanted"][k]:
                continue
            if a is None or b is None:
                if a is not b:
                    return f"result {k} is {a}, wanted {b}"
                continue
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape:
                return f"result {k} has shape {a.shape}, wanted {b.shape}"
            if "V" in (a.dtype.kind, b.dtype.kind):  # bfloat16
                continue
            if a.dtype.kind != b.dtype.kind:
                return f"result {k} is {a.dtype}, wanted {b.dtype}"
            if not usual or np.array_equal(a, b):
                continue
            if a.dtype.kind not in "fc":
                return f"result {k} is {a.tolist()}, wanted {b.tolist()}"
            single = min(a.real.itemsize, b.real.itemsize) < 8
            bound = 1e-3 if single else 1e-9
            if not (np.isfinite(b).all() and distance(a, b) <= bound):
                if exact is None:
                    with np.errstate(all="ignore"):
                        exact = flat(plain(*map(wide, args), **{n: wide(v) for n, v in kwargs.items()}))
                c = np.asarray(exact[k])
                if np.isfinite(c).all() and not np.isfinite(b).all():
                    # some are too large for this dtype, what becomes of them depends on the order: the others
                    held = np.isfinite(b) & (np.abs(c) < np.sqrt(np.finfo(b.dtype).max))
                    if not distance(a[held], c[held]) <= max(bound, 3 * distance(b[held], c[held])):
                        return f"result {k}, where it does not overflow, is {a[held]}, wanted {c[held]}"
                elif not np.isfinite(c).all():
                    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                        return f"result {k} is finite elsewhere: {a.tolist()}, wanted {b.tolist()}"
                elif not distance(a, c) <= max(bound, 3 * distance(b, c)):
                    return f"result {k} is off by {distance(a, c):.2g} of its largest number"
        return None


class Programs:
    """Calls of the elementwise records, whose programs run natively, beside their formulas."""

    def __init__(self):
        from framework.ops import OPS
        from framework.ops.language.elementwise import Elementwise as Record

        self.records = [op for op in OPS if isinstance(op, Record) and op.kinds and "f" in op.kinds]
        self.compared = 0

    def differs(self, seed, i):
        r = random.Random(f"{seed} elementwise {i}")
        op = self.records[i % len(self.records)]
        g = np.random.default_rng(r.randrange(1 << 30))
        shape = [r.choice((0, 1, 2, 3, 5, 17, 33, 70, 130)) for _ in range(r.randrange(4))]
        if np.prod(shape, dtype=float) > MOST_NUMBERS:
            shape = shape[:1]
        dtype = r.choice((np.float32, np.float64))
        args = []
        for _ in op.inputs:
            first = r.randrange(len(shape) + 1) if r.random() < 0.2 else 0
            own = [n if r.random() < 0.8 else 1 for n in shape[first:]]
            a = laid_out(np.asarray(g.standard_normal(own)).astype(dtype), r)
            args.append(a if not args or r.random() < 0.9 else r.choice((0.5, 2, -1.0)))
        settings = {name: r.choice((0.5, 1.0, 2.0)) for name in op.settings}
        try:
            with np.errstate(all="ignore"):
                wanted = op._kernel(np, *args, **settings)
        except Exception:
            return None
        with np.errstate(all="ignore"):
            out = np.asarray(op.cpu(*args, **settings))
        wanted = np.asarray(wanted)
        self.compared += 1
        given = ", ".join(str(getattr(a, "shape", a)) for a in args)
        said = f"{op.name}({given}, {settings}) of {np.dtype(dtype)}"
        if out.shape != wanted.shape:
            return f"{said} has shape {out.shape}, wanted {wanted.shape}"
        if out.dtype.kind in "fc":
            finite = np.isfinite(wanted)
            if not np.array_equal(np.isnan(out), np.isnan(wanted)):
                return f"{said} is nan elsewhere"
            bound = 1e-4 if dtype is np.float32 else 1e-11
            with np.errstate(all="ignore"):
                off = np.abs(out - wanted)[finite] > bound * (1 + np.abs(wanted[finite]))
            if off.any():
                return f"{said}: {out[finite][off][:3]}, wanted {wanted[finite][off][:3]}"
        elif not np.array_equal(out, wanted):
            return f"{said} differs"
        return None


class Compared:
    """Call ``i`` of a module, by its number: of a native function, or now and then of a program."""

    def __init__(self, module, calls):
        from framework import _native

        if _native.module is not module:
            raise RuntimeError(f"the package uses {_native.module}, the calls {module}")
        self.module, self.calls = module, calls
        self.formulas, self.programs = Formulas(), Programs()
        self.names = sorted(name for name in calls if name in self.formulas.plain)

    def differs(self, seed, i):
        r = random.Random(f"{seed} sound {i}")
        if r.random() < 0.3:
            return self.programs.differs(seed, r.randrange(1 << 30))
        name = r.choice(self.names)
        args, kwargs = sound(*r.choice(self.calls[name]), r)
        try:
            out = getattr(self.module, name)(*map(fresh, args), **{k: fresh(v) for k, v in kwargs.items()})
        except Exception:
            return None
        wrong = self.formulas.differs(name, args, kwargs, out)
        if not wrong:
            return None
        shapes = [f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in args]
        return f"{name}({', '.join(shapes)}, {kwargs}): {wrong}"
