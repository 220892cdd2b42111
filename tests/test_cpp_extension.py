"""utils.cpp_extension: functions in C++ as functions of tensors, compiled once, and what is refused."""

import os
import shutil
import threading

import numpy as np
import pytest

import framework as fw
from framework.utils import cpp_extension

needs_compiler = pytest.mark.skipif(
    os.name == "nt" or not (os.environ.get("CXX") or any(map(shutil.which, ("c++", "g++", "clang++")))),
    reason="there is no C++ compiler",
)
SOURCE = """
fw::Tensor scaled(const fw::Tensor& x, double by) {
    fw::check(x.is_contiguous(), "x must be contiguous");
    fw::Tensor y = fw::empty_like(x);
    for (int64_t i = 0; i < x.numel(); ++i) y.mutable_data<float>()[i] = x.data<float>()[i] * by;
    return y;
}
void twice_(fw::Tensor x) {
    for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] *= 2;
}
double corner(const fw::Tensor& x) { return x.data<double>()[x.stride(0) + 2 * x.stride(-1)]; }
std::tuple<fw::Tensor, int64_t, std::string, std::vector<double>, bool> many(
        std::vector<fw::Tensor> xs, std::optional<fw::Tensor> y, std::string s, bool b,
        std::vector<int64_t> n) {
    return {xs[0], (int64_t)n.size() + (y ? 100 : 0), s + "!", {1.5, 2.5}, !b};
}
int fails(int8_t x) { throw std::runtime_error("no way"); }
fw::Tensor zeros(std::vector<int64_t> shape) { return fw::zeros(shape, fw::DType::Int64); }
"""
NAMES = ["scaled", "twice_", "corner", "many", "fails", "zeros"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("extensions"))


def inline(folder):
    return cpp_extension.load_inline(
        "demo", SOURCE, functions=NAMES, extra_cflags=["-O0"], build_directory=folder
    )


@needs_compiler
def test_functions_of_tensors(folder):
    module = inline(folder)
    x = fw.arange(5.0)
    assert module.scaled(x, 2).tolist() == [0, 2, 4, 6, 8] and module.scaled(fw.ones(0, 3), 1.0).shape == (
        0,
        3,
    )
    before = x._version
    module.twice_(x)
    assert x.tolist() == [0, 2, 4, 6, 8] and x._version == before + 1
    view = fw.tensor(np.arange(12.0).reshape(4, 3)).t()
    assert module.corner(view) == view[1, 2]
    first, count, text, reals, no = module.many([x, x], None, "hé", True, [1, 2])
    assert first is x and (count, text, reals, no) == (2, "hé!", (1.5, 2.5), False)
    assert module.many((x,), x, "", False, ())[1] == 100 and module.zeros([2, 0]).shape == (2, 0)
    kept = [module.scaled(x, float(k)) for k in range(50)]  # each has memory of its own
    assert [t[1].item() for t in kept] == [2.0 * k for k in range(50)]
    for call, error, says in (
        (lambda: module.fails(3), RuntimeError, "demo.fails: no way"),
        (lambda: module.fails(300), TypeError, "fits"),
        (lambda: module.scaled(x), TypeError, "takes 2 arguments, got 1"),
        (lambda: module.scaled(x, "2"), TypeError, "argument 1 must be a number"),
        (lambda: module.scaled({}, 1.0), TypeError, "got dict"),
        (lambda: module.scaled(fw.ones(2, 3).t(), 1.0), RuntimeError, "contiguous"),
        (lambda: module.scaled(x.double(), 1.0), RuntimeError, "another type"),
        (
            lambda: module.scaled(fw.ones(1, requires_grad=True), 1.0),
            fw.errors.AutogradError,
            "autograd.Function",
        ),
        (lambda: module.scaled(fw.ones(1, device="meta"), 1.0), fw.errors.DeviceError, "meta"),
        (lambda: module.zeros([-1]), RuntimeError, "negative"),
    ):
        with pytest.raises(error, match=says):
            call()
    with pytest.raises((RuntimeError, ValueError)):
        module.twice_(fw.from_numpy(np.broadcast_to(np.float32(1), (3,))))
    leaf = fw.ones(2, requires_grad=True)
    doubled = leaf * 1
    squared = doubled * doubled
    with fw.no_grad():
        module.twice_(doubled)
    with pytest.raises(fw.errors.AutogradError, match="changed"):
        squared.sum().backward()


@needs_compiler
def test_what_was_compiled_is_kept(folder, monkeypatch, tmp_path):
    path = inline(folder).__file__
    before = os.stat(path).st_mtime_ns
    assert inline(folder).__file__ == path and os.stat(path).st_mtime_ns == before
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []
    (tmp_path / "by.h").write_text("#define BY 3\n")
    (tmp_path / "more.cpp").write_text(
        '#include <framework/extension.h>\n#include "by.h"\nint64_t times(int64_t x) { return x * BY; }\n'
        "FW_EXPORT(times)\n"
    )
    settings = {
        "extra_cflags": ["-O0"],
        "extra_include_paths": [str(tmp_path)],
        "build_directory": str(tmp_path / "out"),
    }
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(cpp_extension.load("more", str(tmp_path / "more.cpp"), **settings))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [m.times(2) for m in found] == [6, 6]
    (tmp_path / "by.h").write_text("#error seen\n")  # what is included is looked at, too
    with pytest.raises(RuntimeError, match="seen"):
        cpp_extension.load("more", [str(tmp_path / "more.cpp")], is_python_module=False, **settings)
    with pytest.raises(RuntimeError, match="compiler failed"):
        cpp_extension.load_inline("bad", "int f( {", functions=["f"], build_directory=folder)
    monkeypatch.setenv("CXX", "no-such-compiler -x")
    with pytest.raises(RuntimeError, match="no-such-compiler"):
        cpp_extension.load_inline("bad", "int f();", functions=["f"], build_directory=folder)


def test_what_is_refused(tmp_path, monkeypatch):
    for source in (
        "torch::Tensor f(torch::Tensor x) { return x; }",
        "#include <ATen/ATen.h>",
        "PYBIND11_MODULE(a, m) {}",
    ):
        with pytest.raises(RuntimeError, match="framework/extension.h"):
            cpp_extension.load_inline("theirs", source, functions=["f"])
    (tmp_path / "theirs.cpp").write_text("#include <torch/extension.h>")
    for refused, says in (
        (lambda: cpp_extension.load("theirs", [str(tmp_path / "theirs.cpp")]), "torch/extension"),
        (lambda: cpp_extension.CppExtension("t", [str(tmp_path / "theirs.cpp")]), "torch/extension"),
        (lambda: cpp_extension.load_inline("a", "", cuda_sources="x"), "RawModule"),
        (lambda: cpp_extension.CUDAExtension("a", ["a.cu"]), "RawModule"),
    ):
        with pytest.raises(RuntimeError, match=says):
            refused()
    with pytest.raises(ValueError, match="no name"):
        cpp_extension.load_inline("a-b", "")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/somewhere")
    assert cpp_extension.get_default_build_root() == "/somewhere"
    assert os.path.exists(os.path.join(cpp_extension.include_paths()[0], "framework", "extension.h"))


def test_extensions_of_setuptools():
    pytest.importorskip("setuptools")
    made = cpp_extension.CppExtension("mine", ["mine.cpp"], extra_compile_args={"cxx": ["-O3"]})
    assert (
        made.extra_compile_args == ["-std=c++17", "-O3"]
        and cpp_extension.include_paths()[0] in made.include_dirs
    )
    build = cpp_extension.BuildExtension
    assert build.with_options(use_ninja=False) is build and hasattr(build, "build_extensions")
