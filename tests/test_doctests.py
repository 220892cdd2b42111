"""Every example in a docstring runs, and gives what it says."""

import doctest
import importlib
import pkgutil
import types

import numpy as np
import pytest

import framework as fw
from framework import _native

MODULES = [m.name for m in pkgutil.walk_packages(fw.__path__, "framework.")
           if not m.name.startswith("framework._native.")]  # of the compiled ones only one may be loaded
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples(module):
    """The doctests of a module; also those of public functions made by a factory, whose code is elsewhere."""
    found = doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__)
    seen = {t.name for t in found}
    parser = doctest.DocTestParser()
    for p in fw.ops.PUBLIC:
        name = f"{module.__name__}.{p.function.__name__}"
        own = isinstance(p.function, types.FunctionType) and p.function.__module__ == module.__name__
        if own and name not in seen and p.function.__doc__:
            found.append(parser.get_doctest(p.function.__doc__, vars(module), name, module.__file__, 0))
            seen.add(name)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name == "framework.backends.memory" and _native.module is None:
        pytest.skip("statistics of memory need the native extension")
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    report = []
    for test in examples(module):
        test.globs.update({"fw": fw, "framework": fw, "np": np})
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_every_public_function_has_an_example():
    """The docstring of a public function shows a call."""
    bare = sorted({p.name for p in fw.ops.PUBLIC if p.namespace and ">>>" not in (p.function.__doc__ or "")})
    assert not bare, f"{len(bare)} public functions without an example: {', '.join(bare)}"
