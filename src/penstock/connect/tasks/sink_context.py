"""What a sink task sees of what runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connect.interface import TopicPlace
from penstock.connect.records import SinkRecord

if TYPE_CHECKING:
    from penstock.connect.tasks.sink import SinkWork


class SinkContext:
    """What the task sees."""

    def __init__(self, work: SinkWork) -> None:
        self._work = work
        self.connector, self.task = work._frame.connector, work._frame.task

    def assignment(self) -> frozenset[TopicPlace]:
        group = self._work._group
        return frozenset() if group is None else frozenset(group.terms)

    def seek(self, place: TopicPlace, offset: int) -> None:
        topic, partition = place
        self._work._sought[topic, partition] = offset

    def pause(self, *places: TopicPlace) -> None:
        assert self._work._group is not None
        self._work._group.hold(places)

    def resume(self, *places: TopicPlace) -> None:
        assert self._work._group is not None
        self._work._group.release(places)

    def retry_after(self, seconds: float) -> None:
        self._work._retry_s = seconds

    def request_commit(self) -> None:
        self._work._is_commit_asked = True

    def report(self, record: SinkRecord, error: BaseException) -> None:
        self._work.report(record, error)
