"""The package as one file, for executors that do not have it installed."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import penstock


def package_archive() -> Path:
    """A zip of Penstock's Python files, which Spark's `addPyFile` puts on the path of every executor.

    Libraries with compiled parts (pyarrow, numba, cramjam, crc32c, confluent-kafka) cannot travel like this: they have
    to be installed where the executors are.
    """
    root = Path(penstock.__file__).parent
    archive = Path(tempfile.mkdtemp(prefix="penstock-spark-")) / "penstock.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(root.rglob("*.py")):
            packed.write(path, Path("penstock") / path.relative_to(root))
    return archive
