"""Which GPUs there are, which is the current one, and what they can do."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

from ..backends import cuda as _backend
from ..device import Device
from ..errors import DeviceError, MissingExtraError
from ..tensor import Tensor


def is_available() -> bool:
    """Whether CuPy is installed and there is a CUDA device.

    Does not start CUDA, where NVIDIA's driver can be asked otherwise, so that processes forked later can.

    >>> isinstance(fw.cuda.is_available(), bool)
    True
    """
    return _backend.is_available()


def device_count() -> int:
    """The number of CUDA devices CuPy sees; 0 without CuPy."""
    return _backend.device_count()


def is_initialized() -> bool:
    """Whether CuPy has been imported, which it is when a GPU is first named."""
    return _backend.is_loaded()


def needed(device: Any = None) -> Device:
    """A CUDA device that is there, with its number; raises DeviceError where it is not."""
    target = device if isinstance(device, Device) else Device("cuda" if device is None else device)
    if target.type != "cuda":
        raise ValueError(f"wanted a CUDA device, got {str(target)!r}")
    try:
        _backend.require(target)
    except MissingExtraError as error:
        raise DeviceError(f"device '{target}' is not there: {error}") from error
    return Device("cuda", _backend.index_of(target))


def init() -> None:
    """Import CuPy and look for a device now; raises DeviceError where there is none."""
    needed()


def current_device() -> int:
    """The number of the device that ``cuda`` means; DeviceError without one."""
    return needed().index  # type: ignore[return-value]


_MODES = {0: "default", 1: "warn", 2: "error"}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Name the places where the program waits for a device: "default" (0) none, "warn" (1) by a warning,
    "error" (2) by raising.

    Named are reads by the program: ``item``, ``bool``, ``tolist``, copies to the host, ``synchronize``. Not
    named are operations that read values themselves, because the size of the result depends on them
    (``nonzero``, ``unique``, masks as indices) or since they iterate (series of special functions).
    Raises ValueError for other modes.

    >>> fw.cuda.set_sync_debug_mode("default")
    >>> fw.cuda.get_sync_debug_mode()
    0
    """
    number = next((n for n, name in _MODES.items() if debug_mode in (n, name)), None)
    if number is None or isinstance(debug_mode, bool):
        raise ValueError(f"set_sync_debug_mode: wanted 'default', 'warn' or 'error' (0 to 2), got "
                         f"{debug_mode!r}")
    _backend.sync_debug_mode = number


def get_sync_debug_mode() -> int:
    """The number of the mode that ``set_sync_debug_mode`` has set."""
    return _backend.sync_debug_mode


def set_device(device: Any) -> None:
    """Let ``cuda`` mean this device in this thread; a negative number changes nothing.

    Raises DeviceError where it is not there.
    """
    if not (isinstance(device, int) and device < 0):
        _backend.use(needed(device))


def synchronize(device: Any = None) -> None:
    """Wait until all work queued on a device (default: the current one) is done."""
    _backend.synchronize(needed(device))


class device:
    """A block in which ``cuda`` means this device. Nothing for None or a negative number.

    Raises DeviceError on entering where the device is not there.
    """

    def __init__(self, device: Any) -> None:
        none = device is None or (isinstance(device, int) and device < 0)
        self.target = None if none else Device(device)
        self.before: Device | None = None

    def __enter__(self) -> "device":
        if self.target is not None and self.target.type == "cuda":
            self.before = needed()
            _backend.use(needed(self.target))
        return self

    def __exit__(self, *_: Any) -> None:
        if self.before is not None:
            _backend.use(self.before)


class device_of(device):
    """A block in which ``cuda`` means the device of a tensor; nothing for a tensor on the CPU."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


class DeviceProperties(NamedTuple):
    """What ``get_device_properties`` says; memory in bytes, frequencies in kHz."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    uuid: UUID | None
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    is_integrated: int
    is_multi_gpu_board: int
    pci_domain_id: int
    pci_bus_id: int
    pci_device_id: int


# what CUDA calls those behind the first six
_IN_CUDA = (
    "warpSize", "maxThreadsPerBlock", "maxThreadsPerMultiProcessor", "regsPerMultiprocessor",
    "sharedMemPerBlock", "sharedMemPerBlockOptin", "sharedMemPerMultiprocessor", "l2CacheSize", "clockRate",
    "memoryClockRate", "memoryBusWidth", "integrated", "isMultiGpuBoard", "pciDomainID", "pciBusID",
    "pciDeviceID")


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, compute capability, memory, multiprocessors and more of a device; DeviceError where it is not
    there."""
    found = _backend.properties(needed(device))
    name, number = found["name"], found["uuid"]
    return DeviceProperties(
        name.decode() if isinstance(name, bytes) else name, found["major"], found["minor"],
        found["totalGlobalMem"], found["multiProcessorCount"],
        UUID(bytes=bytes(number)) if len(number) == 16 else None, *[found[key] for key in _IN_CUDA])


def get_device_name(device: Any = None) -> str:
    """The name of a device, "NVIDIA H100 80GB HBM3" say; DeviceError where it is not there."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability (major, minor) of a device; DeviceError where it is not there."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes with bfloat16; False without one.

    including_emulation: False for those only that have instructions for it (from capability 8.0 on).
    """
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """Whether products of float32 may be computed in TF32 here: from compute capability 8.0 on."""
    return bool(device_count()) and get_device_capability() >= (8, 0)


def current_blas_handle() -> int:
    """The handle of cuBLAS that CuPy has for the current device, for code that is not Python's; DeviceError
    without one."""
    with _backend.cupy().cuda.Device(needed().index):
        return int(_backend.cupy().cuda.device.get_cublas_handle())


def get_arch_list() -> list[str]:
    """Architectures that this package was compiled for: none, CuPy compiles its kernels where they run."""
    return []


def get_gencode_flags() -> str:
    """The options of NVIDIA's compiler for those architectures: none."""
    return ""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device reads the memory of another; DeviceError where one is not there."""
    here, there = needed(device).index, needed(peer_device).index
    return bool(_backend.cupy().cuda.runtime.deviceCanAccessPeer(here, there))


class _Runtime:
    """CUDA's runtime by the names of C, on CuPy: ``cudaProfilerStart()`` and its kin; 0 means success."""

    def __getattr__(self, name: str) -> Callable:
        found = _backend.cupy().cuda.runtime
        short = name.removeprefix("cuda")
        if name == short or not hasattr(found, short[:1].lower() + short[1:]):
            raise AttributeError(f"cudart: CuPy has no {name!r} in cupy.cuda.runtime")
        function = getattr(found, short[:1].lower() + short[1:])

        def call(*arguments: Any) -> Any:
            result = function(*arguments)
            return 0 if result is None else result
        return call

    def cudaMemGetInfo(self, device: Any = None) -> tuple[int, int]:
        """Bytes of a device (free, in all)."""
        with _backend.on(needed(device)):
            return tuple(_backend.cupy().cuda.runtime.memGetInfo())  # type: ignore[return-value]


def cudart() -> Any:
    """CUDA's runtime, whose functions CuPy calls (``cupy.cuda.runtime``); DeviceError without a GPU.

    >>> if fw.cuda.is_available():
    ...     fw.cuda.cudart().cudaProfilerStart()
    """
    needed()
    return _Runtime()


class cudaStatus(IntEnum):
    """What CUDA's functions give back."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """A function of CUDA failed; ``code`` is what it gave back."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA's runtime gave back {code}; see cudaError_t in its documentation")
        self.code = code


def check_error(res: int) -> None:
    """Raise CudaError unless a function of ``cudart()`` gave back 0.

    >>> fw.cuda.check_error(0)
    """
    if res != cudaStatus.SUCCESS:
        raise CudaError(int(res))
