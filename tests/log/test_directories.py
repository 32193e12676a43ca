"""Several log directories in a real broker: full, lost, unusable at the start, and replicas moved between them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.cli.conftest import run_command
from tests.crash.plain_client import create_topic, produce, read_all, wait_until
from tests.hostile.raw_client import RawClient
from tests.log.brokers import (
    DirectoriesBroker,
    fetch_error,
    homes,
    list_offset,
    log_dirs,
    metadata_of,
    send,
)

FULL_BYTES = 1 << 20
OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with hardly any room."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={FULL_BYTES}", "tmpfs", str(path)], check=True, timeout=10
    )
    yield path / "logs"
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=10)


def partition_in(client: RawClient, topic: str, path: Path) -> int:
    return next(index for index, home in homes(client, topic).items() if home == str(path))


def test_a_full_disk_takes_only_its_directory_offline_and_loses_nothing(
    tmp_path: Path, small_disk: Path
) -> None:
    large = tmp_path / "large"
    broker = DirectoriesBroker(tmp_path, [large, small_disk])
    with broker.process, RawClient(broker.port) as client:
        create_topic(broker.bootstrap, "orders", partitions=4)
        lost, kept = partition_in(client, "orders", small_disk), partition_in(client, "orders", large)
        stored = 0
        while (code := send(client, "orders", lost, bytes(50_000))) == 0:
            stored += 1
        assert code == OFFLINE
        assert 5 < stored < 30
        assert send(client, "orders", lost) == OFFLINE
        assert fetch_error(client, "orders", lost) == OFFLINE
        assert list_offset(client, "orders", lost)[0] == OFFLINE
        assert send(client, "orders", kept) == 0
        assert fetch_error(client, "orders", kept) == 0
        described = metadata_of(client, "orders")
        assert [described[lost].error_code, described[lost].leader_id] == [ErrorCode.LEADER_NOT_AVAILABLE, -1]
        assert list(described[lost].offline_replicas) == list(described[lost].replica_nodes)
        assert [described[kept].error_code, list(described[kept].offline_replicas)] == [0, []]
        found = log_dirs(client)
        assert found[str(small_disk)].error_code == OFFLINE
        assert (found[str(large)].error_code, list(found[str(small_disk)].topics)) == (0, [])
        create_topic(broker.bootstrap, "others", partitions=3)
        assert set(homes(client, "others").values()) == {str(large)}
    text = broker.process.log_text()
    assert text.count(f"the log directory {small_disk} has failed") == 1
    assert "Traceback" not in text
    # With room again, the next start serves what was stored before the disk was full, and nothing torn.
    subprocess.run(
        ["mount", "-o", f"remount,size={4 * FULL_BYTES}", str(small_disk.parent)], check=True, timeout=10
    )
    again = DirectoriesBroker(tmp_path, [large, small_disk])
    with again.process:
        assert read_all(again.bootstrap, "orders", partition=lost) == [bytes(50_000)] * stored
        produce(again.bootstrap, "orders", [b"next"], partition=lost)


def test_a_directory_that_cannot_be_used_at_the_start_leaves_the_others(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    broker = DirectoriesBroker(tmp_path, directories)
    with broker.process, RawClient(broker.port) as client:
        create_topic(broker.bootstrap, "orders", partitions=2)
        lost, kept = (partition_in(client, "orders", path) for path in reversed(directories))
        assert send(client, "orders", kept) == send(client, "orders", lost) == 0
    shutil.move(tmp_path / "b", tmp_path / "away")
    (tmp_path / "b").write_text("no directory")
    again = DirectoriesBroker(tmp_path, directories)
    with again.process, RawClient(again.port) as client:
        assert send(client, "orders", lost) == OFFLINE
        assert metadata_of(client, "orders")[lost].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert send(client, "orders", kept) == 0
        assert log_dirs(client)[str(tmp_path / "b")].error_code == OFFLINE
        shown = run_command("penstock", "status", "-b", again.bootstrap)
        assert shown.code == 1
        assert f"a log directory of broker 1 has failed: {tmp_path / 'b'}: " in shown.out
        assert "below min ISR partitions: 0" in shown.out
    (tmp_path / "b").unlink()
    shutil.move(tmp_path / "away", tmp_path / "b")
    whole = DirectoriesBroker(tmp_path, directories)
    with whole.process:
        assert len(read_all(whole.bootstrap, "orders", partition=lost)) == 1
        assert len(read_all(whole.bootstrap, "orders", partition=kept)) == 2


def test_without_the_directory_of_the_metadata_the_start_says_which_it_is(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    DirectoriesBroker(tmp_path, directories).process.stop()
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").write_text("no directory")
    broker = DirectoriesBroker(tmp_path, directories, wait_until_ready=False)
    assert broker.process.wait(timeout_s=10) == 1
    assert f"it must be in {tmp_path / 'a'}" in broker.process.log_text()


def test_when_the_last_directory_fails_the_broker_ends_with_one_line(
    tmp_path: Path, small_disk: Path
) -> None:
    broker = DirectoriesBroker(tmp_path, [small_disk])
    with broker.process, RawClient(broker.port) as client:
        create_topic(broker.bootstrap, "orders")
        while (code := send(client, "orders", 0, bytes(50_000))) == 0:
            pass
        assert code == OFFLINE
        assert broker.process.wait(timeout_s=15) == 1
    text = broker.process.log_text()
    assert text.count("the broker stops: every log directory has failed") == 1
    assert "Traceback" not in text


def alter(client: RawClient, topic: str, index: int, path: str) -> int:
    moved = AlterReplicaLogDirTopic(name=topic, partitions=[index])
    response = client.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[moved])]), 2)
    return int(response.results[0].partitions[0].error_code)


def test_a_replica_moves_to_another_directory_while_clients_use_it(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    broker = DirectoriesBroker(tmp_path, directories, options={"log.segment.delete.delay.ms": "0"})
    with broker.process, RawClient(broker.port) as client:
        create_topic(broker.bootstrap, "orders", config={"segment.bytes": "1048576"})
        values = [b"%06d" % number + bytes(2000) for number in range(1500)]
        produce(broker.bootstrap, "orders", values)
        source = Path(homes(client, "orders")[0])
        (target,) = set(directories) - {source}
        assert alter(client, "orders", 0, str(target)) == 0
        sent = 0
        while homes(client, "orders")[0] != str(target):
            assert send(client, "orders", 0, b"during") == 0
            sent += 1
        assert send(client, "orders", 0, b"after") == 0
        assert read_all(broker.bootstrap, "orders") == [*values, *[b"during"] * sent, b"after"]
        wait_until(lambda: not list(source.glob("orders*")), what="the removal of the original")
        assert [path.name for path in target.glob("orders*")] == ["orders-0"]
        assert alter(client, "orders", 0, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert alter(client, "nobody", 0, str(target)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert alter(client, "x" * 240, 0, str(target)) == ErrorCode.INVALID_TOPIC_EXCEPTION
    again = DirectoriesBroker(tmp_path, directories)
    with again.process:
        assert len(read_all(again.bootstrap, "orders")) == len(values) + sent + 1
    assert "Traceback" not in again.process.log_text()
