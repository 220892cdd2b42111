"""What processes find that a program under ``framework.as_torch`` starts."""

import importlib
import sys

from framework.as_torch.finder import install

install()
del sys.modules["torch"]
importlib.import_module("torch")
