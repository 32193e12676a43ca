"""Several registries on one topic: one leads, the others pass writes on; what was answered outlives each of them."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.clusters import create_topic
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.conftest import BROKER_OPTIONS
from tests.registry.registries import V1, RegistryProcess, code_of, record

SESSIONS = {"kafkagroup.session.timeout.ms": "2000", "kafkagroup.heartbeat.interval.ms": "200"}
SHARED = {
    "kafkastore.topic": "_schemas",
    "schema.registry.group.id": "instances",
    "kafkastore.timeout.ms": "20000",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """Sessions may be short there."""
    options = {**BROKER_OPTIONS, "group.min.session.timeout.ms": "500"}
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=options) as running:
        yield running


class Instances:
    def __init__(self, bootstrap: str, directory: Path, name: str) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.shared = {**SESSIONS, **SHARED, "kafkastore.topic": f"_{name}", "schema.registry.group.id": name}
        self.running: list[RegistryProcess] = []
        self._count = 0

    def start(self) -> RegistryProcess:
        self._count += 1
        made = RegistryProcess(self.bootstrap, self.directory, self.shared, name=f"instance-{self._count}")
        self.running = [*self.running, made]
        return made

    def leader(self) -> RegistryProcess:
        """The one that all others name."""
        found: list[RegistryProcess] = []

        def is_agreed() -> bool:
            named = {_leader_url(each) for each in self.running}
            found[:] = [each for each in self.running if named == {each.url}]
            return len(found) == 1

        wait_until(is_agreed, "one leader", timeout_s=60)
        return found[0]

    def kill(self, one: RegistryProcess) -> None:
        one.process.kill()
        self.running = [each for each in self.running if each is not one]

    def close(self) -> None:
        for one in self.running:
            one.process.resume()
            one.process.kill()


def _leader_url(one: RegistryProcess) -> str:
    lines = [line for line in one.log.splitlines() if "The leader is " in line]
    return lines[-1].split("The leader is ")[1].split()[0] if lines else ""


def asked(one: RegistryProcess, path: str, body: object) -> tuple[int, bytes]:
    """By somebody who has no patience with an instance that hangs."""
    connection = HTTPConnection("127.0.0.1", one.port, timeout=3)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": V1})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Writers:
    """Threads that register schemas as fast as they can, each with any of the instances, and remember what was answered."""

    def __init__(self, instances: Instances, count: int) -> None:
        self.answered: dict[str, int] = {}
        self.refused: list[str] = []
        self._instances = instances
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]

    def _run(self, thread: int) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            schema = record(f"W{thread}", f"f{number}")
            running = self._instances.running
            target = running[(thread + number) % len(running)]
            try:
                # Many versions in few subjects, so that late ones would meet others of their number.
                status, body = asked(
                    target, f"/subjects/s{number % 5}/versions?force=true", {"schema": schema}
                )
            except (OSError, HTTPException):
                continue
            if status == 200:
                self.answered[schema] = json.loads(body)["id"]
            else:
                self.refused.append(body.decode())

    @contextmanager
    def at_work(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in self._threads:
                thread.join(60)

    def wait_for_more(self, count: int = 100) -> None:
        wanted = len(self.answered) + count
        wait_until(lambda: len(self.answered) >= wanted, f"{count} more answers", timeout_s=60)


def check(instances: Instances, writers: Writers) -> None:
    """No id twice, nothing lost, and all say the same."""
    ids = list(writers.answered.values())
    assert len(set(ids)) == len(ids), "an id was answered for two schemas"
    marker = instances.running[0].register("marker", record("Marker", "m"))
    pages = []
    for one in instances.running:
        wait_until(
            lambda one=one: one.get(f"/schemas/ids/{marker}").status == 200, "all to be read", timeout_s=30
        )  # type: ignore[misc]
        found = versions_of(one)
        texts = {each["id"]: each["schema"] for each in found}
        assert len({each["schema"] for each in found}) == len(texts)
        missing = {
            schema: number for schema, number in writers.answered.items() if texts.get(number) != schema
        }
        assert not missing
        pages.append(found)
    assert all(page == pages[0] for page in pages)


def versions_of(one: RegistryProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while portion := one.get(f"/schemas?offset={len(found)}").json():
        found += portion
    return found


@pytest.fixture
def make(broker: PenstockBroker, tmp_path: Path) -> Iterator[Callable[[str], Instances]]:
    made: list[Instances] = []

    def start(name: str) -> Instances:
        instances = Instances(broker.bootstrap, tmp_path, name)
        made.append(instances)
        for _ in range(3):
            instances.start()
        return instances

    yield start
    for each in made:
        each.close()


def test_followers_pass_writes_on_and_read_what_they_wrote(make: Callable[[str], Instances]) -> None:
    instances = make("passing")
    leader = instances.leader()
    for number, one in enumerate(instances.running):
        schema = record("Passed", f"f{number}")
        schema_id = one.register(f"passed-{number}", schema)
        assert one.get(f"/schemas/ids/{schema_id}").json() == {"schema": schema}
        assert one.put(f"/config/passed-{number}", {"compatibility": "FULL"}).json() == {
            "compatibility": "FULL"
        }
        assert one.get(f"/config/passed-{number}").json() == {"compatibilityLevel": "FULL"}
        incompatible = one.post(f"/subjects/passed-{number}/versions", {"schema": record("Passed", "z")})
        assert code_of(incompatible) == (409, 409)
        assert one.delete(f"/subjects/passed-{number}").json() == [1]
        assert code_of(one.get(f"/subjects/passed-{number}/versions")) == (404, 40401)
    follower = next(each for each in instances.running if each is not leader)
    headers = {"Content-Type": V1, "X-Forward": "true"}
    refused = follower.ask("POST", "/subjects/x/versions", {"schema": record("X", "x")}, headers)
    assert (refused.status, refused.json()) == (500, {"error_code": 50004, "message": "Leader not known."})


def test_leaders_are_killed_while_all_write(make: Callable[[str], Instances]) -> None:
    instances = make("killed")
    instances.leader()
    writers = Writers(instances, 6)
    with writers.at_work():
        for _ in range(2):
            writers.wait_for_more()
            instances.kill(instances.leader())
            instances.start()
            writers.wait_for_more()
    check(instances, writers)


def test_a_leader_that_hung_writes_nothing_that_counts(make: Callable[[str], Instances]) -> None:
    instances = make("hung")
    writers = Writers(instances, 6)
    with writers.at_work():
        for _ in range(2):
            old = instances.leader()
            writers.wait_for_more()
            old.process.pause()
            instances.running = [each for each in instances.running if each is not old]

            instances.leader()
            writers.wait_for_more()
            old.process.resume()
            instances.running = [*instances.running, old]
            writers.wait_for_more()
    check(instances, writers)


def test_a_topic_that_is_not_compacted_is_refused(broker: PenstockBroker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "_deleted", partitions=1, replication_factor=1)
    create_topic(
        broker.bootstrap, "_many", partitions=2, replication_factor=1, config={"cleanup.policy": "compact"}
    )
    for topic, complaint in (("_deleted", "cleanup.policy=delete"), ("_many", "has 2 partitions")):
        with pytest.raises(Exception, match=complaint):
            RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": topic}, name=topic)


def test_a_broker_that_is_away_for_a_while_loses_nothing(tmp_path: Path) -> None:
    broker = PenstockBroker(tmp_path / "broker", options=BROKER_OPTIONS)
    registry = RegistryProcess(broker.bootstrap, tmp_path / "registry")
    try:
        first = registry.register("s", record("S", "a"))
        broker.kill()
        assert registry.get(f"/schemas/ids/{first}").status == 200
        wait_until(
            lambda: registry.get("/health").status == 503, "the registry to miss its broker", timeout_s=30
        )
        waiting = threading.Thread(target=lambda: registry.register("s", record("S", "a", "b?")))
        waiting.start()
        broker = PenstockBroker(tmp_path / "broker", port=broker.port, options=BROKER_OPTIONS)
        waiting.join(60)
        assert registry.get("/subjects/s/versions").json() == [1, 2]
        wait_until(
            lambda: registry.get("/health").status == 200, "the registry to find its broker", timeout_s=30
        )
        numbers = registry.get("/metrics").body.decode()
        assert "penstock_registry_subjects 1.0" in numbers
        assert "penstock_registry_leads 1.0" in numbers
    finally:
        assert registry.close() == 0
        broker.stop()


def test_a_topic_that_is_made_anew_is_read_anew(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    with PenstockBroker(tmp_path / "broker", options=BROKER_OPTIONS) as broker:
        registry = RegistryProcess(broker.bootstrap, tmp_path / "registry")
        try:
            registry.register("s", record("S", "a"))
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.delete_topics([registry.topic])[registry.topic].result(30)
            create_topic(
                broker.bootstrap, registry.topic, partitions=1, replication_factor=1,
                config={"cleanup.policy": "compact"},
            )  # fmt: skip
            wait_until(
                lambda: registry.get("/subjects").json() == [], "the new topic to be read", timeout_s=60
            )
            assert registry.register("t", record("T", "a")) == 1
        finally:
            assert registry.close() == 0


def test_instances_that_listen_everywhere_find_one_another(broker: PenstockBroker, tmp_path: Path) -> None:
    shared = {
        **SESSIONS,
        "listeners": "http://0.0.0.0:0",
        "kafkastore.topic": "_everywhere",
        "schema.registry.group.id": "everywhere",
    }
    running = [
        RegistryProcess(broker.bootstrap, tmp_path, shared, name=f"any-{number}") for number in range(2)
    ]
    try:
        assert [one.register("s", record("S", f"f{at}?")) for at, one in enumerate(running)] == [1, 2]
    finally:
        assert [one.close() for one in running] == [0, 0]
