"""Servers that connectors write to and read from, started once."""

from collections.abc import Iterator

import pytest

from tests.connect.databases import MariaDb, PostgreSql, Redis
from tests.connect.task_fixtures import read, start, worker

__all__ = ["read", "start", "worker"]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSql]:
    with PostgreSql() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    with MariaDb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server
