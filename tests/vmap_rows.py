"""vmap against the loop for rows of the sample table: ``python tests/vmap_rows.py`` runs them all.

``-2`` goes on to second derivatives, ``--nested`` takes two levels (rows of elements, linear algebra and
convolution, values and gradients). With ``--together`` it is ``batching.together`` that is compared with
the loop.
"""

import sys
import warnings

import numpy as np

import framework as fw
from framework.batching import together
from framework.errors import FrameworkError
from framework.func import grad, vmap
from framework.ops.record import batched

SIZE = 2
# rows whose results have sizes or values that are looked up in the data, or that are no tensors
BY_VALUE: set = set()


def floating(a):
    """Whether an input is a floating or complex array, which derivatives are formed by."""
    return isinstance(a, (np.ndarray, np.generic)) and np.asarray(a).dtype.kind in "fc"


def leaves(out):
    """The tensors of a result."""
    if isinstance(out, fw.Tensor):
        return [out]
    if isinstance(out, dict):
        out = list(out.values())
    return [t for part in out for t in leaves(part)] if isinstance(out, (tuple, list)) else []


def several(a):
    """An array for each example: alike in kind (positive, symmetric, in order), different in value.

    Of integers the same ones in another order: they may be positions.
    """
    if not floating(a):
        return np.stack([np.roll(a, i) for i in range(SIZE)])
    return np.stack([a * (1 + 0.01 * i) for i in range(SIZE)])


def one_number(call, xs):
    """The floating results as one real number, weighed so that no derivative is lost in a sum."""
    total = None
    for t in leaves(call(*xs)):
        if t.dtype.is_floating_point or t.dtype.is_complex:
            t = fw.view_as_real(t) if t.is_complex() else t
            weights = fw.from_numpy(np.cos(np.arange(t.numel())).reshape(t.shape)).to(t.dtype)
            part = (t * weights).sum()
            total = part if total is None else total + part
    return sum([x.real.sum() * 0 if x.is_complex() else x.sum() * 0 for x in xs]) if total is None else total


def check(sample, order=1):
    """Compare values, and gradients up to ``order``, of one sample; returns what was compared."""
    places = [i for i, a in enumerate(sample.inputs) if floating(a)] or [
        i for i, a in enumerate(sample.inputs) if isinstance(a, (np.ndarray, np.generic))]
    if not places:
        return "nothing to batch"
    given = [fw.from_numpy(np.array(several(a) if i in places else a))
             if isinstance(a, (np.ndarray, np.generic)) else a for i, a in enumerate(sample.inputs)]

    def of(*xs):
        args = list(given)
        for i, x in zip(places, xs):
            args[i] = x.clone()  # some samples write into what they get
        return sample.call(fw, *args)

    xs = [given[i] for i in places]
    try:
        loop = [leaves(of(*[x[i] for x in xs])) for i in range(SIZE)]
    except Exception:  # 1.01 times the sample is none
        return "no sample"
    if not loop[0] or any(a.shape != b.shape for a, b in zip(*loop)):
        return "sizes differ"
    out = vmap(lambda *xs: tuple(leaves(of(*xs))), randomness="same")(*xs)
    for k, y in enumerate(out):
        for i in range(SIZE):
            np.testing.assert_allclose(y[i].detach().numpy(), loop[i][k].detach().numpy(), rtol=1e-6,
                                       atol=1e-8, err_msg=f"result {k}, example {i}")
    if not order or not sample.grad or not any(floating(sample.inputs[i]) for i in places):
        return "values"
    every = tuple(range(len(xs)))

    def slope(*xs):
        return grad(lambda *xs: one_number(of, xs), every)(*xs)

    functions = [slope]
    if order > 1 and sample.order > 1:
        functions.append(lambda *xs: grad(lambda *xs: sum(one_number(lambda *g: g, [g]) for g in slope(*xs)),
                                          every)(*xs))
    for f in functions:
        expected = [f(*[x[i] for x in xs]) for i in range(SIZE)]
        found = vmap(f, randomness="same")(*xs)
        for k, g in enumerate(found):
            for i in range(SIZE):
                np.testing.assert_allclose(g[i].detach().numpy(), expected[i][k].detach().numpy(), rtol=1e-5,
                                           atol=1e-7, err_msg=f"gradient {k}, example {i}")
    return "derivatives"


NESTED = ("pointwise", "special", "linalg", "image/conv")


def check_nested(sample, order=1):
    """``check`` of two levels, each with examples of its own; values, and gradients."""
    if not any(f"samples/{part}" in sample.call.__code__.co_filename for part in NESTED):
        return "another family"
    places = [i for i, a in enumerate(sample.inputs) if floating(a)]
    if not places:
        return "nothing to batch"
    given = [fw.from_numpy(np.array(np.stack([several(a), several(a) * 1.003]) if i in places else a))
             if isinstance(a, (np.ndarray, np.generic)) else a for i, a in enumerate(sample.inputs)]

    def of(*xs):
        args = list(given)
        for i, x in zip(places, xs):
            args[i] = x.clone()
        return tuple(leaves(sample.call(fw, *args)))

    xs = [given[i] for i in places]
    pairs = [(i, j) for i in range(SIZE) for j in range(SIZE)]
    functions = [of]
    if sample.grad and order:
        functions.append(lambda *xs: grad(lambda *xs: one_number(of, xs), tuple(range(len(xs))))(*xs))
    for f in functions:
        try:
            loop = {(i, j): f(*[x[i, j] for x in xs]) for i, j in pairs}
        except Exception:
            return "no sample"
        if not loop[0, 0] or len({tuple(t.shape for t in out) for out in loop.values()}) > 1:
            return "sizes differ"
        found = vmap(vmap(f, randomness="same"), randomness="same")(*xs)
        for k, y in enumerate(found):
            for i, j in pairs:
                np.testing.assert_allclose(y[i, j].detach().numpy(), loop[i, j][k].detach().numpy(),
                                           rtol=1e-5, atol=1e-7, err_msg=f"result {k}, examples {i}, {j}")
    return "derivatives" if len(functions) > 1 else "values"


def check_together(sample, order=1):
    """``check`` of ``batching.together``, with gradients by one backward for all examples."""
    places = [i for i, a in enumerate(sample.inputs) if floating(a)]
    if not places:
        return "nothing to batch"
    given = [fw.from_numpy(np.array(several(a) if i in places else a))
             if isinstance(a, (np.ndarray, np.generic)) else a for i, a in enumerate(sample.inputs)]

    def of(xs):
        args = list(given)
        for i, x in zip(places, xs):
            args[i] = x.clone()
        return sample.call(fw, *args)

    def both(run):
        xs = [[given[i][k].clone().requires_grad_() for i in places] for k in range(SIZE)]
        outs = run(xs)
        values = [leaves(out) for out in outs]
        totals = [one_number(lambda *_, out=out: out, x) for out, x in zip(outs, xs)] if sample.grad else []
        if order and totals and all(t.requires_grad for t in totals):
            sum(totals).backward()
        return values, [x.grad for row in xs for x in row]

    seed = fw.get_rng_state()
    try:
        loop, slopes = both(lambda xs: [of(x) for x in xs])
    except Exception:  # 1.01 times the sample is none
        return "no sample"
    fw.set_rng_state(seed)
    found, grads = both(lambda xs: together(of, xs))
    for k in range(SIZE):
        for a, b in zip(found[k], loop[k], strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype and a.requires_grad == b.requires_grad
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-8)
    for a, b in zip(grads, slopes):
        if (a is None) == (b is None):
            if a is not None:
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-7)
        else:
            assert not (b if a is None else a).any()  # there is a path for one of them, along which comes 0
    return "derivatives" if any(g is not None for g in grads) else "values"


def main(wanted, order):
    """Run rows, print what fails and which records were called once per example."""
    from table import TABLE

    how = check_together if "--together" in sys.argv else check_nested if "--nested" in sys.argv else check
    counts: dict = {}
    loops: dict = {}
    for (namespace, name), row in TABLE.items():
        if wanted and name not in wanted:
            continue
        for sample in row.samples:
            batched._warned.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    result = how(sample, order)
                except batched.DataDependentError as error:
                    result = "by value"
                    if "-v" in sys.argv:
                        print(f"by value: {name} [{sample.label}]: {error}".replace("\n", " "))
                except (Exception, FrameworkError) as error:
                    result = "FAILED"
                    text = str(error).strip()[:300].replace("\n", " ")
                    print(f"{namespace}.{name} [{sample.label}]: {type(error).__name__}: {text}")
            for w in caught:
                if "called once per example" in str(w.message):
                    loops.setdefault(str(w.message).split()[1], set()).add(name)
            counts[result] = counts.get(result, 0) + 1
    print(counts)
    for op, names in sorted(loops.items()):
        print("loop:", op, sorted(names)[:6])


if __name__ == "__main__":
    main({a for a in sys.argv[1:] if not a.startswith("-")},
         2 if "-2" in sys.argv else 0 if "-0" in sys.argv else 1)
