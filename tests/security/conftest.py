from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.stack.certificates import Authority
from tests.security.secured_broker import SecuredBroker


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[SecuredBroker]:
    """One broker for all that only need its listeners."""
    with SecuredBroker(tmp_path_factory.mktemp("secured"), authority) as broker:
        yield broker


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path
