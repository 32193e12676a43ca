"""What an operator hears while ZooKeeper does not serve the broker."""

import logging

import pytest

from penstock.stores.zookeeper_absence import TELL_AGAIN_S, Absence

LACKS = "zk:2181 is at zxid 0x5, this broker was at 0x40"


class Told:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.now = 100.0
        self.absence = Absence("zk:2181", lambda: self.now)

    @property
    def levels(self) -> list[int]:
        return [record.levelno for record in self._caplog.records]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    return Told(caplog)


def test_silence_is_told_at_once_and_then_each_minute(told: Told) -> None:
    told.absence.begin()
    told.absence.go_on("")
    assert told.levels == [logging.WARNING]
    told.now += TELL_AGAIN_S
    told.absence.go_on("")
    assert told.levels == [logging.WARNING] * 2
    assert told.absence.state == ("does not answer", 1, 0)
    told.absence.end()
    assert told.absence.state == ("", 1, 0)


def test_older_data_is_an_error_as_soon_as_it_is_known(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    told.absence.begin()
    for _ in range(3):
        told.absence.go_on(LACKS)
    assert told.levels == [logging.WARNING, logging.ERROR]
    assert (
        "ZooKeeper at zk:2181 has older data than this broker has seen (zk:2181 is at zxid 0x5" in caplog.text
    )
    assert told.absence.state.trouble.startswith("has older data than this broker has seen")
    told.now += TELL_AGAIN_S
    told.absence.go_on(LACKS)
    assert told.levels == [logging.WARNING, logging.ERROR, logging.ERROR]


def test_an_ended_session_counts(told: Told) -> None:
    told.absence.end("has ended the session")
    assert told.absence.state == ("has ended the session", 0, 1)
