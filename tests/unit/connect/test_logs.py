"""The last lines of connectors' logs in a worker's memory."""

from __future__ import annotations

import logging
import threading

from penstock.connect.running.logs import CONNECTORS_MAX, ConnectorHandler, ConnectorLogs


def told(text: str) -> dict[str, object]:
    return {"time_ms": 1, "level": "INFO", "logger": "l", "text": text}


def filled(*texts: str, lines_max: int = 3) -> ConnectorLogs:
    logs = ConnectorLogs(lines_max)
    for number, text in enumerate(texts):
        logs.add("c", number % 2, told(text))
    return logs


def test_only_the_last_lines_are_kept() -> None:
    lines, last = filled("a", "b", "c", "d").last("c", 10)
    assert [line.text for line in lines] == ["b", "c", "d"]
    assert last == 3


def test_who_follows_gets_what_is_new() -> None:
    logs = filled("a", "b")
    _, last = logs.last("c", 10)
    assert logs.last("c", 10, after=last) == ([], last)
    logs.add("c", 0, told("new"))
    assert [line.text for line in logs.last("c", 10, after=last)[0]] == ["new"]


def test_a_number_of_a_leader_before_begins_anew() -> None:
    assert len(filled("a", "b").last("c", 10, after=9_999)[0]) == 2


def test_lines_of_one_task_and_only_so_many() -> None:
    logs = filled("a", "b", "c")
    assert [line.text for line in logs.last("c", 10, task=0)[0]] == ["a", "c"]
    assert [line.text for line in logs.last("c", 1)[0]] == ["c"]
    assert logs.last("c", 0)[0] == []


def test_the_connector_that_was_silent_for_longest_is_forgotten() -> None:
    logs = ConnectorLogs()
    for number in range(CONNECTORS_MAX + 1):
        logs.add(f"c{number}", 0, told("x"))
    assert logs.last("c0", 1)[0] == []
    assert logs.last("c1", 1)[0]


def test_the_workers_own_threads_tell_of_the_connector_that_they_are_named_after() -> None:
    logs = ConnectorLogs()
    logger = logging.Logger("penstock.connect")
    logger.addHandler(ConnectorHandler(logs))
    for name in ("penstock-keeper-c", "penstock-connect-rest_0"):
        thread = threading.Thread(
            target=lambda: logger.info("by %s", threading.current_thread().name), name=name
        )
        thread.start()
        thread.join()
    assert [line.text for line in logs.last("c", 9)[0]] == ["by penstock-keeper-c"]


def test_long_lines_of_many_connectors_take_bounded_memory() -> None:
    logs = ConnectorLogs(characters_max=1_000)
    for number in range(50):
        logs.add(f"c{number % 5}", 0, told("x" * 300))
    kept = [len(logs.last(f"c{number}", 10)[0]) for number in range(5)]
    assert sum(kept) == 3
    assert kept[4] > 0, "the one that spoke last"
    for _ in range(20):
        logs.add("alone", None, told("y" * 300))
    assert len(logs.last("alone", 10)[0]) == 3
    logs.add("alone", None, told("z" * 2_000))
    assert [line.text[0] for line in logs.last("alone", 10)[0]] == ["z"]
