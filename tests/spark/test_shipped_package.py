"""The archive of our own modules that goes to executors: what is in it, and that nothing else is needed."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePath

import pytest

from penstock.spark.workers.distributions import distribution_files, needed_distributions
from penstock.spark.workers.modules import executor_modules
from penstock.spark.workers.shipped import MANIFEST, take_in
from penstock.spark.workers.shipping import needed_kind, package_archive

IMPORT_TIMEOUT_S = 120
FOLDERS = {
    "arrow",
    "client",
    "consumer",
    "credentials",
    "model",
    "records",
    "schemas",
    "security",
    "spark",
    "streams",
    "wire",
}
# Without site-packages, the environment and the folder that it runs in: nothing but what is named.
PROGRAM = """
import importlib, importlib.util, sys
sys.path[:0] = sys.argv[1:3]
for name in sys.argv[3:]:
    importlib.import_module(name)
places = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "penstock"}
elsewhere = [name for name, place in places.items() if not place.startswith(sys.argv[1])]
absent = [name for name in ("broker", "cli", "testing") if importlib.util.find_spec("penstock." + name) is None]
print(len(places), elsewhere, absent)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield package_archive()


@pytest.fixture(scope="module")
def names(archive: Path) -> list[PurePath]:
    with tarfile.open(archive) as packed:
        return [PurePath(name) for name in packed.getnames()]


def test_the_package_is_packed_once_with_its_compiled_walks(archive: Path, names: list[PurePath]) -> None:
    made_ns = archive.stat().st_mtime_ns
    assert package_archive() == archive
    assert archive.stat().st_mtime_ns == made_ns
    assert PurePath("penstock/spark/internals/daemon.py") in names
    assert any(f"{name}".startswith("penstock/records/columnar/__pycache__/kernels") for name in names)
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_executors_are_sent_what_they_import_and_no_broker_command_line_or_tests(
    names: list[PurePath],
) -> None:
    sources = {name for name in names if name.suffix == ".py"}
    assert {name.parts[1] for name in sources if len(name.parts) > 2} == FOLDERS
    root = Path(sys.modules["penstock"].__path__[0]).parent
    assert sources == {PurePath(module.path.relative_to(root)) for module in executor_modules()}
    assert {name.suffix for name in names} == {".py", ".pyc", ".nbi", ".nbc", ".json"}


def test_executors_import_everything_from_the_archives_alone(archive: Path, tmp_path: Path) -> None:
    package, libraries = tmp_path / "package", tmp_path / "libraries"
    with tarfile.open(archive) as packed:
        packed.extractall(package, filter="data")
    take_in(package)
    libraries.mkdir()
    tops = {
        name.parts[0]: Path(str(owner.locate_file(name.parts[0])))  # `google` is of two distributions
        for owner in (*needed_distributions(), distribution("pyspark"), distribution("py4j"))
        for name, _ in distribution_files(owner)
    }
    for top, place in tops.items():
        (libraries / top).symlink_to(place)
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            PROGRAM,
            package,
            libraries,
            *(each.name for each in executor_modules()),
        ],
        capture_output=True,
        text=True,
        timeout=IMPORT_TIMEOUT_S,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == f"{len(executor_modules())} [] ['broker', 'cli', 'testing']", done.stderr


def test_the_archive_says_which_python_and_c_library_it_is_for(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        content = packed.extractfile(MANIFEST)
        assert content is not None
        manifest = json.load(content)
    assert manifest["binary_kind"] == needed_kind().binary
    assert manifest["c_library"][0] in ("glibc", "musl")
