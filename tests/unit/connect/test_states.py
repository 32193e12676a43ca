"""What records of the topics of configs and statuses lead to."""

from __future__ import annotations

import json

from penstock.connect.state import configs, statuses
from penstock.connect.state.configs import Change, ConfigState, Kind, Target
from penstock.connect.state.statuses import Status, StatusState
from penstock.connect.state.values import Written, packed, unpacked

APACHES = [
    ("session-key", {"key": "abc=", "algorithm": "HmacSHA256", "creation-timestamp": 1795120382403}),
    ("connector-src1", {"properties": {"connector.class": "FileStreamSource", "name": "src1"}}),
    ("task-src1-0", {"properties": {"file": "a"}}),
    ("task-src1-1", {"properties": {"file": "b"}}),
    ("commit-src1", {"tasks": 2}),
    ("tasks-fencing-src1", {"task-count": 2}),
    ("target-state-src1", {"state": "PAUSED", "state.v2": "STOPPED"}),
    ("logger-cluster-org.apache", {"level": "INFO"}),
    ("restart-connector-src1", {"include-tasks": True, "only-failed": False}),
]


def replayed(*records: tuple[str, object]) -> ConfigState:
    state = ConfigState()
    for key, value in records:
        state.replay(key, value)
    return state


def test_records_of_kafkas_workers_are_read() -> None:
    state = replayed(*APACHES)
    assert state.connectors["src1"]["connector.class"] == "FileStreamSource"
    assert [task["file"] for task in state.tasks["src1"]] == ["a", "b"]
    assert state.target("src1") is Target.STOPPED
    assert state.fenced_tasks == {"src1": 2}
    assert state.loggers == {"org.apache": "INFO"}
    assert state.session_key is not None
    assert not state.unknown


def test_each_record_says_what_it_has_changed() -> None:
    state = ConfigState()
    told = [state.replay(key, value).kind for key, value in APACHES]
    assert told == [
        Kind.NOTHING, Kind.CONFIG, Kind.NOTHING, Kind.NOTHING, Kind.TASKS, Kind.NOTHING, Kind.TARGET, Kind.LOGGER, Kind.RESTART,
    ]  # fmt: skip
    assert state.replay("connector-src1", None) == Change(Kind.REMOVED, "src1")
    assert not state.connectors
    assert not state.tasks


def test_our_records_are_kafkas() -> None:
    written = [
        configs.connector_record("a", {"x": "1"}),
        *configs.task_records("a", [{"y": "2"}]),
        configs.target_record("a", Target.STOPPED),
        configs.target_record("a", Target.STARTED),
        configs.fencing_record("a", 1),
        configs.restart_record("a", with_tasks=True, only_failed=False),
        configs.logger_record("b", "DEBUG"),
    ]
    assert [(key, packed(value)) for key, value in written] == [
        ("connector-a", b'{"properties":{"x":"1"}}'),
        ("task-a-0", b'{"properties":{"y":"2"}}'),
        ("commit-a", b'{"tasks":1}'),
        ("target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        ("target-state-a", b'{"state":"STARTED","state.v2":"STARTED"}'),
        ("tasks-fencing-a", b'{"task-count":1}'),
        ("restart-connector-a", b'{"include-tasks":true,"only-failed":false}'),
        ("logger-cluster-b", b'{"level":"DEBUG"}'),
    ]
    assert configs.removal_records("a") == [Written("connector-a", None), Written("target-state-a", None)]


def test_tasks_count_when_they_are_committed_and_complete() -> None:
    state = replayed(
        ("connector-c", {"properties": {}}),
        ("task-c-0", {"properties": {"n": "old"}}),
        ("commit-c", {"tasks": 1}),
    )
    state.replay("task-c-0", {"properties": {"n": "new"}})
    assert state.tasks["c"][0]["n"] == "old", "not committed"
    state.replay("commit-c", {"tasks": 2})
    assert state.inconsistent == {"c"}, "the second one is missing"
    for task in (0, 1):
        state.replay(f"task-c-{task}", {"properties": {}})
    state.replay("commit-c", {"tasks": 2})
    assert not state.inconsistent
    assert len(state.tasks["c"]) == 2
    state.replay("commit-c", {"tasks": 0})
    assert state.tasks["c"] == ()


def test_compaction_may_have_left_only_the_last_of_each_key() -> None:
    """Two tasks, then one: the record of the second task is still there."""
    state = replayed(
        ("connector-c", {"properties": {}}), ("task-c-1", {"properties": {"n": "old"}}), ("task-c-0", {"properties": {"n": "0"}}),
        ("commit-c", {"tasks": 1}),
    )  # fmt: skip
    assert state.inconsistent == {"c"}
    assert state.tasks["c"] == ()


def test_names_may_have_dashes_and_numbers() -> None:
    state = replayed(("task-a-1-b-0", {"properties": {"n": "0"}}), ("commit-a-1-b", {"tasks": 1}))
    assert list(state.tasks) == ["a-1-b"]


def test_an_older_workers_target_counts_and_no_target_is_started() -> None:
    assert replayed(("target-state-c", {"state": "PAUSED"})).target("c") is Target.PAUSED
    assert replayed(("target-state-c", None)).target("c") is Target.STARTED


def test_what_nobody_knows_is_kept() -> None:
    state = replayed(("future-x", {"a": 1}), ("connector-bad", {"b": 1}), ("task-x", {}), ("commit-c", []))
    assert set(state.unknown) == {"future-x", "connector-bad", "task-x", "commit-c"}
    assert not state.connectors


def test_statuses_are_read_and_written_as_kafkas_are() -> None:
    state = StatusState()
    status = Status("RUNNING", "127.0.0.1:8083", 4, None, "4.3.1")
    written = [
        statuses.connector_record("a", status),
        statuses.task_record("a", 0, status._replace(state="FAILED", trace="why")),
        statuses.topic_record("a", "t:x", task=0, time_ms=5),
    ]
    assert packed(written[0].value) == (
        b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":4,"version":"4.3.1"}'
    )
    assert written[2] == (
        "status-topic-t:x:connector-a",
        {"topic": {"name": "t:x", "connector": "a", "task": 0, "discoverTimestamp": 5}},
    )
    for key, value in written:
        state.replay(key, unpacked(packed(value)))
    assert state.connectors["a"] == status
    assert state.tasks_of("a")[0].document() == {
        "state": "FAILED", "worker_id": "127.0.0.1:8083", "version": "4.3.1", "trace": "why",
    }  # fmt: skip
    assert state.topics_of("a") == ["t:x"]
    for removed in (
        statuses.connector_record("a", None),
        statuses.task_record("a", 0, None),
        statuses.topic_removal("a", "t:x"),
    ):
        state.replay(*removed)
    assert not state.connectors
    assert not state.tasks_of("a")
    assert not state.topics_of("a")
    assert not state.tasks, "connectors come and go"
    assert not state.topics
    state.replay("status-x", {})
    state.replay("status-task-a-x", {"state": "RUNNING", "worker_id": "x"})
    assert set(state.unknown) == {"status-x", "status-task-a-x"}


def test_an_older_workers_status_has_no_version() -> None:
    state = StatusState()
    state.replay(
        "status-connector-a", json.loads('{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}')
    )
    assert state.connectors["a"].document() == {"state": "RUNNING", "worker_id": "w"}
