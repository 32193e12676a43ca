"""The template of a package with connectors (examples/connectors): its tests pass, and a worker finds what it installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120
LISTING = """
from penstock.connect.plugins import Plugins
for plugin in Plugins().all("source", "sink"):
    if plugin.name.startswith("example_connectors."):
        print(plugin.kind, plugin.name, plugin.version)
assert Plugins().find("FolderSource").load().__name__ == "FolderSource"
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    return shutil.copytree(ROOT / "examples" / "connectors", tmp_path / "template", ignore=ignored)


def python(directory: Path, *words: str, path: str | None = None) -> str:
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=given | ({} if path is None else {"PYTHONPATH": path}),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_template_pass(template: Path) -> None:
    assert "9 passed" in python(template, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_a_worker_finds_the_connectors_of_the_template(template: Path) -> None:
    # What an installation leaves of the entry points, without building a wheel.
    python(template, "-c", "import setuptools; setuptools.setup()", "-q", "egg_info")
    assert python(template, "-c", LISTING, path=str(template / "src")).splitlines() == [
        "source example_connectors.folder_source.FolderSource 0.1.0",
        "sink example_connectors.sqlite_sink.SqliteSink 0.1.0",
    ]
