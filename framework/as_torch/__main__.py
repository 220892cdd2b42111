"""``python -m framework.as_torch program.py arguments``, ``-m module arguments``, ``-c code arguments``."""

import os
import runpy
import sys
from pathlib import Path

from framework.as_torch.finder import SITE, install

USAGE = "usage: python -m framework.as_torch (program.py | -m module | -c code) [arguments]"


def main() -> None:
    """Run what the command line names as ``__main__``, with its own arguments."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments[:2] in (["-m"], ["-c"]):
        sys.exit(USAGE)
    install()
    # processes that the program starts find torch through a file on their path
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SITE, os.environ.get("PYTHONPATH"))))
    sys.path.insert(1, SITE)
    if arguments[0] in ("-m", "-c"):
        kind, what = arguments[:2]
        sys.argv = [kind, *arguments[2:]]
        sys.path[0] = ""
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
