"""Two clusters of one broker each, for all tests of a file that do not end them."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import BROKER_OPTIONS

OPTIONS = {**BROKER_OPTIONS, "log.cleaner.backoff.ms": "100"}


class Clusters(NamedTuple):
    """The addresses of both."""

    a: str
    b: str


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with (
        PenstockBroker(tmp_path_factory.mktemp("A"), options=OPTIONS) as a,
        PenstockBroker(tmp_path_factory.mktemp("B"), options=OPTIONS) as b,
    ):
        yield Clusters(a.bootstrap, b.bootstrap)
        for one in (a, b):
            assert "Traceback" not in one.log_path.read_text(), "a broker logged a bug of its own"
