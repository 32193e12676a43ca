"""A broker of the registries' own, and one registry for each file of tests."""

from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.registry.registries import RegistryProcess


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    service = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    yield service
    assert service.close() == 0
    assert "Traceback" not in service.log
