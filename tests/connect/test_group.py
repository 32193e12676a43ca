"""Workers of a group: who leads, who passes on, and that nothing is lost when the leader dies."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from penstock.connect.tasks.fencing import fence
from penstock.connect.tasks.settings import WorkerSettings
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.conftest import StartBroker
from tests.connect import counting_connectors
from tests.connect.processes import children_of, is_alive
from tests.connect.workers import ApacheWorker, Reading, Worker, closing, group_properties, until

LINES = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def test_a_follower_passes_on_and_goes_on_when_the_leader_is_killed(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    properties = group_properties(broker.bootstrap)
    first = Worker(tmp_path, properties, name="first")
    until(lambda: first.leads, "leading")
    second = Worker(tmp_path, properties, name="second")
    lines = tmp_path / "lines.txt"
    lines.write_text("one\n")
    reading = Reading(broker.bootstrap, topic_name)
    with closing(first, second, reading):
        until(lambda: "The leader is" in second.log, "a leader that the second one knows")
        assert not second.leads
        config = {"connector.class": LINES, "file": str(lines), "topic": topic_name}
        second.create("lines", config)
        second.wait_for("lines", "RUNNING", "RUNNING")
        assert reading.wait(1) == ["one"]
        told = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 4}}]}
        until(lambda: second.call("GET", "/connectors/lines/offsets")[1] == told, "the offset")
        status, found = second.call("POST", "/connectors", {"name": "lines", "config": config})
        assert (status, found["message"]) == (409, "Connector lines already exists")
        first.process.kill()
        here = f"127.0.0.1:{second.port}"
        until(lambda: _worker_of(second, "lines") == here, "its going on at the second one")
        second.wait_for("lines", "RUNNING", "RUNNING")
        with lines.open("a") as file:
            file.write("two\n")
        assert reading.wait(2) == ["one", "two"]
        third = Worker(tmp_path, properties, name="third")
        with closing(third):
            assert third.call("GET", "/connectors")[1] == ["lines"]
            assert third.call("DELETE", "/connectors/lines") == (204, None)
            until(lambda: third.call("GET", "/connectors")[1] == [])
            assert second.close() == 0
            until(lambda: third.leads, "the third one's leading")


def _worker_of(worker: Worker, name: str, task: int | None = None) -> str:
    status = worker.call("GET", f"/connectors/{name}/status")[1]
    found: str = (status["connector"] if task is None else status["tasks"][task])["worker_id"]
    return found


def test_a_worker_that_was_replaced_writes_nothing(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    """It is stopped for longer than its session, and goes on: its writes are fenced."""
    properties = group_properties(broker.bootstrap)
    first = Worker(tmp_path, properties, name="first")
    until(lambda: first.leads, "leading")
    second = Worker(tmp_path, properties, name="second")
    with closing(first, second):
        first.process.pause()
        try:
            until(lambda: second.leads, "the second one's leading")
        finally:
            first.process.resume()
        config = {"connector.class": LINES, "topic": topic_name, "file": str(tmp_path / "x")}
        status, _ = first.call("POST", "/connectors", {"name": "late", "config": config})
        assert status == 201, "passed on, or refused once and then passed on"
        until(lambda: not first.leads, "the first one's end of leading")
        until(lambda: second.call("GET", "/connectors")[1] == ["late"])
        assert "Traceback" not in first.log + second.log


def test_a_worker_that_was_replaced_says_nothing_of_its_tasks(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    """It ends them when it goes on, and by then another one has begun them."""
    properties = group_properties(broker.bootstrap)
    first = Worker(tmp_path, properties, name="first")
    until(lambda: first.leads, "leading")
    second = Worker(tmp_path, properties, name="second")
    with closing(first, second):
        (tmp_path / "lines").write_text("")
        first.create(
            "lines", {"connector.class": LINES, "topic": topic_name, "file": str(tmp_path / "lines")}
        )
        first.wait_for("lines", "RUNNING", "RUNNING")
        tasks = children_of(first.process.pid)
        first.process.pause()
        try:
            here = f"127.0.0.1:{second.port}"
            until(lambda: _worker_of(second, "lines", 0) == here, "its task at the second one")
        finally:
            first.process.resume()
        until(lambda: not any(map(is_alive, tasks)), "the end of the tasks of the first one")
        assert first.close() == 0  # what it had to say has been written
        assert second.states("lines") == ("RUNNING", ["RUNNING"])
        told = Reading(broker.bootstrap, properties["status.storage.topic"])
        with closing(told):
            until(lambda: any(here in value and '"RUNNING"' in value for value in told.look()))
            last = max(number for number, value in enumerate(told.look()) if here in value)
            assert not [value for value in told.values[last:] if "UNASSIGNED" in value]


def test_a_task_that_somebody_else_has_fenced_is_started_again_by_the_leader(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    """Whoever it was leads no more: the task would be missing for ever."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copy(counting_connectors.__file__, plugins)
    properties = group_properties(broker.bootstrap) | {
        "exactly.once.source.support": "enabled", "plugin.path": str(plugins),
    }  # fmt: skip
    worker = Worker(tmp_path, properties)
    reading = Reading(broker.bootstrap, topic_name)
    with closing(worker, reading):
        config = {"connector.class": "CountingSource", "tasks.max": "2", "topic": topic_name, "count": "1000000",
                  "batch": "1"}  # fmt: skip
        worker.create("counting", config)
        reading.wait(1)
        fence(WorkerSettings.of(properties), "counting", config, [0])
        fenced = len(reading.look())
        until(lambda: any(value.startswith("1:") for value in reading.look()[fenced:]), "the other task")
        seen = len(reading.look())
        until(lambda: sum(value.startswith("0:") for value in reading.look()[seen:]) > 100, "its going on")
        assert max(Counter(reading.values).values()) == 1


def test_apaches_worker_goes_on_with_our_topics_and_we_with_apaches(
    start_broker: StartBroker, tmp_path: Path, topic_name: str
) -> None:
    broker = start_broker()
    properties = group_properties(broker.bootstrap) | {"exactly.once.source.support": "enabled"}
    lines, out = tmp_path / "lines.txt", tmp_path / "out.txt"
    lines.write_text("ours\n")
    reading = Reading(broker.bootstrap, topic_name)
    with closing(reading):
        ours = Worker(tmp_path, properties)
        with closing(ours):
            ours.create(
                "lines", {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic_name}
            )
            ours.create("still", {"connector.class": "FileStreamSink", "topics": topic_name, "file": str(out)},
                        initial_state="STOPPED")  # fmt: skip
            assert reading.wait(1) == ["ours"]
            ours.wait_for("lines", "RUNNING", "RUNNING")
        apache = ApacheWorker(tmp_path, properties, free_port())
        with closing(apache):
            assert sorted(apache.call("GET", "/connectors")[1]) == ["lines", "still"]
            apache.wait_for("lines", "RUNNING", "RUNNING")
            apache.wait_for("still", "STOPPED")
            with lines.open("a") as file:
                file.write("apaches\n")
            assert reading.wait(2) == ["ours", "apaches"], "the offset counts for both"
            apache.create(
                "more", {"connector.class": "FileStreamSink", "topics": topic_name, "file": str(out)}
            )
            until(lambda: out.exists() and out.read_text() == "ours\napaches\n", "the lines of the sink")
            apache.call("PUT", "/connectors/more/stop")
            apache.wait_for("more", "STOPPED")
            told = apache.call("GET", "/connectors/lines/offsets")[1]
        again = Worker(tmp_path, properties, name="again")
        with closing(again):
            assert again.call("GET", "/connectors")[1] == ["lines", "more", "still"]
            again.wait_for("lines", "RUNNING", "RUNNING")
            again.wait_for("more", "STOPPED")
            assert again.call("GET", "/connectors/lines/offsets")[1] == told
            with lines.open("a") as file:
                file.write("ours again\n")
            assert reading.wait(3) == ["ours", "apaches", "ours again"]
            again.call("PUT", "/connectors/more/resume")
            until(lambda: out.read_text() == "ours\napaches\nours again\n", "the sink's going on")
