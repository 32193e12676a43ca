"""The Python that Spark's workers are.

Spark puts a zip of its Python files in front of the path of every worker, and Python compiles what it takes from a zip
anew in each process: a second of CPU for each of the six or seven that a small stream begins with. The same files are
installed beside us, compiled. So workers are started through a script of three lines that takes the zip off the path.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

PATH_VARIABLE = "PENSTOCK_PYTHONPATH"  # the user's own PYTHONPATH, which Spark lengthens
SCRIPT = """#!/bin/sh
PYTHONPATH="${path}" exec {python} "$@"
"""


def worker_python() -> str:
    """A command for PYSPARK_PYTHON; this Python itself where Spark is not the one that is installed beside us."""
    import pyspark

    home = os.environ.get("SPARK_HOME")
    if home is not None and Path(home).resolve() != Path(pyspark.__file__).resolve().parent:
        return sys.executable
    os.environ.setdefault(PATH_VARIABLE, os.environ.get("PYTHONPATH", ""))
    directory = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    script = directory / "python"
    script.write_text(SCRIPT.format(path=f"{{{PATH_VARIABLE}}}", python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    return str(script)
