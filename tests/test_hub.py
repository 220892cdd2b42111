"""``framework.hub``: local folders with a hubconf.py, files by address with checksums."""

import hashlib
import os

import pytest

import framework as fw


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "part.py").write_text("WIDTH = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\nimport framework as fw\nfrom part import WIDTH\n"
        "def layer(out=1):\n    'A layer.'\n    return fw.nn.Linear(WIDTH, out)\ndef _hidden(): pass\n")
    return tmp_path


@pytest.fixture
def weights(tmp_path):
    fw.save({"w": fw.ones(2)}, tmp_path / "net.pt")
    digest = hashlib.sha256((tmp_path / "net.pt").read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pt"
    os.rename(tmp_path / "net.pt", named)
    return named.as_uri(), digest


def test_a_local_folder(folder):
    assert fw.hub.load(folder, "layer", source="local", out=2).weight.shape == (2, 3)
    assert fw.hub.list(folder) == ["layer"] and fw.hub.help(folder, "layer") == "A layer."
    for wrong, error in ((lambda: fw.hub.load(folder, "other", source="local"), "has no function .other."),
                         (lambda: fw.hub.load(folder, "_hidden", source="local"), "has no function"),
                         (lambda: fw.hub.load("user/repo", "layer"), "clone user/repo"),
                         (lambda: fw.hub.load(folder / "none", "layer", source="local"), "no hubconf.py")):
        with pytest.raises((RuntimeError, ValueError, FileNotFoundError), match=error):
            wrong()
    (folder / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="no_such_package_here"):
        fw.hub.list(folder)


def test_weights_are_fetched_once_and_checked(weights, tmp_path):
    url, digest = weights
    kept = tmp_path / "kept"
    assert fw.hub.load_state_dict_from_url(url, kept, check_hash=True)["w"].tolist() == [1, 1]
    os.remove(url.removeprefix("file://"))
    assert fw.hub.load_state_dict_from_url(url, kept, check_hash=True)["w"].tolist() == [1, 1]
    path = next(kept.iterdir())
    path.write_bytes(b"else")
    with pytest.raises(RuntimeError, match="its SHA-256 is"):
        fw.hub.load_state_dict_from_url(url, kept, check_hash=True)


def test_a_download_with_another_checksum_leaves_nothing(weights, tmp_path):
    url, digest = weights
    with pytest.raises(RuntimeError, match="wanted one that begins with 'abc'"):
        fw.hub.download_url_to_file(url, tmp_path / "out", hash_prefix="abc")
    with pytest.raises(OSError):
        fw.hub.download_url_to_file((tmp_path / "none").as_uri(), tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob("*.part"))
    fw.hub.download_url_to_file(url, tmp_path / "out", hash_prefix=digest[:6])
    assert fw.load(tmp_path / "out")["w"].shape == (2,)


def test_the_folder_of_kept_files(monkeypatch, tmp_path):
    monkeypatch.setattr(fw.hub, "_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert fw.hub.get_dir() == str(tmp_path / "hub")
    fw.hub.set_dir(tmp_path / "x")
    assert fw.hub.get_dir() == str(tmp_path / "x") and fw.hub.HASH_REGEX.search("net-0a1b.pt")[1] == "0a1b"


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX's")
def test_files_are_for_whom_the_umask_says(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"x")
    before = os.umask(0o027)
    try:
        fw.hub.download_url_to_file((tmp_path / "a.bin").as_uri(), tmp_path / "b.bin")
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "b.bin").st_mode & 0o777 == 0o640
