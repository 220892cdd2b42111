"""docs/ops.md is what the registry and the samples say."""

import pytest

from framework.ops import docs
from framework.ops.record.public import PUBLIC


def test_the_page_is_up_to_date():
    """Written by ``python -m framework.ops.docs``; some dtypes and functions need optional packages."""
    pytest.importorskip("ml_dtypes", reason="the page tells of bfloat16")
    pytest.importorskip("scipy", reason="the page tells of functions that need SciPy")
    if not docs.PATH.is_file():
        pytest.skip("no docs here: an installation without them")
    old, new = docs.PATH.read_text(encoding="utf-8").splitlines(), docs.generate().splitlines()
    gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
    assert old == new, "docs/ops.md is old; run python -m framework.ops.docs\n" + "\n".join(
        [f"- {line}" for line in gone] + [f"+ {line}" for line in come]
    )


def test_every_public_function_is_on_the_page():
    text = docs.PATH.read_text(encoding="utf-8")
    missing = [
        p.name for p in PUBLIC if not p.name.startswith("__") and f"`{docs._name(p)}`" not in text
    ]
    assert not missing
