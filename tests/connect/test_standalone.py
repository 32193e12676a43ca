"""A standalone worker: connectors from files, offsets in a file, tasks in its own process."""

import json
from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.workers import STRINGS, Reading, Worker, closing, until, write_properties


def properties(broker: PenstockBroker, tmp_path: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "200",
        "errors.restart.delay.initial.ms": "200",
        "config.providers": "file,env",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.env.class": "EnvVarConfigProvider",
        "plugin.path": str(tmp_path / "plugins"),
    }


def test_lines_go_from_a_file_to_a_topic_to_a_file(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    lines, out = tmp_path / "lines.txt", tmp_path / "out.txt"
    lines.write_text("one\ntwo\n")
    source = write_properties(
        tmp_path / "source.properties",
        {"name": "in", "connector.class": "FileStreamSource", "file": str(lines), "topic": topic_name},
    )
    sink = tmp_path / "sink.json"
    sink.write_text(
        json.dumps(
            {
                "name": "out",
                "config": {"connector.class": "FileStreamSink", "topics": topic_name, "file": str(out)},
            }
        )
    )
    (tmp_path / "plugins").mkdir()
    worker = Worker(tmp_path, properties(broker, tmp_path), str(source), str(sink), kind="standalone")
    with closing(worker):
        until(lambda: out.exists() and out.read_text() == "one\ntwo\n", "the lines")
        assert worker.call("GET", "/connectors")[1] == ["in", "out"]
        until(lambda: worker.call("GET", "/connectors/in/offsets")[1]["offsets"], "the offset")
    with lines.open("a") as file:
        file.write("three\n")
    worker = Worker(
        tmp_path, properties(broker, tmp_path), str(source), str(sink), kind="standalone", name="again"
    )
    with closing(worker):
        until(lambda: out.read_text() == "one\ntwo\nthree\n", "only what is new")
        assert worker.call("PUT", "/connectors/in/stop")[0] == 204
        worker.wait_for("in", "STOPPED")
        assert worker.call("DELETE", "/connectors/in/offsets")[0] == 200
        assert worker.call("GET", "/connectors/in/offsets")[1] == {"offsets": []}


PLUGIN = '''
import time
from penstock.connect import ConnectError, Setting, Settings, Kind, SourceConnector, SourceRecord, SourceTask


class SecretTask(SourceTask):
    def poll(self):
        self.context.wait(0.05)
        return [SourceRecord(None, None, self.given["topic"], self.given["password"])]


class SecretSource(SourceConnector):
    """Fails until a file is there; hangs where it is told to."""

    task_class = SecretTask
    settings = Settings(Setting("password", Kind.PASSWORD, "A secret."), Setting("topic", Kind.STRING, "Where to."))

    def start(self):
        if self.given.get("hangs"):
            time.sleep(600)
        if self.given.get("needs"):
            import os
            if not os.path.exists(self.given["needs"]):
                raise ConnectError(f"what it needs is not there, and {self.given['password']} was in vain")
'''


def test_secrets_plugins_failing_and_hanging_connectors(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "secret_plugin.py").write_text(PLUGIN)
    (plugins / "broken_plugin.py").write_text("import nothing_of_this_name\n")
    secrets = write_properties(tmp_path / "secrets", {"password": "s3cret-word"})
    reading = Reading(broker.bootstrap, topic_name)
    worker = Worker(tmp_path, properties(broker, tmp_path), kind="standalone")
    with closing(worker, reading):
        assert "secret_plugin.SecretSource" in [
            one["class"] for one in worker.call("GET", "/connector-plugins")[1]
        ]
        config = {
            "connector.class": "SecretSource",
            "topic": topic_name,
            "password": f"${{file:{secrets}:password}}",
        }
        made = worker.create("secret", config)
        assert made["config"]["password"] == config["password"]
        assert reading.wait(1)[0] == "s3cret-word"
        for path in ("", "/config", "/tasks", "/status"):
            assert b"s3cret" not in worker.ask("GET", f"/connectors/secret{path}").body
        checked = worker.call(
            "PUT", "/connector-plugins/SecretSource/config/validate", {**config, "name": "x"}
        )[1]
        assert "s3cret" not in json.dumps(checked)
        plain = worker.call(
            "PUT", "/connector-plugins/SecretSource/config/validate", {**config, "password": "s3cret"}
        )[1]
        assert "[hidden]" in json.dumps(plain)
        assert "s3cret" not in json.dumps(plain)

        worker.create("hangs", {**config, "hangs": "yes"})
        needed = tmp_path / "needed"
        worker.create("fails", {**config, "needs": str(needed)})
        until(lambda: worker.states("fails")[0] == "FAILED", "its failure")
        assert (
            "what it needs is not there"
            in worker.call("GET", "/connectors/fails/status")[1]["connector"]["trace"]
        )
        assert b"and [hidden] was in vain" in worker.ask("GET", "/connectors/fails/status").body
        assert "s3cret" not in worker.log
        needed.write_text("")
        worker.wait_for("fails", "RUNNING", "RUNNING")
        assert worker.call("DELETE", "/connectors/hangs") == (204, None), "one that hangs can be deleted"
        worker.create("hangs", config)
        worker.wait_for("hangs", "RUNNING", "RUNNING")
        for name in ("secret", "fails", "hangs"):
            worker.call("DELETE", f"/connectors/{name}")
        until(lambda: worker.call("GET", "/connectors")[1] == [])


def test_what_is_excluded_cannot_be_used(broker: PenstockBroker, tmp_path: Path, topic_name: str) -> None:
    """Such as what runs any code, and what reads any file."""
    (tmp_path / "plugins").mkdir()
    given = properties(broker, tmp_path) | {"penstock.connect.plugins.excluded": "python,FileStreamSource"}
    worker = Worker(tmp_path, given, kind="standalone")
    with closing(worker):
        code = tmp_path / "code.py"
        code.write_text(f"open({str(tmp_path / 'has-run')!r}, 'w')\ndef change(record): return record\n")
        config = {"connector.class": "FileStreamSink", "topics": topic_name, "file": str(tmp_path / "out"),
                  "transforms": "mine", "transforms.mine.type": "python", "transforms.mine.class": f"{code}:change"}  # fmt: skip
        status, told = worker.call("POST", "/connectors", {"name": "code", "config": config})
        assert (status, "Class python could not be found." in told["message"]) == (400, True)
        assert not (tmp_path / "has-run").exists()
        config = {"connector.class": "FileStreamSource", "topic": topic_name, "file": "/etc/passwd"}
        assert worker.call("POST", "/connectors", {"name": "file", "config": config})[0] == 400
        assert "python" not in worker.ask("GET", "/connector-plugins?connectorsOnly=false").body.decode()


def test_a_worker_whose_connector_cannot_be_used_does_not_start(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    import subprocess
    import sys

    (tmp_path / "plugins").mkdir()
    file = write_properties(tmp_path / "worker.properties", properties(broker, tmp_path))
    bad = write_properties(
        tmp_path / "bad.properties", {"name": "bad", "connector.class": "FileStreamSource"}
    )
    command = [sys.executable, "-m", "penstock", "connect", "standalone", str(file), str(bad)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert 'Missing required configuration "topic"' in done.stderr
    excluding = [*command[:-1], "--set", "penstock.connect.plugins.excluded=FileSteamSource"]
    done = subprocess.run(excluding, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "penstock.connect.plugins.excluded: there is no plugin FileSteamSource" in done.stderr
    assert "Traceback" not in done.stderr
