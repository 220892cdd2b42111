"""``pytest -p framework.as_torch.pytest_plugin``: tests written for PyTorch find this package."""

import os

import pytest

from .finder import SITE, install


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before any conftest or test is imported; processes of the tests, too."""
    install()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SITE, os.environ.get("PYTHONPATH"))))
