"""One wheel for all tests of this folder."""

from pathlib import Path

import pytest

from tests.packaging.installed import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))
