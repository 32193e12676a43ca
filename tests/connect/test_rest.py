"""Each path of the REST API, at a worker of a group whose tasks are processes."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import StartBroker
from tests.connect.workers import DEADLINE_S, Reading, Worker, closing, group_properties, until

SOURCE, SINK = "FileStreamSource", "FileStreamSink"
MANY = 80  # more than there are threads
NO_REGEX = "Must configure one of topics or topics.regex"


@pytest.fixture(scope="module")
def worker(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    directory = tmp_path_factory.mktemp("worker")
    running = Worker(directory, group_properties(broker.bootstrap))
    try:
        until(lambda: running.leads, "leading")
        yield running
        assert "Traceback" not in running.log
    finally:
        running.close()


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\nhalf")
    return file


def source(lines: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SOURCE, "file": str(lines), "topic": topic, **more}


def test_the_worker_tells_its_version_its_cluster_and_its_health(worker: Worker) -> None:
    status, found = worker.call("GET", "/")
    assert status == 200
    assert set(found) == {"version", "commit", "kafka_cluster_id"}
    assert found["kafka_cluster_id"]
    assert worker.call("GET", "/health")[1] == {
        "status": "healthy", "message": "Worker has completed startup and is ready to handle requests.",
    }  # fmt: skip
    assert worker.call("GET", "/nope") == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert worker.call("DELETE", "/connectors")[0] == 405


def test_a_connector_from_its_making_to_its_end(
    worker: Worker, broker: PenstockBroker, lines: Path, topic_name: str
) -> None:
    name = f"life-{topic_name}"
    reading = Reading(broker.bootstrap, topic_name)
    made = worker.create(name, {**source(lines, topic_name), "tasks.max": 1, "batch.size": 10})  # type: ignore[dict-item]
    assert made["tasks"] == []
    assert made["type"] == "source"
    assert made["config"]["tasks.max"] == "1", "numbers are kept as texts"
    assert made["config"]["name"] == name
    worker.wait_for(name, "RUNNING", "RUNNING")
    assert reading.wait(2) == ["one", "two"]
    with lines.open("a") as file:
        file.write(" a line\n")
    assert reading.wait(3)[-1] == "half a line", "half a line waits for its end"
    reading.close()

    status, found = worker.call("GET", f"/connectors/{name}")
    assert (status, found["tasks"]) == (200, [{"connector": name, "task": 0}])
    assert name in worker.call("GET", "/connectors")[1]
    expanded = worker.call("GET", "/connectors?expand=status&expand=info")[1][name]
    assert expanded["info"]["config"]["connector.class"] == SOURCE, "an alias stays as it was typed"
    assert expanded["status"]["tasks"][0]["state"] == "RUNNING"
    tasks = worker.call("GET", f"/connectors/{name}/tasks")[1]
    assert tasks[0]["id"] == {"connector": name, "task": 0}
    assert tasks[0]["config"]["task.class"] == "org.apache.kafka.connect.file.FileStreamSourceTask"
    assert worker.call("GET", f"/connectors/{name}/tasks/0/status")[1]["state"] == "RUNNING"
    assert worker.call("GET", f"/connectors/{name}/tasks/7/status")[0] == 404
    assert worker.call("GET", f"/connectors/{name}/tasks/x/status")[0] == 404
    until(lambda: worker.call("GET", f"/connectors/{name}/topics")[1] == {name: {"topics": [topic_name]}})
    assert worker.call("PUT", f"/connectors/{name}/topics/reset") == (202, None)
    assert worker.call("GET", f"/connectors/{name}/topics")[1] == {name: {"topics": []}}

    assert worker.call("DELETE", f"/connectors/{name}") == (204, None)
    assert worker.call("DELETE", f"/connectors/{name}")[0] == 404
    until(lambda: worker.call("GET", f"/connectors/{name}/status")[0] == 404)


def test_pause_resume_stop_and_restart(worker: Worker, lines: Path, topic_name: str) -> None:
    name = f"states-{topic_name}"
    worker.create(name, source(lines, topic_name))
    worker.wait_for(name, "RUNNING", "RUNNING")
    assert worker.call("PUT", f"/connectors/{name}/pause") == (202, None)
    worker.wait_for(name, "PAUSED", "PAUSED")
    assert worker.call("PUT", f"/connectors/{name}/resume") == (202, None)
    worker.wait_for(name, "RUNNING", "RUNNING")
    assert worker.call("POST", f"/connectors/{name}/restart") == (204, None)
    worker.wait_for(name, "RUNNING", "RUNNING")
    status, found = worker.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=false")
    assert status == 202
    assert found["connector"]["state"] == "RESTARTING"
    assert [task["state"] for task in found["tasks"]] == ["RESTARTING"]
    worker.wait_for(name, "RUNNING", "RUNNING")
    status, found = worker.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    assert (status, found["connector"]["state"]) == (202, "RUNNING"), "nothing has failed"
    assert worker.call("POST", f"/connectors/{name}/tasks/0/restart") == (204, None)
    assert worker.call("POST", f"/connectors/{name}/tasks/9/restart")[0] == 404
    worker.wait_for(name, "RUNNING", "RUNNING")
    assert worker.call("PUT", f"/connectors/{name}/stop") == (204, None)
    assert worker.call("GET", f"/connectors/{name}/tasks")[1] == []
    worker.wait_for(name, "STOPPED")
    for path in ("pause", "resume", "stop"):
        assert worker.call("PUT", f"/connectors/nope/{path}") == (
            404, {"error_code": 404, "message": "Unknown connector nope"},
        )  # fmt: skip
    assert worker.call("POST", "/connectors/nope/restart")[1]["message"] == "Unknown connector: nope"
    worker.call("DELETE", f"/connectors/{name}")


def test_offsets_of_a_source(worker: Worker, broker: PenstockBroker, lines: Path, topic_name: str) -> None:
    name, path = f"offsets-{topic_name}", f"/connectors/offsets-{topic_name}/offsets"
    place = {"filename": str(lines)}
    worker.create(name, source(lines, topic_name))
    told = {"offsets": [{"partition": place, "offset": {"position": 8}}]}
    until(lambda: worker.call("GET", path)[1] == told, "an offset")
    there = {"offsets": [{"partition": place, "offset": {"position": 4}}]}
    status, found = worker.call("PATCH", path, there)
    assert status == 400
    assert found["message"].startswith(
        "Connectors must be in the STOPPED state before their offsets can be modified."
    )
    worker.call("PUT", f"/connectors/{name}/stop")
    done = {"message": "The offsets for this connector have been altered successfully"}
    assert worker.call("PATCH", path, there) == (200, done)
    assert worker.call("GET", path)[1] == there
    for refused, why, code in (
        ({"offsets": []}, "Partitions / offsets need to be provided", 400),
        ({"offsets": [{"partition": place, "offset": {"position": -3}}]}, "non-negative", 500),
        ({"offsets": [{"partition": {"file": "x"}, "offset": {"position": 3}}]}, "the key 'filename'", 500),
        ({"offsets": [{"offset": {"position": 3}}]}, "Partition objects cannot be null", 500),
    ):
        status, found = worker.call("PATCH", path, refused)
        assert (status, why in found["message"]) == (code, True), found
    reading = Reading(broker.bootstrap, topic_name)
    worker.call("PUT", f"/connectors/{name}/resume")
    assert reading.wait(3) == ["one", "two", "two"], "it goes on where it was sent"
    worker.call("PUT", f"/connectors/{name}/stop")
    assert worker.call("DELETE", path)[1] == {
        "message": "The offsets for this connector have been reset successfully"
    }
    assert worker.call("GET", path)[1] == {"offsets": []}
    worker.call("PUT", f"/connectors/{name}/resume")
    assert reading.wait(5)[-2:] == ["one", "two"]
    reading.close()
    worker.call("DELETE", f"/connectors/{name}")
    assert worker.call("GET", path)[0] == 404


def test_offsets_of_a_sink(
    worker: Worker, broker: PenstockBroker, lines: Path, topic_name: str, tmp_path: Path
) -> None:
    name, path, out = f"sink-{topic_name}", f"/connectors/sink-{topic_name}/offsets", tmp_path / "out.txt"
    worker.create(f"from-{topic_name}", source(lines, topic_name))
    worker.create(name, {"connector.class": SINK, "topics": topic_name, "file": str(out)})
    until(lambda: out.exists() and out.read_text() == "one\ntwo\n", "the lines")
    place = {"kafka_topic": topic_name, "kafka_partition": 0}
    told = {"offsets": [{"partition": place, "offset": {"kafka_offset": 2}}]}
    until(lambda: worker.call("GET", path)[1] == told, "a committed offset")
    worker.call("PUT", f"/connectors/{name}/stop")
    there = {"offsets": [{"partition": place, "offset": {"kafka_offset": 1}}]}
    assert worker.call("PATCH", path, there)[0] == 200
    assert worker.call("GET", path)[1] == there
    gone = {"offsets": [{"partition": place, "offset": None}]}
    assert worker.call("PATCH", path, gone)[0] == 200, "a null offset resets one partition"
    assert worker.call("GET", path)[1] == {"offsets": []}
    bad: list[tuple[Any, str]] = [
        ({"topic": "t", "kafka_partition": 0}, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        (
            {"kafka_topic": "t", "kafka_partition": "x"},
            "Partition values for sink connectors need to be integers.",
        ),
    ]
    for partition, why in bad:
        status, found = worker.call("PATCH", path, {"offsets": [{"partition": partition, "offset": None}]})
        assert (status, why in found["message"]) == (400, True)
    assert worker.call("PATCH", path, there)[0] == 200
    assert worker.call("DELETE", path)[0] == 200
    worker.call("PUT", f"/connectors/{name}/resume")
    until(lambda: out.read_text() == "one\ntwo\none\ntwo\n", "all once more")
    for each in (name, f"from-{topic_name}"):
        worker.call("DELETE", f"/connectors/{each}")


def test_configurations_are_changed_and_checked(worker: Worker, lines: Path, topic_name: str) -> None:
    name = f"config-{topic_name}"
    given = source(lines, topic_name)
    status, found = worker.call("PUT", f"/connectors/{name}/config", given)
    assert status == 201
    assert worker.call("PUT", f"/connectors/{name}/config", {**given, "batch.size": "7"})[0] == 200
    status, found = worker.call("PATCH", f"/connectors/{name}/config", {"batch.size": None, "tasks.max": 2})
    assert status == 200
    assert worker.call("GET", f"/connectors/{name}/config") == (
        200,
        {**given, "name": name, "tasks.max": "2"},
    )
    assert found["config"]["tasks.max"] == "2"
    assert worker.call("PATCH", "/connectors/nope/config", {})[0] == 404
    worker.wait_for(name, "RUNNING", "RUNNING")
    conflict = worker.call("POST", "/connectors", {"name": name, "config": given})
    assert conflict == (409, {"error_code": 409, "message": f"Connector {name} already exists"})
    refused: list[tuple[int, Any, str]] = [
        (500, b"{", "JSON"),
        (500, {"name": "x"}, "config"),
        (500, {"name": "x", "config": given, "bad": 1}, 'Unrecognized field "bad"'),
        (500, {"name": "x", "config": given, "initial_state": "WRONG"}, "WRONG"),
        (400, {"name": "x", "config": {}}, "Connector config {name=x} contains no connector type"),
        (400, {"name": "x", "config": {"connector.class": "nope.Nope"}},
         "Failed to find any class that implements Connector and which name matches nope.Nope"),
        (400, {"name": "x", "config": {**given, "name": "y"}},
         "Connector name configuration (y) doesn't match connector name in the URL (x)"),
        (400, {"name": "x", "config": {**given, "tasks.max": "x"}}, "contains the following 2 error(s):\nInvalid value x"),
        (400, {"name": "x", "config": {"connector.class": SINK}}, f"2 error(s):\n{NO_REGEX}\n{NO_REGEX}\n"),
        (400, {"name": "x", "config": {**given, "y": None}}, "Null value can not be supplied as the configuration value."),
    ]  # fmt: skip
    for code, body, why in refused:
        status, found = worker.call("POST", "/connectors", body)
        assert (status, found["error_code"]) == (code, code)
        assert why in found["message"], found
    worker.call("DELETE", f"/connectors/{name}")


def test_a_connector_may_begin_paused_or_stopped(worker: Worker, lines: Path, topic_name: str) -> None:
    for state in ("STOPPED", "PAUSED"):
        name = f"{state.lower()}-{topic_name}"
        worker.create(name, source(lines, topic_name), initial_state=state)
        worker.wait_for(name, state)
        worker.call("PUT", f"/connectors/{name}/resume")
        worker.wait_for(name, "RUNNING", "RUNNING")
        worker.call("DELETE", f"/connectors/{name}")


def test_plugins_are_listed_described_and_their_configurations_checked(worker: Worker) -> None:
    listed = worker.call("GET", "/connector-plugins")[1]
    assert {one["type"] for one in listed} == {"source", "sink"}
    everything = worker.call("GET", "/connector-plugins?connectorsOnly=false")[1]
    assert {one["type"] for one in everything} == {
        "source", "sink", "converter", "header_converter", "transformation", "predicate",
    }  # fmt: skip
    status, found = worker.call("GET", f"/connector-plugins/{SOURCE}/config")
    assert status == 200
    assert found[1] == {
        "name": "topic", "type": "STRING", "required": True, "default_value": None, "importance": "HIGH",
        "documentation": found[1]["documentation"], "group": None, "order_in_group": -1, "width": "NONE",
        "display_name": "topic", "dependents": [],
    }  # fmt: skip
    assert worker.call("GET", "/connector-plugins/nope/config")[1]["message"] == "Unknown plugin nope."
    path = f"/connector-plugins/{SOURCE}/config/validate"
    status, found = worker.call("PUT", path, {"connector.class": SOURCE, "tasks.max": "x", "name": "n"})
    assert (status, found["error_count"]) == (200, 3), "messages are counted, not settings"
    assert found["groups"][:4] == ["Common", "Transforms", "Predicates", "Error Handling"]
    by_name = {one["value"]["name"]: one for one in found["configs"]}
    assert by_name["tasks.max"]["value"]["errors"][1].endswith("Value must be non-null")
    status, found = worker.call("PUT", path, {"connector.class": SINK})
    assert (status, found["message"]) == (
        400, f"Included connector type {SINK} does not match request type {SOURCE}",
    )  # fmt: skip
    assert worker.call("PUT", path, {"file": "x"})[0] == 500


def test_loggers_are_shown_and_set(worker: Worker) -> None:
    name = "penstock.connect.testing"
    assert worker.call("GET", "/admin/loggers/nope.x")[1]["message"] == "Logger nope.x not found."
    assert worker.call("PUT", f"/admin/loggers/{name}", {"level": "BAD"})[0] == 404
    assert worker.call("PUT", f"/admin/loggers/{name}", {})[0] == 400
    assert worker.call("PUT", f"/admin/loggers/{name}", {"level": "DEBUG"}) == (200, [name])
    assert worker.call("GET", f"/admin/loggers/{name}")[1]["level"] == "DEBUG"
    assert worker.call("GET", "/admin/loggers")[1][name]["last_modified"] > 0
    assert worker.call("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": "ERROR"}) == (204, None)
    until(lambda: worker.call("GET", f"/admin/loggers/{name}")[1]["level"] == "ERROR")


def test_unknown_names(worker: Worker) -> None:
    unknown = {"error_code": 404, "message": "Connector nope not found"}
    for path in ("", "/config", "/tasks", "/offsets"):
        assert worker.call("GET", f"/connectors/nope{path}") == (404, unknown)
    assert worker.call("GET", "/connectors/nope/status")[1]["message"] == "No status found for connector nope"
    assert worker.call("GET", "/connectors/nope/topics") == (200, {"nope": {"topics": []}})


def test_a_name_may_hold_anything(worker: Worker, lines: Path, topic_name: str) -> None:
    name, path = f"a/b c%é {topic_name}", f"/connectors/a%2Fb%20c%25%C3%A9%20{topic_name}"
    worker.create(name, source(lines, topic_name))
    until(lambda: worker.call("GET", f"{path}/status")[0] == 200, "its status")
    assert worker.call("GET", path)[1]["name"] == name
    assert worker.call("DELETE", path)[0] == 204


def test_numbers_are_told(worker: Worker, lines: Path, topic_name: str) -> None:
    worker.create(f"numbers-{topic_name}", source(lines, topic_name))
    worker.wait_for(f"numbers-{topic_name}", "RUNNING", "RUNNING")
    task = f'{{connector="numbers-{topic_name}",task="0"'
    wanted = f"kafka_connect_source_task_source_record_write_total{task}}} 2.0"
    until(lambda: wanted in worker.ask("GET", "/metrics").body.decode(), "the number of records")
    told = worker.ask("GET", "/metrics").body.decode()
    assert f'kafka_connect_connector_status{{connector="numbers-{topic_name}",status="running"}} 1.0' in told
    of_task = f'{{connector="numbers-{topic_name}",status="running",task="0"}}'
    assert f"kafka_connect_connector_task_status{of_task} 1.0" in told
    assert f'kafka_connect_worker_connector_failed_task_count{{connector="numbers-{topic_name}"}} 0.0' in told
    assert f"kafka_connect_task_error_total_record_failures{task}}} 0.0" in told
    assert f"kafka_connect_connector_task_batch_size_max{task}}} 2.0" in told
    assert "kafka_connect_worker_connector_count " in told
    assert json.loads(worker.ask("GET", "/openapi.json").body)["paths"]["/connectors/{connector}/offsets"]
    worker.call("DELETE", f"/connectors/numbers-{topic_name}")


def test_what_is_in_memory_is_told_while_the_cluster_does_not_answer(
    start_broker: StartBroker, tmp_path: Path, topic_name: str
) -> None:
    """However many wait for it."""
    broker = start_broker()
    worker = Worker(tmp_path, group_properties(broker.bootstrap))
    with closing(worker):
        until(lambda: worker.leads, "leading")
        worker.create("lines", source(tmp_path / "x", topic_name))
        worker.wait_for("lines", "RUNNING", "RUNNING")
        broker.process.pause()
        try:
            asking = [
                threading.Thread(target=worker.call, args=("GET", "/connectors/lines/offsets"), daemon=True)
                for _ in range(MANY)
            ]
            for each in asking:
                each.start()
            until(
                lambda: f"_in_flight {MANY + 1}.0" in worker.ask("GET", "/metrics").body.decode(),
                "many calls",
            )
            assert worker.call("GET", "/connectors") == (200, ["lines"])
            assert worker.states("lines")[0] == "RUNNING"
            assert all(each.is_alive() for each in asking)
        finally:
            broker.process.resume()
        for each in asking:
            each.join(DEADLINE_S)
