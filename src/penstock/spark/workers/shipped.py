"""What an executor does with the archives of shipping.py before it uses them.

Imported by whatever Python the executor has: nothing here may need more than its standard library.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

# Directories in the working directory of an executor.
PACKAGE = "penstock-package"
LIBRARIES = "penstock-libraries"
MANIFEST = "penstock-shipped.json"


def binary_kind() -> str:
    """Which compiled libraries this Python can load: cpython-311-x86_64-linux-gnu."""
    return str(sysconfig.get_config_var("SOABI"))


def mismatch(*, libraries_are_for: str, python: str, python_is: str) -> str:
    return (
        f"penstock: the libraries that the driver sends are for {libraries_are_for}, and {python} is {python_is}. "
        "Name a Python of the same version with PYSPARK_PYTHON, for the driver and the executors, or install "
        "penstock[spark] where the executors are and call penstock.spark.session(…, ship=False)"
    )


def take_in(package_directory: Path) -> None:
    """Checks and completes what was unpacked; does nothing for a Penstock that is installed.

    `package_directory` is where the package `penstock` lies. SystemExit, which Spark shows to the user, where the
    libraries cannot be loaded.
    """
    if not (package_directory / MANIFEST).exists():
        return
    manifest = _manifest(package_directory)
    if manifest["binary_kind"] != binary_kind():
        sys.exit(
            mismatch(
                libraries_are_for=manifest["binary_kind"], python=sys.executable, python_is=binary_kind()
            )
        )
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
