"""What a report of a bug should say of the machine; ``python -m framework.utils.collect_env`` prints it."""

import locale
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ..config.__main__ import report
from ..config.listing import own as _own

Run = Callable[[Any], tuple[int, str, str]]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """What a command gives: (exit code, output, errors); 127 where it is not there.

    >>> fw.utils.collect_env.run(["true"])
    (0, '', '')
    """
    try:
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            capture_output=True,
            encoding=locale.getpreferredencoding(False),
            errors="replace",
        )
    except FileNotFoundError:
        return 127, "", "Command not found"
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Run, command: Any) -> str | None:
    """The output of a command; None if it fails."""
    code, output, _ = run_lambda(command)
    return output if code == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: Any, regex: str) -> str | None:
    """The first group of a pattern in the output of a command; None if there is none."""
    code, output, _ = run_lambda(command)
    match = re.search(regex, output) if code == 0 else None
    return match[1] if match else None


def get_platform() -> str:
    """ "linux", "win32", "darwin", ..."""
    return sys.platform


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of gcc; None without it."""
    return run_and_parse_first_match(run_lambda, ["gcc", "--version"], r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The version of clang; None without it."""
    return run_and_parse_first_match(run_lambda, ["clang", "--version"], r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """The version of CMake; None without it."""
    return run_and_parse_first_match(run_lambda, ["cmake", "--version"], r"cmake (.*)")


def get_nvidia_smi() -> str:
    """The path of nvidia-smi, or its name."""
    return shutil.which("nvidia-smi") or "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's driver; None without one."""
    return run_and_parse_first_match(run_lambda, [get_nvidia_smi()], r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """The names of NVIDIA's GPUs, a line each; None without any."""
    found = run_and_read_all(run_lambda, [get_nvidia_smi(), "-L"])
    return None if found is None else re.sub(r" \(UUID: .+?\)", "", found)


def get_cpu_info(run_lambda: Run) -> str:
    """What ``lscpu`` says of the processor; without that its name."""
    return run_and_read_all(run_lambda, ["lscpu"]) or platform.processor() or platform.machine()


def get_os(run_lambda: Run) -> str | None:
    """The name and version of the system."""
    described = None
    if os.path.exists("/etc/os-release"):
        with open("/etc/os-release", encoding="utf-8") as file:
            match = re.search(r'PRETTY_NAME="(.*)"', file.read())
        described = match[1] if match else None
    return f"{described or platform.platform()} ({platform.machine()})"


def get_pretty_env_info() -> str:
    """The whole report as text: this package and its kernels, compilers, processor and GPUs."""
    lines = [
        report(),
        "",
        f"OS: {get_os(run)}",
        f"GCC version: {get_gcc_version(run)}",
        f"Clang version: {get_clang_version(run)}",
        f"CMake version: {get_cmake_version(run)}",
        f"NVIDIA driver: {get_nvidia_driver_version(run)}",
        f"GPUs: {get_gpu_info(run)}",
        "",
        "CPU:",
        get_cpu_info(run),
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()


__dir__ = _own(globals())
