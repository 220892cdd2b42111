"""Build the documentation: ``python -m docs.build`` in a checkout, with the extra ``docs`` installed.

The site is in ``build/site`` and needs no server and no network: open ``build/site/index.html``. Warnings
are errors, pages with cells are run, and links between pages are followed. ``--fresh`` forgets what the
last build kept.
"""

import argparse
import os
import re
import shutil
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
FIRST = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">\n'


class Links(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag points at, and what can point at it."""
        for key, value in attrs:
            if value and (key, tag) in (("href", "a"), ("src", "img"), ("href", "link")):
                self.links.append(value)
            elif value and key in ("id", "name"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Links inside the site that lead nowhere, "page: link" each. Links to elsewhere are not followed."""
    pages = {page: Links(page) for page in site.rglob("*.html")}
    found = []
    for page, own in pages.items():
        for link in own.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                found.append(f"{page.relative_to(site)}: {link}")
    return found


def write_further(folder: Path) -> None:
    """A page of contents for the pages that the index does not name: no page is out of reach."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = sorted(p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in ROOT.glob("docs/**/*.md"))
    further = [f"   ../{page}" for page in pages if page != "index" and f"\n{page}\n" not in index]
    lines = ["Further pages", "=============", "", ".. toctree::", "   :maxdepth: 1", "", *further, ""]
    (folder / "pages.rst").write_text("\n".join(lines), encoding="utf-8")


def write_gallery(folder: Path) -> int:
    """A page of the examples: what each shows, its data, figures and picture; how many have a picture.

    All of it is from the table of examples/README.md and the pictures of docs/gallery, which
    ``python -m benchmarks.examples --page examples/README.md --pictures docs/gallery`` writes.
    """
    text = ["# Gallery", "", "The [examples](../../examples/README.md) with what a full run of each gives, "
            "on two cores with two threads, and the same program on PyTorch where that has all it needs."]
    drawn = 0
    for row in (ROOT / "examples" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = row.strip("| ").split(" | ")
        found = re.match(r"\[(\w+)\.py\]", cells[0])
        if found is None or len(cells) < 7:
            continue
        name, (shows, data, metric, time_, other, other_time) = found[1], cells[1:7]
        text += ["", f"## {name}", "", f"[{name}.py](../../examples/{name}.py): {shows}.", "",
                 f"- Data: {data}", f"- Full run: {metric}, {time_}"]
        text += [] if other == "-" else [f"- On PyTorch: {other}, {other_time}"]
        for picture in sorted((ROOT / "docs" / "gallery").glob(f"{name}.*")):
            text += ["", f"![What {name}.py drew](../gallery/{picture.name})"]
            drawn += 1
    (folder / "gallery.md").write_text("\n".join([*text, ""]), encoding="utf-8")
    return drawn


def main(arguments: list[str] | None = None) -> int:
    """Build, check, and say what came out; 0 where all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="forget earlier builds and run every page")
    options = parser.parse_args(arguments)
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        print("docs: Sphinx is not installed; pip install 'framework[docs]'", file=sys.stderr)
        return 2
    from . import reference

    start = time.perf_counter()
    if options.fresh:
        for folder in ("site", "docs-cells", "docs-trees"):
            shutil.rmtree(ROOT / "build" / folder, ignore_errors=True)
    SITE.mkdir(parents=True, exist_ok=True)
    names, bare = reference.write(ROOT / "docs" / "api")
    write_further(ROOT / "docs" / "api")
    write_gallery(ROOT / "docs" / "api")
    # cells run in processes of their own, which must find this checkout
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    home = ROOT / "build" / "docs-ipython" / "profile_default"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "ipython" / "ipython_config.py", home)
    os.environ["IPYTHONDIR"] = str(home.parent)
    failed = build_main(["-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", str(ROOT / "docs"),
                         "-d", str(ROOT / "build" / "docs-trees"), str(ROOT), str(SITE)])
    if failed:
        return failed
    (SITE / "index.html").write_text(FIRST, encoding="utf-8")
    broken = broken_links(SITE)
    for text in (*broken, *(f"{name} has no docstring" for name in bare)):
        print(text)
    cells = [path for path in (ROOT / "docs").rglob("*.md")
             if re.search(r"^```\{code-cell\}", path.read_text(encoding="utf-8"), re.MULTILINE)]
    print(f"{SITE / 'index.html'}: {sum(1 for _ in SITE.rglob('*.html'))} pages, {len(cells)} executed, "
          f"{names - len(bare)} of {names} public names documented, {len(broken)} broken links, "
          f"{time.perf_counter() - start:.0f} s")
    return 1 if broken or bare else 0


if __name__ == "__main__":
    sys.exit(main())
