import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.broker.adoption.adopt import adopt_logs
from penstock.broker.adoption.kraft_metadata import KraftMetadata
from penstock.broker.adoption.taken_producer_ids import MARGIN
from penstock.config.loading import load
from penstock.config.topic_options import KEEP_ALL
from penstock.metadata.image import ClusterImage
from penstock.metadata.load import load_image, prepare_tree
from penstock.metadata.znodes import PRODUCER_ID_BLOCK, decode_producer_id_block
from penstock.model.ids import id_text
from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.meta_properties import LogDirectoryError
from penstock.storage.options import LogOptions
from penstock.stores.embedded import open_store

TOPIC_ID = bytes(range(16))


def make_log(
    data: Path,
    name: str,
    *,
    topic_id: bytes | None = TOPIC_ID,
    producer_id: int = -1,
    values: Sequence[bytes] = (b"v",),
) -> None:
    directory = data / name
    log = Log.open(
        OsDisk(), str(directory), LogOptions(), SystemClock(), clean=True, recovery_point=0, start_offset=0
    )
    batch = memoryview(
        build_batch(
            [(b"k", value, [], 1) for value in values],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
    )
    log.append(batch, read_header(batch), 4)
    flush = log.prepare_close()
    if flush is not None:
        flush.run()
    log.close()
    if topic_id is not None:
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_text(topic_id)}")


def adopt(data: Path, *, again: bool = False) -> tuple[ClusterImage, int | None]:
    """The image after an adoption as it is read back from the tree, and the last producer id that counts as taken."""

    async def run() -> tuple[ClusterImage, int | None]:
        tree = open_store(str(data))
        directory = LogDirectory(OsDisk(), str(data), SystemClock())
        try:
            await prepare_tree(tree, new_cluster_id=id_text(TOPIC_ID))
            config, _ = load({}, {})
            for _ in range(2 if again else 1):
                await adopt_logs(tree, await load_image(tree), OsDisk(), [directory], config)
            block = decode_producer_id_block((await tree.get(PRODUCER_ID_BLOCK)).data)
            return await load_image(tree), None if block is None else block.last_id
        finally:
            directory.release()
            await tree.close()

    return asyncio.run(run())


def test_logs_become_topics_with_their_ids(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-0")
    make_log(tmp_path, "orders-2")
    image, _ = adopt(tmp_path)
    topic = image.topics["orders"]
    assert (topic.topic_id, len(topic.partitions)) == (TOPIC_ID, 3)
    assert [partition.replicas for partition in topic.partitions] == [(1,)] * 3


def test_a_log_that_was_written_in_an_epoch_goes_on_in_the_next(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-1")
    image, _ = adopt(tmp_path)
    assert [partition.leader_epoch for partition in image.topics["orders"].partitions] == [0, 5]


def test_logs_without_an_id_get_one(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-0", topic_id=None)
    image, _ = adopt(tmp_path)
    assert image.topics["orders"].topic_id not in (bytes(16), TOPIC_ID)


def test_logs_of_different_topics_are_refused(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-0")
    make_log(tmp_path, "orders-1", topic_id=bytes(15) + b"\1")
    with pytest.raises(LogDirectoryError, match="the logs of topic orders carry different topic ids"):
        adopt(tmp_path)


def test_messages_of_an_older_format_are_refused_and_not_taken_for_damage(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-0")
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    data = log.read_bytes()
    log.write_bytes(data[:16] + b"\1" + data[17:])
    with pytest.raises(LogDirectoryError, match="holds messages of format 1, which is not read"):
        adopt(tmp_path)
    assert log.stat().st_size == len(data)


def test_producer_ids_of_the_logs_are_not_handed_out_again(tmp_path: Path) -> None:
    make_log(tmp_path, "orders-0", producer_id=77_000)
    _, last_taken = adopt(tmp_path)
    assert last_taken == 77_000 + MARGIN - 1


def test_offsets_and_transactions_stay_compacted(tmp_path: Path) -> None:
    make_log(tmp_path, "__consumer_offsets-0")
    image, _ = adopt(tmp_path)
    assert image.topic_overrides("__consumer_offsets") == {"cleanup.policy": "compact"}


def test_the_quorums_own_log_is_no_topic(tmp_path: Path) -> None:
    make_log(tmp_path, "__cluster_metadata-0")
    image, _ = adopt(tmp_path)
    assert not image.topics


def test_what_was_looked_through_once_is_not_looked_through_again(tmp_path: Path) -> None:
    adopt(tmp_path)
    make_log(tmp_path, "orders-0")
    image, _ = adopt(tmp_path, again=True)
    assert not image.topics


def kraft_record(kind: int, fields: bytes) -> bytes:
    return bytes((1, kind, 0)) + fields + b"\0"


def compact(text: str) -> bytes:
    return bytes((len(text) + 1,)) + text.encode()


def test_kraft_metadata_keeps_the_last_config_of_a_topic_that_is_there() -> None:
    metadata = KraftMetadata()
    for topic, topic_id in (("orders", TOPIC_ID), ("gone", bytes(16))):
        metadata.replay(kraft_record(2, compact(topic) + topic_id))
        metadata.replay(kraft_record(4, b"\2" + compact(topic) + compact("retention.ms") + compact("5")))
    metadata.replay(kraft_record(4, b"\2" + compact("orders") + compact("retention.ms") + compact("-1")))
    metadata.replay(kraft_record(4, b"\2" + compact("orders") + compact("segment.ms") + compact("9")))
    metadata.replay(kraft_record(4, b"\2" + compact("orders") + compact("segment.ms") + b"\0"))
    metadata.replay(kraft_record(4, b"\4" + compact("1") + compact("log.segment.bytes") + compact("7")))
    metadata.replay(kraft_record(9, bytes(16)))
    metadata.replay(kraft_record(15, bytes(12) + (3000).to_bytes(8, "big")))
    assert metadata.configs == {"orders": {"retention.ms": "-1"}}
    assert metadata.next_producer_id == 3000


# --- configs that are lost


def test_a_topic_whose_configs_are_lost_keeps_all_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_log(tmp_path, "keep-0")
    make_log(tmp_path, "__consumer_offsets-0")
    with caplog.at_level(logging.WARNING, "penstock.broker"):
        image, _ = adopt(tmp_path)
    assert image.topic_overrides("keep") == KEEP_ALL
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "retention.ms=-1" in warning
    assert "penstock configs set --topic" in warning
    assert warning.endswith(": keep")


def test_a_topic_that_krafts_metadata_does_not_know_keeps_all_records(tmp_path: Path) -> None:
    known = kraft_record(2, compact("known") + TOPIC_ID)
    retention = kraft_record(4, b"\2" + compact("known") + compact("segment.ms") + compact("9"))
    make_log(tmp_path, "__cluster_metadata-0", values=(known, retention))
    make_log(tmp_path, "known-0")
    make_log(tmp_path, "unknown-0", topic_id=bytes(15) + b"\1")
    image, _ = adopt(tmp_path)
    assert image.topic_overrides("known") == {"segment.ms": "9"}
    assert image.topic_overrides("unknown") == KEEP_ALL
