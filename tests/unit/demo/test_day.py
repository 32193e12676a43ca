import json
import random
from datetime import timedelta

import pytest

from examples.demo import verify
from examples.demo.day import FREQUENCIES, HOUR, Upload, uploads
from examples.demo.population import population

COUNT = 5000


@pytest.fixture(scope="module")
def day() -> list[Upload]:
    chance = random.Random(1)
    return list(uploads(COUNT, population(100, chance), chance))


def test_as_many_measurements_are_made_as_were_asked_for(day: list[Upload]) -> None:
    assert sum(len(upload.measurements) for upload in day) == COUNT


def test_what_is_not_refused_is_json_with_what_the_measurement_says(day: list[Upload]) -> None:
    for upload in day:
        for each in upload.measurements:
            if each.refused_for is None:
                assert each.worker is not None
                record = json.loads(each.value)
                assert record["worker"] == each.worker.worker == each.key
                assert record["upload"] == upload.upload
                assert record["resistance_ohm"] == each.resistance_ohm
                assert each.frequency_khz in FREQUENCIES


def test_every_way_to_be_broken_is_there(day: list[Upload]) -> None:
    causes = {each.refused_for for upload in day for each in upload.measurements}
    assert causes == {None, "NotJson", "MissingField", "OutOfRange", "UnknownWorker"}


def test_late_measurements_come_while_their_window_is_open(day: list[Upload]) -> None:
    late = 0
    for number, upload in enumerate(day[:-1]):
        # The newest that Spark may have seen when it reads the last of this upload.
        watermark = verify.watermark(day[: number + 1])
        for each in upload.measurements:
            assert upload.begin - HOUR <= each.at < upload.begin + HOUR
            assert each.at.replace(minute=0, second=0, microsecond=0) + HOUR > watermark
            late += each.at < upload.begin
    assert late


def test_what_is_too_late_comes_when_its_window_has_long_been_closed(day: list[Upload]) -> None:
    too_late = [each for each in day[-1].measurements if each.is_too_late]
    assert too_late
    assert all(each.at + HOUR < verify.watermark(day[:-1]) for each in too_late)
    assert not any(each.is_too_late for upload in day[:-1] for each in upload.measurements)


def test_the_next_morning_closes_all_windows_of_the_day(day: list[Upload]) -> None:
    assert verify.watermark(day) > day[-2].begin + timedelta(hours=2)
    hours = {begin for begin, _ in verify.expected_summary(day)}
    assert hours == {upload.begin for upload in day[:-1]}
