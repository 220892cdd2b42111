"""The documentation site as far as it goes without Sphinx; `python -m docs.build` builds it and runs it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
if not (ROOT / "docs" / "build.py").exists():
    pytest.skip("the pages are in a checkout only", allow_module_level=True)

from docs import build, reference  # noqa: E402

PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "examples" / "README.md"])


def test_every_public_name_is_documented(tmp_path):
    names, bare = reference.write(tmp_path)
    assert names > 3500 and bare == []
    page = (tmp_path / "functional.rst").read_text()
    assert ".. py:function:: framework.nn.functional.cross_entropy(input, target, weight=None" in page
    assert "framework.relu" in page or "py:function:: framework.nn.functional.relu(" in page


def test_every_page_is_in_some_contents(tmp_path):
    build.write_further(tmp_path)
    contents = (ROOT / "docs" / "index.md").read_text()
    contents += (tmp_path / "pages.rst").read_text().replace("   ../", "")
    pages = {p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in ROOT.glob("docs/**/*.md")}
    assert {p for p in pages - {"index"} if f"\n{p}\n" not in contents} == set()


def test_the_gallery_tells_every_example(tmp_path):
    pictures = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.*")}
    assert build.write_gallery(tmp_path) == len(pictures) >= 12
    page = (tmp_path / "gallery.md").read_text()
    for name in ("vae", "names", "reinforce", "maml"):
        part = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "- Data: " in part and re.search(r"- Full run: .*\d.*, [\d.]+ (s|min)", part)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_and_cells_are_python(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        target = link.partition("#")[0]
        if "://" in link or not target or not re.search(r"\.\w+$|/$", target):
            continue
        generated = "docs/api/" in (page.parent / target).resolve().as_posix()
        assert generated or (page.parent / target).exists(), link
    for cell in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        ast.parse(re.sub(r"^:[\w-]+:.*$", "", cell, flags=re.MULTILINE))


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#here">x</a><a href="#top">x</a>'
                                     '<a href="https://elsewhere">x</a><img src="none.png">')
    (tmp_path / "b.html").write_text('<a href="a.html#nowhere">x</a><a href="c.html">x</a><p id="here">')
    assert sorted(build.broken_links(tmp_path)) == ["a.html: none.png", "b.html: a.html#nowhere",
                                                    "b.html: c.html"]


def test_prose_keeps_its_signs():
    assert reference.escaped("a*b and `c_` or ``d``_") == r"a\*b and \ ``c_``\  or \ ``d``\ \_"
    assert reference.rendered("Text::\n\n    x = 1\n\n>>> y\n2", "  ")[:5] == [
        r"  Text\:", "", "  .. code-block:: text", "", "     x = 1"]
