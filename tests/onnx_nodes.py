"""ONNX's own tests of operators, on the modules that ``onnx.load`` makes: ``python tests/onnx_nodes.py [name
...]``.

Taken are the plain numeric tests of single operators (no strings, sequences, optionals, 4- and 8-bit floats,
and not the expanded twins) and the operator models; with the tolerances that each test brings. Prints what
fails and the counts.
"""

import glob
import importlib
import os
import pkgutil
import sys
import warnings
from collections import Counter

import numpy as np
import onnx
from onnx.backend.test.case import node
from onnx.backend.test.loader import load_model_tests

import framework as fw

_NUMERIC = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}


def is_plain(model):
    """Whether all inputs and outputs are tensors of numbers that arrays hold."""
    return all(v.type.WhichOneof("value") == "tensor_type" and v.type.tensor_type.elem_type in _NUMERIC
               for v in (*model.graph.input, *model.graph.output))


def node_cases(expanded=False, without=()):
    """(name, model, [(inputs, outputs)], rtol, atol) of the tests of single operators.

    without: modules of ONNX's tests that are left out, since they take seconds to be made.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(node.__path__, f"{node.__name__}."):
            if module.name.rpartition(".")[2] not in without:
                importlib.import_module(module.name)
    for case in node._NodeTestCases:
        if ("_expanded" in case.name) == expanded and is_plain(case.model):
            yield case.name, case.model, case.data_sets, case.rtol, case.atol


def model_cases():
    """The same of the operator models that come with files."""
    for kind in ("pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
            sets = []
            for folder in glob.glob(os.path.join(case.model_dir, "test_data_set_*")):
                sets.append(tuple([_tensors(folder, what) for what in ("input", "output")]))
            yield case.name, model, sets, case.rtol, case.atol


def _tensors(folder, what):
    found = []
    for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb")))):
        with open(os.path.join(folder, f"{what}_{i}.pb"), "rb") as file:
            found.append(onnx.numpy_helper.to_array(onnx.load_tensor_from_string(file.read())))
    return found


def _array(x):
    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)


def wrong(name, model, sets, rtol, atol):
    """Why a case fails, or an empty string."""
    try:
        module = fw.onnx.load(model)
        for inputs, outputs in sets:
            with fw.no_grad():
                given = [_array(x) for x in inputs]
                found = module(*given)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(outputs):
                return f"{len(found)} outputs, not {len(outputs)}"
            for a, b in zip(found, outputs):
                a, b = a.numpy(), _array(b)
                if "bernoulli" in name:  # draws
                    assert a.shape == b.shape and a.dtype == b.dtype
                    continue
                if a.dtype != b.dtype:
                    return f"dtype {a.dtype}, not {b.dtype}"
                if a.shape != b.shape:
                    return f"shape {a.shape}, not {b.shape}"
                if a.dtype.kind == "V" or a.dtype.name == "bfloat16":
                    a, b = a.astype(np.float32), b.astype(np.float32)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    except Exception as error:  # whatever it is, this case has failed
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def main(names):
    counts = Counter()
    for kind, cases in (("operators", node_cases()), ("models", model_cases())):
        for case in cases:
            if names and not any(n in case[0] for n in names):
                continue
            why = wrong(*case)
            counts[kind, not why] += 1
            if why:
                print(f"{case[0]}: {why}")
    for kind in ("operators", "models"):
        good, bad = counts[kind, True], counts[kind, False]
        print(f"{kind}: {good} of {good + bad} pass")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main(sys.argv[1:])
