"""What an executor does with the archives of shipping.py before it uses them.

Imported, and run by its path, by whatever Python the executor has: nothing here may need more than its standard library.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

# Directories in the working directory of an executor.
PACKAGE = "penstock-package"
LIBRARIES = "penstock-libraries"
MANIFEST = "penstock-shipped.json"


class CLibrary(NamedTuple):
    name: str  # glibc or musl; "" where nobody can tell, or nothing is needed
    version: tuple[int, int]

    def __str__(self) -> str:
        number = ".".join(map(str, self.version))
        return f"{self.name} {number}" if any(self.version) else self.name or "unknown"

    def fits(self, there: CLibrary) -> bool:
        """Whether what needs this runs with the one that is there. Where nobody can tell, it is tried."""
        if not self.name or not there.name:
            return True
        return self.name == there.name and (not any(there.version) or self.version <= there.version)


class Kind(NamedTuple):
    """What compiled libraries are made for, or a Python can load."""

    binary: str  # cpython-311-x86_64-linux-gnu
    c_library: CLibrary

    def form(self) -> dict[str, Any]:
        return {"binary_kind": self.binary, "c_library": [self.c_library.name, *self.c_library.version]}


def kind_of(form: dict[str, Any]) -> Kind:
    name, major, minor = form["c_library"]
    return Kind(form["binary_kind"], CLibrary(name, (major, minor)))


def binary_kind() -> str:
    """Which compiled libraries this Python can load: cpython-311-x86_64-linux-gnu."""
    return str(sysconfig.get_config_var("SOABI"))


def c_library() -> CLibrary:
    """The one that this Python runs with. Python before 3.14 does not tell musl; then it is known by how Python was built."""
    name, version = platform.libc_ver()
    if name not in ("glibc", "musl"):
        return CLibrary("musl" if "musl" in str(sysconfig.get_config_var("HOST_GNU_TYPE")) else "", (0, 0))
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return CLibrary(name, (0, 0) if numbers is None else (int(numbers[1]), int(numbers[2])))


def kind_here() -> Kind:
    return Kind(binary_kind(), c_library())


def mismatch(*, needed: Kind, python: str, there: Kind) -> str | None:
    """Why libraries cannot be loaded by a Python, in one line that says what to do; None if they can."""
    installed = (
        "install penstock[spark] where the executors are and call penstock.spark.session(…, ship=False)"
    )
    if needed.binary != there.binary:
        return (
            f"penstock: the libraries that the driver sends are for {needed.binary}, and {python} is {there.binary}. "
            f"Name a Python of the same version with PYSPARK_PYTHON, for the driver and the executors, or {installed}"
        )
    if not needed.c_library.fits(there.c_library):
        return (
            f"penstock: the libraries that the driver sends need {needed.c_library} or later, and {python} runs with "
            f"{there.c_library}. Run executors on a system as new as the driver's, or {installed}"
        )
    return None


def take_in(package_directory: Path) -> None:
    """Checks and completes what was unpacked; does nothing for a Penstock that is installed.

    `package_directory` is where the package `penstock` lies. SystemExit, which Spark shows to the user, where the
    libraries cannot be loaded.
    """
    if not (package_directory / MANIFEST).exists():
        return
    needed = kind_of(_manifest(package_directory))
    if (complaint := mismatch(needed=needed, python=sys.executable, there=kind_here())) is not None:
        sys.exit(complaint)
    for directory in (package_directory.with_name(LIBRARIES), package_directory):
        _restore_times(directory)


def _manifest(directory: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((directory / MANIFEST).read_text())
    return loaded


def _restore_times(directory: Path) -> None:
    """Spark gives unpacked files the time of day. What was compiled from them, by Python or numba, counts only with theirs.

    The last one in the list tells whether all was done.
    """
    try:
        times = _manifest(directory)["modified_ns"]
        last = next(reversed(times), None)
        if last is None or os.stat(directory / last).st_mtime_ns == times[last]:
            return
        for name, modified_ns in times.items():
            os.utime(directory / name, ns=(modified_ns, modified_ns))
    except OSError:
        pass  # not ours to change: everything is compiled anew, which only takes longer


if __name__ == "__main__":
    print(json.dumps(kind_here().form()))
