"""What executors need, sent to them: the modules that they import and the libraries below these, compiled parts included.

Two archives in the user's cache directory, each named by its content: the libraries, some 150 MB, made again when one of
them changes, and the package with its kernels as numba compiled them (an executor would take 15 s for that). Spark
unpacks them in the working directory of every executor, where PYTHONPATH finds them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from types import TracebackType
from typing import BinaryIO, Self

import penstock
from penstock.spark.archive import cache_directory
from penstock.spark.workers import shipped
from penstock.spark.workers.c_libraries import needed_c_library
from penstock.spark.workers.distributions import distribution_files, needed_distributions
from penstock.spark.workers.modules import ROOT, Module, executor_modules
from penstock.spark.workers.shipped import LIBRARIES, MANIFEST, PACKAGE, Kind, binary_kind, kind_of, mismatch

ARCHIVES = "spark.archives"
EXECUTOR_PATH = "spark.executorEnv.PYTHONPATH"
PYTHON_VARIABLE = "PYSPARK_PYTHON"
PYTHON_SETTING = "spark.pyspark.python"
COMPRESSION_LEVEL = 1  # a tenth larger than the default's, in a third of the time
COMPILED = ("*.nbi", "*.nbc")  # what numba keeps
COMPILE_TIMEOUT_S = 300
PYTHON_TIMEOUT_S = 60
# Everything with compiled walks that a task may import: numba keeps what it compiles beside the source.
COMPILE = """
import importlib, pkgutil
import penstock.records.columnar as columnar, penstock.spark.reading.task, penstock.spark.writing.exactly_once
for each in pkgutil.iter_modules(columnar.__path__, columnar.__name__ + "."):
    importlib.import_module(each.name)
"""

Files = list[tuple[PurePath, Path]]


def shipping_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings that send the archives; `given` are the user's, and what they send is sent, too."""
    archives = [
        given.get(ARCHIVES, ""),
        f"{libraries_archive()}#{LIBRARIES}",
        f"{package_archive()}#{PACKAGE}",
    ]
    # The driver's own places come last. Spark plans queries on the driver, with the Python and the path of executors.
    path = [given.get(EXECUTOR_PATH, ""), f"./{PACKAGE}", f"./{LIBRARIES}", *_places_here()]
    return {
        ARCHIVES: ",".join(each for each in archives if each),
        EXECUTOR_PATH: os.pathsep.join(each for each in path if each),
    }


def check_python(given: Mapping[str, str]) -> None:
    """Refuses a Python for executors that cannot load this one's libraries; says which one it is, if nobody did.

    Looked for on this machine: Spark runs it here, too, to plan.
    """
    ours = f"python{sys.version_info.major}.{sys.version_info.minor}"
    named = given.get(PYTHON_SETTING) or os.environ.get(PYTHON_VARIABLE)
    python = shutil.which(named or ours)
    if python is None:
        raise RuntimeError(
            f"{named or ours}, the Python for executors, is not on this machine, where Spark needs it to plan queries: "
            f"name one that is in both places with {PYTHON_VARIABLE}"
        )
    asked = subprocess.run(
        [python, shipped.__file__], capture_output=True, text=True, timeout=PYTHON_TIMEOUT_S, check=True
    )
    complaint = mismatch(needed=needed_kind(), python=python, there=kind_of(json.loads(asked.stdout)))
    if complaint is not None:
        raise RuntimeError(complaint)
    if named is None:
        os.environ[PYTHON_VARIABLE] = ours


def needed_kind() -> Kind:
    return Kind(binary_kind(), needed_c_library(needed_distributions()))


def libraries_archive() -> Path:
    distributions = needed_distributions()
    identity = hashlib.sha256(str(needed_kind()).encode())
    for each in distributions:
        # RECORD has the hashes of all files.
        identity.update(f"{each.name} {each.version} {each.read_text('RECORD')}".encode())
    path = _archive_path(LIBRARIES, identity.hexdigest())
    if not path.exists():
        _pack(path, [file for each in distributions for file in distribution_files(each)])
    return path


def package_archive() -> Path:
    modules = executor_modules()
    identity = hashlib.sha256(str(needed_kind()).encode())
    for each in modules:
        identity.update(f"{each.name}\0".encode() + each.path.read_bytes())
    path = _archive_path(PACKAGE, identity.hexdigest())
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix="penstock-spark-") as directory:
            _compile_in(Path(directory), modules)
            _pack(path, _files_below(Path(directory)))
    return path


def _compile_in(directory: Path, modules: Iterable[Module]) -> None:
    """A copy of the modules with everything compiled that a task uses, from what is compiled here already."""
    for each in modules:
        kept = [
            path
            for kind in COMPILED
            for path in each.path.parent.glob(f"__pycache__/{each.path.stem}.{kind}")
        ]
        for file in (each.path, *kept):
            copy = directory / file.relative_to(ROOT.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)  # with its time, by which numba knows it
    path = os.pathsep.join((str(directory), *_places_here()))
    subprocess.run(
        [sys.executable, "-c", COMPILE],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""},
        timeout=COMPILE_TIMEOUT_S,
        check=True,
    )


def _files_below(directory: Path) -> Files:
    found = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return [(path.relative_to(directory), path) for path in found]


def _places_here() -> list[str]:
    """Where this Python has the package and its libraries."""
    places = [str(Path(penstock.__file__).parents[1])]
    places += [str(each.locate_file("")) for each in needed_distributions()]
    return list(dict.fromkeys(os.path.abspath(place) for place in places))


def _archive_path(name: str, identity: str) -> Path:
    return cache_directory() / f"{name}-{identity[:16]}.tar.gz"


def _pack(path: Path, files: Files) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with (
            _Progress(sum(file.stat().st_size for _, file in files)) as progress,
            tarfile.open(draft, "w:gz", compresslevel=COMPRESSION_LEVEL) as packed,
        ):
            _add_manifest(packed, files)
            for name, file in files:
                with file.open("rb") as content:
                    packed.addfile(packed.gettarinfo(file, str(name)), progress.watch(content))
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def _add_manifest(packed: tarfile.TarFile, files: Iterable[tuple[PurePath, Path]]) -> None:
    manifest = {
        **needed_kind().form(),
        "modified_ns": {str(name): file.stat().st_mtime_ns for name, file in files if name.suffix == ".py"},
    }
    content = json.dumps(manifest).encode()
    entry = tarfile.TarInfo(MANIFEST)
    entry.size = len(content)
    packed.addfile(entry, io.BytesIO(content))


class _Progress:
    """One line on a terminal, as long as it takes."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = max(1, total_bytes)
        self._done_bytes = 0
        self._shown = -1
        self._is_shown = sys.stderr.isatty()

    def watch(self, content: BinaryIO) -> BinaryIO:
        self._show()
        self._done_bytes += os.fstat(content.fileno()).st_size
        return content

    def _show(self) -> None:
        percent = 100 * self._done_bytes // self._total_bytes
        if not self._is_shown or percent == self._shown:
            return
        self._shown = percent
        size = f"{self._total_bytes / 1e6:.0f} MB"
        print(
            f"\rpenstock: packing what executors need, once: {percent} % of {size}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown >= 0:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
