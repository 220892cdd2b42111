"""Every folder says what is in it: the READMEs name each file, and no room is forgotten."""

import re
import sys
from pathlib import Path

import pytest

import framework.ops  # noqa: F401

PACKAGE = Path(__file__).resolve().parent.parent / "framework"
FAMILIES = sorted(p.parent for p in (PACKAGE / "ops").glob("*/__init__.py"))
FOLDERS = [*FAMILIES, *(PACKAGE / name for name in ("autograd", "nn", "optim", "data", "io", "sparse"))]


def rooms(folder):
    files = {p.name for p in folder.glob("*.py")} - {"__init__.py"}
    return files | {f"{p.parent.name}/" for p in folder.glob("*/__init__.py")}


def named(folder):
    return set(re.findall(r"^- `([\w/]+(?:\.py)?)`", (folder / "README.md").read_text(), re.M))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_readme_names_what_is_there(folder):
    assert named(folder) <= rooms(folder), "named, but gone"
    if folder.name not in ("nn", "optim"):  # a layer is its file and its row of tests, no more
        new = rooms(folder) - named(folder)
        assert not new, f"say in {folder.name}/README.md, in a line, what is in {sorted(new)}"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda p: p.name)
def test_every_room_is_imported(family):
    """What is not imported registers nothing."""
    loaded = {f"{name.rpartition('.')[2]}.py" for name in sys.modules
              if name.startswith(f"framework.ops.{family.name}.")}
    assert loaded >= rooms(family), f"import them in {family.name}/__init__.py"


def test_the_page_of_ops_names_every_family():
    table = re.findall(r"^\| `(\w+)/` \|", (PACKAGE / "ops" / "README.md").read_text(), re.M)
    assert sorted(table) == [p.name for p in FAMILIES]


def test_samples_stand_in_the_folders_of_families():
    here = {p.parent.name for p in Path(__file__).parent.glob("samples/*/__init__.py")}
    assert here <= {p.name for p in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda p: p.name)
def test_files_of_samples_are_named_after_their_rooms(family):
    """The rows of a public function stand in the file of the room that defines it."""
    files = {p.name for p in (Path(__file__).parent / "samples" / family.name).glob("*.py")} - {"__init__.py"}
    assert files <= rooms(family), f"ops/{family.name}/ has no room of that name"
