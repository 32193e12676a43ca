"""What a killed broker may find in its directory: torn ends, lost or broken files. All whole batches are served."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.conftest import BROKER_OPTIONS, StartBroker
from tests.crash.plain_client import create_topic, read_all
from tests.hostile.raw_client import RawClient

VALUES = [b"value %06d " % number + b"." * 10_000 for number in range(400)]
RECORDS_PER_BATCH = 10
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def killed_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker left behind that had 400 records in four segments, and was not told that it would end."""
    directory = tmp_path_factory.mktemp("killed")
    broker = PenstockBroker(directory, options=BROKER_OPTIONS)
    config = {"segment.bytes": str(MIB), "index.interval.bytes": "4096"}
    create_topic(broker.bootstrap, "torn", config=config)
    with RawClient(broker.port) as client:
        for at in range(0, len(VALUES), RECORDS_PER_BATCH):
            values = VALUES[at : at + RECORDS_PER_BATCH]
            batch = build_batch([(None, value, (), 1_700_000_000_000) for value in values])
            assert send(client, batch) == at
    broker.kill()
    return directory


@pytest.fixture
def killed(killed_directory: Path, tmp_path: Path) -> Path:
    """The data directory of the broker that this test will start."""
    shutil.copytree(killed_directory / "data", tmp_path / "broker" / "data")
    return tmp_path / "broker" / "data"


def send(client: RawClient, batch: bytes | bytearray) -> int:
    """One batch to `torn`, and the offset it got."""
    data = TopicProduceData(name="torn", partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 12)
    (answered,) = response.responses[0].partition_responses
    assert answered.error_code == 0, answered
    offset = answered.base_offset
    assert isinstance(offset, int)
    return offset


def active_log(data_dir: Path) -> Path:
    return max((data_dir / "torn-0").glob("*.log"))


def assert_served_and_goes_on(broker: PenstockBroker, values: list[bytes]) -> None:
    with RawClient(broker.port) as client:
        assert send(client, build_batch([(None, b"next", (), 1_700_000_000_000)])) == len(values)
    assert read_all(broker.bootstrap, "torn") == [*values, b"next"]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def next_batch(path: Path) -> bytes:
    """A batch that would fit at the end of the log but for its CRC."""
    offset = 0
    data = path.read_bytes()
    position = 0
    while position < len(data):
        header = read_header(data, position)
        offset, position = header.last_offset + 1, position + header.size_bytes
    batch = build_batch([(None, b"never acknowledged", (), 1_700_000_000_000)], base_offset=offset)
    batch[-3] ^= 1
    return bytes(batch)


TAILS: dict[str, Callable[[Path], bytes]] = {
    "one byte": lambda path: b"\x00",
    "zeros": lambda path: bytes(5000),
    "ones": lambda path: b"\xff" * 5000,
    "noise": lambda path: os.urandom(5000),
    "half a batch": lambda path: next_batch(path)[:-10],
    "a batch with a wrong CRC": next_batch,
    "the first batch again": lambda path: path.read_bytes()[: read_header(path.read_bytes()).size_bytes],
}


@pytest.mark.parametrize("tail", list(TAILS))
def test_garbage_behind_the_last_batch_is_cut(start_broker: StartBroker, killed: Path, tail: str) -> None:
    log = active_log(killed)
    append(log, TAILS[tail](log))
    broker = start_broker()
    assert_served_and_goes_on(broker, VALUES)
    lines = [line for line in broker.log_path.read_text().splitlines() if "torn-0" in line and "cut" in line]
    assert len(lines) == 1


@pytest.mark.parametrize("bytes_lost", [1, 60, 50_000, 99_000])
def test_a_torn_last_batch_is_cut_and_the_rest_is_served(
    start_broker: StartBroker, killed: Path, bytes_lost: int
) -> None:
    log = active_log(killed)
    os.truncate(log, log.stat().st_size - bytes_lost)
    assert_served_and_goes_on(start_broker(), VALUES[:-RECORDS_PER_BATCH])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),  # type: ignore[dict-item]
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "an odd size": lambda path: append(path, b"x"),
    "noise": lambda path: path.write_bytes(os.urandom(max(path.stat().st_size, 24))),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
def test_everything_beside_the_records_can_be_lost(
    start_broker: StartBroker, killed: Path, damage: str, clean: bool
) -> None:
    """Indexes, snapshots, checkpoints: all of them at once."""
    if clean:
        start_broker().stop()
    beside = [path for path in (killed / "torn-0").iterdir() if path.suffix not in (".log", ".metadata")]
    beside += list(killed.glob("*checkpoint*"))
    assert len(beside) > 4
    if clean and damage == "noise":
        # After a clean stop an index of a right size is believed as it is, in Kafka too.
        beside = [path for path in beside if path.suffix not in (".index", ".timeindex")]
    for path in beside:
        DAMAGES[damage](path)
    assert_served_and_goes_on(start_broker(), VALUES)


def test_a_segment_damaged_in_its_middle_ends_the_log_there(start_broker: StartBroker, killed: Path) -> None:
    """Kafka does the same: what follows the damage cannot be trusted. But the broker starts and says so."""
    second = sorted((killed / "torn-0").glob("*.log"))[1]
    content = bytearray(second.read_bytes())
    content[len(content) // 2] ^= 0xFF
    second.write_bytes(content)
    broker = start_broker()
    found = read_all(broker.bootstrap, "torn")
    assert 100 < len(found) < 200
    assert "torn-0" in broker.process.log_text()
    assert_served_and_goes_on(broker, VALUES[: len(found)])


def test_strangers_in_the_data_directory_are_left_alone(start_broker: StartBroker, killed: Path) -> None:
    (killed / "lost+found").mkdir()
    (killed / "my-backup").mkdir()
    strangers = [killed / "notes.txt", killed / "my-backup" / "file", killed / "torn-0" / "notes.txt"]
    for path in strangers:
        path.write_text("do not delete")
    assert_served_and_goes_on(start_broker(), VALUES)
    assert [path.read_text() for path in strangers] == ["do not delete"] * 3


def test_a_retry_from_before_the_crash_is_still_known(start_broker: StartBroker, killed: Path) -> None:
    """The producer state is rebuilt from the log, also when its snapshots are lost."""
    batches = [
        build_batch(
            [(None, b"once", (), 1_700_000_000_000)], producer_id=7, producer_epoch=0, base_sequence=number
        )
        for number in range(6)
    ]
    broker = start_broker()
    with RawClient(broker.port) as client:
        offsets = [send(client, batch) for batch in batches[:5]]
    broker.kill()
    for snapshot in (killed / "torn-0").glob("*.snapshot"):
        snapshot.unlink()
    with RawClient(start_broker(port=broker.port).port) as client:
        assert [send(client, batch) for batch in batches] == [*offsets, offsets[-1] + 1]
