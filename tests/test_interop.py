"""Other libraries: SciPy and scikit-learn on our tensors, memory shared through DLPack."""

import doctest
import gc
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import framework as fw
from framework import dtypes

ROOT = Path(__file__).parents[1]


def python(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


# -- programs in a process of their own, for SciPy reads its switch when it is imported ------------

SCIPY = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np
import scipy.fft, scipy.special, scipy.stats
import framework as fw

data = np.random.default_rng(0).normal(size=(20, 3))
calls = [
    lambda x: scipy.special.logsumexp(x, axis=1),
    lambda x: scipy.stats.zscore(x, axis=0),
    lambda x: scipy.stats.ttest_1samp(x, 0.1).pvalue,
    lambda x: scipy.fft.rfft(x, axis=0),
    lambda x: scipy.special.gammaln(abs(x)),
]
for call in calls:
    got, want = call(fw.tensor(data)), call(data)
    assert isinstance(got, fw.Tensor), type(got)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9)

x = fw.tensor(data, requires_grad=True)  # and SciPy's programs can be differentiated
scipy.special.logsumexp(fw.array_api.asarray(x), axis=1).sum().backward()
np.testing.assert_allclose(x.grad.numpy(), scipy.special.softmax(data, axis=1), rtol=1e-9)
"""

SKLEARN = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import framework as fw

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
y = X @ np.arange(4.0) + 0.1 * rng.normal(size=40)
calls = [
    lambda X, y: StandardScaler().fit_transform(X),
    lambda X, y: PCA(2, svd_solver="full").fit_transform(X),
    lambda X, y: Ridge(solver="svd").fit(X, y).predict(X),
    lambda X, y: make_pipeline(StandardScaler(), PCA(3), Ridge(solver="svd")).fit(X, y).predict(X),
]
with sklearn.config_context(array_api_dispatch=True):
    for call in calls:
        got, want = call(fw.tensor(X), fw.tensor(y)), call(X, y)
        assert isinstance(got, fw.Tensor), type(got)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-9)
    assert r2_score(fw.tensor(y), fw.tensor(y)) == 1.0
"""


@pytest.mark.parametrize("module, program", [("scipy", SCIPY), ("sklearn", SKLEARN)])
def test_takes_our_tensors(module, program):
    pytest.importorskip(module, reason=f"{module} is not installed")
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_tables_load_when_they_are_asked_for():
    program = (
        "import sys, framework as fw; "
        "names = 'framework.array_api', 'framework.numpy_protocol'; "
        "heavy = lambda: {m for m in sys.modules if m.startswith(names)}; "
        "assert not heavy(), heavy(); fw.array_api; assert 'framework.array_api.linalg' in heavy(); "
        "import numpy as np; np.sin(fw.ones(2)); assert 'framework.numpy_protocol.linear' in heavy()"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


# -- DLPack ----------------------------------------------------------------------------------------

NUMPY = np.from_dlpack, np.ones


def torch_side():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_dlpack, lambda n, dtype: torch.ones(n, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("side", ["numpy", "torch"])
def test_memory_is_shared_both_ways(side, dtype):
    from_dlpack, make = NUMPY if side == "numpy" else torch_side()
    ours = fw.zeros(3, dtype=dtype)
    theirs = from_dlpack(ours)
    theirs[1] = 1
    assert ours.tolist() == [0, 1, 0] and str(theirs.dtype).endswith(dtype.name)
    source = make(3, dtype=dtype.name)
    view = fw.from_dlpack(source)
    source[0] = 0
    assert view.tolist() == [0, 1, 1] and view.dtype is dtype


@pytest.mark.parametrize("side", ["numpy", "torch"])
def test_the_producer_may_go_first(side):
    from_dlpack, make = NUMPY if side == "numpy" else torch_side()
    ours = fw.arange(1000)
    gone = weakref.ref(ours)
    theirs = from_dlpack(ours)
    del ours
    gc.collect()
    fw.zeros(1000)  # would take the memory if it were free
    assert gone() is None and theirs.tolist() == list(range(1000))
    source = make(1000, dtype="int64")
    view = fw.from_dlpack(source)
    del source
    gc.collect()
    assert view.sum().item() == 1000


def test_strides_are_kept():
    x = fw.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(np.from_dlpack(x.T[::2]), np.arange(12).reshape(3, 4).T[::2])
    assert fw.from_dlpack(np.arange(6).reshape(2, 3).T).stride() == (1, 3)


def test_read_only_memory_stays_so():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = fw.from_dlpack(array)
    with pytest.raises(ValueError, match="read-only"):
        x.add_(1)
    assert x.tolist() == [0, 1, 2] and x._version == 0 and not np.from_dlpack(x).flags.writeable


def test_what_requires_grad_is_refused():
    x = fw.ones(2, requires_grad=True)
    for error in (BufferError, RuntimeError, fw.errors.AutogradError):
        with pytest.raises(error, match="requires grad and cannot be exported.*x.detach()"):
            np.from_dlpack(x)
    assert np.from_dlpack(x.detach()).tolist() == [1, 1]


def test_copies_and_devices():
    x = fw.ones(2)
    capsule_only = x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert "dltensor" in repr(capsule_only)
    copied = fw.from_dlpack(x, copy=True)
    copied[0] = 5
    assert x.tolist() == [1, 1] and fw.from_dlpack(x, device="cpu", copy=False).data_ptr() == x.data_ptr()


class OnGpu:
    """A producer on a GPU that exports a copy to the CPU when it is asked to."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, dl_device=None, **settings):
        assert dl_device == (1, 0)
        return np.arange(3).__dlpack__()


def test_a_gpu_exports_to_the_cpu_without_cupy():
    assert fw.from_dlpack(OnGpu(), device="cpu").tolist() == [0, 1, 2]


def test_unknown_elements_are_named():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match="from_dlpack: the elements of this Tensor are of a dtype that NumPy"):
        fw.from_dlpack(torch.zeros(2, dtype=torch.float8_e4m3fn))


# -- buffers ---------------------------------------------------------------------------------------

def test_a_buffer_is_shared():
    block = bytearray(16)
    x = fw.frombuffer(block, dtype=fw.float32, count=2, offset=4)
    x[0] = 1.0
    assert x.shape == (2,) and bytes(block[4:8]) == np.float32(1).tobytes()
    with pytest.raises(ValueError, match="read-only"):
        fw.frombuffer(b"abcd", dtype=fw.uint8).add_(1)
    assert memoryview(np.asarray(x)).nbytes == 8
    for wrong, error, message in (
            ({"buffer": b"abc", "dtype": fw.int16}, ValueError, "frombuffer: .* of a bytes"),
            ({"buffer": b"", "dtype": fw.int16, "count": 1}, ValueError, "wanted count=1 elements"),
            ({"buffer": [1], "dtype": fw.int16}, TypeError, "frombuffer: .* of a list")):
        with pytest.raises(error, match=message):
            fw.frombuffer(**wrong)


# -- what is written about it ----------------------------------------------------------------------

def test_the_page_says_what_happens():
    page = ROOT / "docs" / "interop.md"
    text = re.sub(r"```(python)?\n", "\n", page.read_text())
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=report.append)
    assert len(test.examples) > 10 and not runner.failures, "".join(report)


def test_the_example_fits():
    script = ROOT / "examples" / "array_api.py"
    done = python(str(script))
    assert done.returncode == 0, done.stderr
    place, scale = map(float, re.search(r"place (\S+), scale (\S+),", done.stdout).groups())
    assert abs(place - 3.0) < 0.1 and abs(scale - 0.5) < 0.05
