"""nn.functional exports exactly what the rooms register under that name."""

import types

import framework as fw
from framework.ops.record.public import PUBLIC


def test_functional_exports_exactly_the_registered_functions() -> None:
    registered = {p.name: p.function for p in PUBLIC if p.namespace == "nn.functional"}
    exported = {name: value for name, value in vars(fw.nn.functional).items()
                if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    missing, extra = registered.keys() - exported.keys(), exported.keys() - registered.keys()
    assert not missing, f"add to framework/nn/functional.py: {sorted(missing)}"
    assert not extra, f"framework/nn/functional.py exports what no room registers: {sorted(extra)}"
    for name, function in registered.items():
        assert exported[name] is function, name
