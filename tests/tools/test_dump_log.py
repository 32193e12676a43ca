"""Apache Kafka's kafka-dump-log reads our files and has nothing to complain about, after a clean stop and after kill -9."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from simulation.apache.resident_tools import resident_tool
from tests.clients.admin import CODEC_NAMES, create_topic
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Record, produce, read
from tests.conftest import StartBroker
from tests.tools.conftest import TOOLS

RECORDS_PER_CODEC = 800
BASE_MS = 1_700_000_000_000
# What the tool prints, exit code 0 all the same, when files do not fit together or a batch is damaged.
COMPLAINTS = re.compile(
    r"isvalid: false|Mismatches in|Non-consecutive|Non-increasing|not found in log|Could not|Found timestamp|"
    r"Found \d+ invalid bytes|exception|failed sanity|out of order",
    re.IGNORECASE,
)
# Apache Kafka's own files get this one too: the tool expects every segment to begin with offset 0.
FIRST_RECORD_OF_A_LATER_SEGMENT = re.compile(
    r"Non-consecutive offsets in \S+/0*(\d+)\.log\n  -1 is followed by \1\n"
)


def dump(*options: str, files: Iterable[Path]) -> str:
    paths = ",".join(str(path) for path in sorted(files))
    assert paths
    done = resident_tool(f"{TOOLS}.DumpLogSegments", *options, "--files", paths, timeout_s=60.0)
    assert not COMPLAINTS.search(done.stdout), done.stdout[-3000:]
    assert FIRST_RECORD_OF_A_LATER_SEGMENT.sub("", done.stderr) == ""
    return done.stdout


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_dump_log_finds_every_record_and_no_fault(
    start_broker: StartBroker, topic_name: str, ending: str
) -> None:
    broker = start_broker(options={"offsets.topic.num.partitions": "1"})
    # An index entry for almost every batch, and more than one segment.
    create_topic(
        broker.bootstrap, topic_name, configs={"segment.bytes": "1048576", "index.interval.bytes": "512"}
    )
    driver = ConfluentDriver()
    for codec in CODEC_NAMES:
        # Text that does not compress much, so that all codecs fill segments.
        records = [
            Record(b"%d-" % number + b"%x" % (pow(3, 9000 + number, 1 << 2400)), b"key", (("h", b"1"),), BASE_MS + number)
            for number in range(RECORDS_PER_CODEC)
        ]  # fmt: skip
        produce(driver, broker.bootstrap, topic_name, records, codec=codec, idempotent=True)
    count = RECORDS_PER_CODEC * len(CODEC_NAMES)
    consumer = driver.consumer(broker.bootstrap, group="readers", topics=[topic_name])
    read(consumer, count)
    consumer.commit()
    consumer.close()
    if ending == "kill":
        broker.kill()
        broker = start_broker(options={"offsets.topic.num.partitions": "1"})
        produce(driver, broker.bootstrap, topic_name, [Record(b"afterwards")], idempotent=True)
        count += 1
    assert broker.stop() == 0

    partition = broker.data_dir / f"{topic_name}-0"
    logs = list(partition.glob("*.log"))
    assert len(logs) >= 2
    said = dump("--deep-iteration", "--print-data-log", files=logs)
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", said, re.MULTILINE)] == list(
        range(count)
    )
    assert set(re.findall(r"compresscodec: (\w+)", said)) == set(CODEC_NAMES)
    sizes = {path.name: path.stat().st_size for path in logs}
    for section in said.split("Dumping ")[1:]:
        position, size = re.findall(r"position: (\d+) .* size: (\d+) ", section)[-1]
        assert sizes[Path(section.split()[0]).name] == int(position) + int(size)

    indexes = [*partition.glob("*.index"), *partition.glob("*.timeindex")]
    assert len(indexes) == 2 * len(logs)
    checked = dump("--index-sanity-check", files=indexes)
    # A segment of a single batch has no entry in its offset index.
    assert sorted(
        re.findall(r"^(\S+) passed sanity check\.$|^(\S+) is empty\.$", checked, re.MULTILINE)
    ) == sorted(("", str(path)) if path.stat().st_size == 0 else (str(path), "") for path in indexes)
    dump("--verify-index-only", files=indexes)
    listed = dump(files=indexes)
    entries = re.findall(r"^(?:offset|timestamp): ", listed, re.MULTILINE)
    assert len(entries) > 50

    snapshots = list(partition.glob("*.snapshot"))
    assert f"{count:020d}.snapshot" in {path.name for path in snapshots}
    newest = dump(files=[partition / f"{count:020d}.snapshot"])
    assert len(re.findall(r"^producerId: ", newest, re.MULTILINE)) == len(CODEC_NAMES) + (ending == "kill")

    offsets = dump("--offsets-decoder", files=(broker.data_dir / "__consumer_offsets-0").glob("*.log"))
    committed = (
        rf'key: {{"type":"1","data":{{"group":"readers","topic":"{topic_name}","partition":0}}}} '
        rf'payload: {{"version":"\d","data":{{"offset":{RECORDS_PER_CODEC * len(CODEC_NAMES)},'
    )
    assert re.search(committed, offsets)
    assert '"protocolType":"consumer"' in offsets
