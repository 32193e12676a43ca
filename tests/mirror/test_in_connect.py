"""The connectors on an ordinary worker of Connect: in whole batches, and one by one with a transform."""

from pathlib import Path

from penstock.testing.processes import start_process
from tests.clients.admin import create_topic
from tests.mirror.conftest import Clusters
from tests.mirror.mirrors import PENSTOCK, count, numbers, read, until, write

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def test_a_worker_copies_batches_and_transforms_records(clusters: Clusters, tmp_path: Path) -> None:
    create_topic(clusters.a, "seen", partitions=2)
    write(clusters.a, "seen", range(500), partitions=2)
    worker = {
        "bootstrap.servers": clusters.b,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "200",
        "listeners": "http://127.0.0.1:0",
    }
    connector = {
        "name": "batches",
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": clusters.a,
        "target.cluster.bootstrap.servers": clusters.b,
        "topics": "seen",
        "replication.factor": "1",
    }
    routed = connector | {
        "name": "single",
        "source.cluster.alias": "R",
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "R.seen",
        "transforms.route.replacement": "R.routed",
    }
    create_topic(clusters.b, "R.routed", partitions=2)
    command = [*PENSTOCK, "connect", "standalone", written(tmp_path / "worker.properties", worker)]
    command += [written(tmp_path / f"{one['name']}.properties", one) for one in (connector, routed)]
    for upto in (500, 700):
        running = start_process(command, name="connect", log_path=tmp_path / "connect.log")
        try:
            until(lambda upto=upto: count(clusters.b, "A.seen") >= upto, f"{upto} records in batches")
            until(lambda upto=upto: count(clusters.b, "R.routed") >= upto, f"{upto} records one by one")
        finally:
            assert running.stop(timeout_s=20) == 0
        write(clusters.a, "seen", range(upto, upto + 200), partitions=2)
    assert numbers(read(clusters.b, "A.seen")) == list(range(700))
    there = {number: records[:350] for number, records in read(clusters.a, "seen").items()}
    assert read(clusters.b, "A.seen") == there
    assert read(clusters.b, "R.routed") == there


def written(file: Path, given: dict[str, str]) -> str:
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    return str(file)
