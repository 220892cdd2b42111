"""A build of the kernels that fails: the package is whole without them, and says why."""

import sys
import zipfile
from pathlib import Path

import pytest

from framework import _native

pytest.importorskip("scikit_build_core")
sys.path.append(str(Path(__file__).parents[1] / "packaging"))
import build_backend


def test_the_reason_is_what_the_compiler_said_first():
    log = "-- Compiler found\n[3/60] Building x.cpp\nx.cpp:7:1: fatal error: no file\n[4/60] Building y.cpp\n"
    log += "ninja: stopped\n"
    assert build_backend.reason(log, ValueError()) == "x.cpp:7:1: fatal error: no file"
    log = "CMake Error at Test.cmake:71:\n  It fails with:\n    cc1plus: fatal error: the disk is full\n"
    assert "the disk is full" in build_backend.reason(log, ValueError()).splitlines()[0]
    assert build_backend.reason("", OSError("no room")) == "OSError: no room"


def test_a_failed_build_leaves_a_wheel_with_a_note(tmp_path, monkeypatch, capfd):
    built = []

    def build(directory, *_):
        built.append(build_backend.os.environ.get("FRAMEWORK_NATIVE"))
        if built[-1] != "off":
            build_backend.os.write(2, b"CMake Error: something is missing\n")
            raise SystemExit(1)
        with zipfile.ZipFile(Path(directory) / "x.whl", "w") as wheel:
            wheel.writestr("x-1.dist-info/RECORD", "x-1.dist-info/RECORD,,\n")
        return "x.whl"

    monkeypatch.setenv("FRAMEWORK_NATIVE", "")  # so that what the build sets is taken back at the end
    monkeypatch.delenv("FRAMEWORK_NATIVE")
    monkeypatch.delenv("FRAMEWORK_SETS", raising=False)
    assert build_backend._build(build, str(tmp_path)) == "x.whl"
    with zipfile.ZipFile(tmp_path / "x.whl") as wheel:
        assert wheel.read("x-1.dist-info/native_build.txt") == b"CMake Error: something is missing"
        assert "native_build.txt,sha256=" in wheel.read("x-1.dist-info/RECORD").decode()
    assert built == [None, "off"] and "could not be built" in capfd.readouterr().err


def test_sets_that_are_asked_for_must_build(tmp_path, monkeypatch):
    """A wheel without kernels is not what somebody wanted who named them."""
    def build(directory, *_):
        raise SystemExit(1)

    monkeypatch.setenv("FRAMEWORK_SETS", "all")
    monkeypatch.delenv("FRAMEWORK_NATIVE", raising=False)
    with pytest.raises(SystemExit):
        build_backend._build(build, str(tmp_path))


@pytest.mark.parametrize("note, warns", [("CMake Error: CMAKE_CXX_COMPILER not set", False),
                                         ("gemm.cpp:7: error: x", True), (None, False)])
def test_the_reason_is_told(note, warns, monkeypatch, tmp_path):
    installed = tmp_path / "framework-0.1.0.dist-info"
    installed.mkdir()
    if note is not None:
        (installed / "native_build.txt").write_text(note)
    (tmp_path / "other-1.dist-info").mkdir()
    monkeypatch.setattr("sys.path", ["/no/such/folder", str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    if warns:
        with pytest.warns(RuntimeWarning, match="gemm.cpp:7: error"):
            assert "gemm.cpp:7: error: x" in _native._why_not_built()
    else:
        why = _native._why_not_built()
        assert why.startswith("not built") and ("compiler" in why) == (note is not None)
