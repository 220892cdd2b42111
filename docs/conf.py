"""How Sphinx builds the site: `python -m docs.build`. The source folder is the repository, so links between
pages
and to READMEs and programs are the same here and in an editor."""

import logging
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import framework._native  # noqa: E402

logging.getLogger("traitlets").setLevel(logging.WARNING)  # a line per page that runs

project = "framework"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
author = "the authors of framework"
copyright = author
language = "en"

extensions = ["myst_nb"]
root_doc = "docs/index"
include_patterns = ["docs/**", "README.md", "CHANGELOG.md", "examples/README.md", "examples/*/README.md",
                    "framework/**/README.md"]
exclude_patterns = ["**/__pycache__"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
highlight_language = "none"
suppress_warnings = ["mystnb.unknown_mime_type"]
nitpicky = False  # types in signatures are Python's, which have no page here

# pages with cells run while the site is built; what they raise ends the build
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "docs-cells")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
needed = [find_spec(name) for name in ("onnx", "onnxruntime", "sklearn")]
native = getattr(framework._native.module, "__file__", None)
if not all(needed) or not native or not Path(native).with_name("libframework.so").exists():
    # shown without results
    nb_execution_excludepatterns = ["docs/production.md"]
nb_execution_in_temp = True
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

html_theme = "furo"
html_title = f"framework {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
python_use_unqualified_type_names = True
toc_object_entries = False
