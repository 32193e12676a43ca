"""`tests/transcripts/*.txt`: requests of Confluent's documentation as curl sends them, with the answers.

    # words for who reads it
    $ curl …             a command for the shell, on one line
    200 {"id":…}         the status and the body; … is anything

`$NAMES` are replaced in commands and answers.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.web.services import TIMEOUT_S, WebProcess, registry_service, rest_service

FOLDER = Path(__file__).parents[1] / "transcripts"
CURL = 'curl() { command curl --silent --max-time 60 --write-out "\\n%{http_code}" "$@"; }\n'


class Step(NamedTuple):
    line: int
    command: str
    status: str
    body: str


def steps_of(text: str) -> list[Step]:
    found, command, at = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("$ "):
            assert not command, f"line {at}: it has no answer"
            command, at = line.removeprefix("$ "), number
        elif line and not line.startswith("#"):
            assert command, f"line {number}: an answer to nothing"
            status, _, body = line.partition(" ")
            found.append(Step(at, command, status, body))
            command = ""
    assert not command, f"line {at}: it has no answer"
    return found


def filled(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\$([A-Z]+)", lambda found: names[found[1]], text)


def pattern(body: str) -> str:
    return ".*".join(map(re.escape, body.split("…")))


def run(name: str, names: Mapping[str, str]) -> None:
    wrong = []
    for step in steps_of((FOLDER / name).read_text()):
        ended = subprocess.run(
            ["bash", "-c", CURL + filled(step.command, names)],
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_S,
            env={"PATH": os.environ["PATH"]},
            check=False,
        )
        body, _, status = ended.stdout.rpartition("\n")
        is_right = re.fullmatch(pattern(filled(step.body, names)), body.strip(), re.DOTALL)
        if status != step.status or not is_right:
            wrong.append(f"{name}:{step.line}: {step.command}\n{status} {body}\n{ended.stderr}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    running = registry_service(tmp_path_factory.mktemp("typed-registry"), {}, broker.bootstrap)
    yield running
    assert running.close() == 0
    assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def proxy(
    broker: PenstockBroker, registry: WebProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    directory = tmp_path_factory.mktemp("typed-rest")
    running = rest_service(directory, {"schema.registry.url": registry.url}, broker.bootstrap)
    yield running
    assert running.close() == 0
    assert "Traceback" not in running.log


def test_the_registrys(registry: WebProcess) -> None:
    run("registry.txt", {"REGISTRY": registry.url})


def test_the_proxys_v2(proxy: WebProcess, make_topic: MakeTopic) -> None:
    topic = make_topic()
    run("rest-v2.txt", {"REST": proxy.url, "TOPIC": topic, "GROUP": f"{topic}-group"})


def test_the_proxys_v3(proxy: WebProcess, make_topic: MakeTopic, broker: PenstockBroker) -> None:
    topic = make_topic()
    group = f"{topic}-group"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()
    (cluster,) = proxy.ask("GET", "/v3/clusters").json()["data"]
    names = {"REST": proxy.url, "TOPIC": topic, "GROUP": group, "ID": cluster["cluster_id"]}
    run("rest-v3.txt", names)


def test_a_transcript_is_read_step_by_step() -> None:
    text = '# words\n$ curl $X/a\n200 {"a":…}\n\n$ curl b\n204\n'
    assert steps_of(text) == [Step(2, "curl $X/a", "200", '{"a":…}'), Step(5, "curl b", "204", "")]
    assert re.fullmatch(pattern('{"a":…}'), '{"a":[1]}')
    assert not re.fullmatch(pattern('{"a":…}'), '{"b":1}')
    for wrong in ("200 {}", "$ curl a\n$ curl b\n200", "$ curl a"):
        with pytest.raises(AssertionError, match="line"):
            steps_of(wrong)
