from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock


@pytest.fixture
def disk() -> OsDisk:
    return OsDisk()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def open_log(disk: OsDisk, clock: StillClock, tmp_path: Path) -> Callable[..., Log]:
    def open_(*, clean: bool = False, recovery_point: int = 0, start_offset: int = 0, **options: Any) -> Log:
        return Log.open(
            disk,
            str(tmp_path / "orders-3"),
            LogOptions(**options),
            clock,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
        )

    return open_
