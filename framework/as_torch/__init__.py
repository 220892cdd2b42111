"""Programs written for PyTorch, run as they are: ``import torch`` finds this package.

``python -m framework.as_torch program.py arguments`` (or ``-m module``, ``-c code``) runs a program so, and
the processes that it starts; ``install()`` does it from inside a program, and pytest's option
``-p framework.as_torch.pytest_plugin`` for tests. Without one of these nothing is touched: ``import
torch`` is PyTorch's, or fails.

``torch.nn`` *is* ``framework.nn``, and so on down; only ``torch`` itself is a module of its own, which has
the names of ``framework`` and PyTorch's version. A name that is not there raises, and says what stands
closest and why it is missing.
"""

from .finder import install as install
from .finder import is_installed as is_installed
from .finder import uninstall as uninstall
from .version import TorchVersion as TorchVersion
