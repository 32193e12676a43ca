from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.zookeeper import ZooKeeperServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server for all tests that do not stop it; each keeps to a path of its own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def address(server: ZooKeeperServer, tmp_path: Path) -> str:
    """The server and a path that nobody has used."""
    return f"{server.address}/{tmp_path.parent.name}-{tmp_path.name}"
