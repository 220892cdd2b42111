"""Programs that trip compilers: each is run as it is and compiled, and must tell the same.

A program takes ``compile`` (the identity, or ``fw.compile``), builds all it needs, calls the compiled
function several times, and returns what it saw: tensors, numbers, texts, in any nest. What it prints, the
exceptions it notes, and the state of all random generators afterwards are compared as well
(``test_compile.py``).
"""

from . import control, graph, memory, modes, networks, objects, optimizers, threads  # noqa: F401 - they fill it
from .base import PROGRAMS as PROGRAMS
