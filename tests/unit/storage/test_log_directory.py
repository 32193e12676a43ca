import json
import shutil
from pathlib import Path

import pytest

from penstock.model.ids import TopicPartition
from penstock.runtime.files import OsDisk
from penstock.storage.log_directory import LogDirectory
from penstock.storage.meta_properties import LogDirectoryError
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock, append

ORDERS = TopicPartition("orders", 0)
DASHED = TopicPartition("a-b.c_d", 12)
TOPIC_ID = bytes(range(16))


@pytest.fixture
def directory(disk: OsDisk, clock: StillClock, tmp_path: Path) -> LogDirectory:
    return LogDirectory(disk, str(tmp_path), clock)


def reopen(tmp_path: Path) -> LogDirectory:
    return LogDirectory(OsDisk(), str(tmp_path), StillClock())


def test_a_second_broker_on_the_same_directory_is_told_so(directory: LogDirectory, tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="in use by another broker"):
        reopen(tmp_path)
    directory.release()
    reopen(tmp_path).release()


def test_logs_are_listed_with_their_topic_ids(directory: LogDirectory, tmp_path: Path) -> None:
    directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    directory.open_log(DASHED, LogOptions())
    (tmp_path / "lost+found").mkdir()
    assert sorted(directory.list_logs()) == [(DASHED, None), (ORDERS, TOPIC_ID)]
    assert (tmp_path / "orders-0" / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )


def test_a_topic_id_that_was_lost_is_written_again(directory: LogDirectory, tmp_path: Path) -> None:
    directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    (tmp_path / "orders-0" / "partition.metadata").write_text("")
    assert directory.list_logs() == [(ORDERS, None)]
    directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    assert directory.list_logs() == [(ORDERS, TOPIC_ID)]


def test_a_clean_stop_is_marked_and_believed_once(directory: LogDirectory, tmp_path: Path) -> None:
    assert not directory.clean
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 5)
    directory.close([log], {ORDERS: 4})
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": -1}
    again = reopen(tmp_path)
    assert again.clean
    assert again.high_watermarks == {ORDERS: 4}
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log = again.open_log(ORDERS, LogOptions())
    assert (log.end_offset, log.recovery_point, log.report.recovered_segments) == (5, 5, 0)
    again.release()
    assert not reopen(tmp_path).clean


def test_checkpoints_have_kafkas_lines(directory: LogDirectory, tmp_path: Path) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 5)
    log.flush()
    append(log, 2)
    log.advance_start_offset(3)
    directory.checkpoint([log], {ORDERS: 7})
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 5\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 7\n"


def test_the_start_offset_outlives_a_crash_after_its_checkpoint(
    directory: LogDirectory, tmp_path: Path
) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 5)
    log.advance_start_offset(3)
    directory.checkpoint([log], {})
    directory.release()
    assert reopen(tmp_path).open_log(ORDERS, LogOptions()).start_offset == 3


@pytest.mark.parametrize("content", ["", "nonsense", "0\n5\norders 0 1\n", "0\n1\norders zero 1\n", "\xff"])
def test_a_damaged_checkpoint_only_costs_a_longer_check(
    directory: LogDirectory, tmp_path: Path, content: str
) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 5)
    directory.close([log], {})
    (tmp_path / "recovery-point-offset-checkpoint").write_text(content, encoding="latin-1")
    again = reopen(tmp_path)
    assert again.clean == (content == "")
    assert again.open_log(ORDERS, LogOptions()).end_offset == 5


def test_a_directory_of_another_broker_or_cluster_is_refused(directory: LogDirectory, tmp_path: Path) -> None:
    assert directory.cluster_id() is None
    directory.claim(broker_id=1, cluster_id="abc")
    directory.claim(broker_id=1, cluster_id="abc")
    assert (tmp_path / "meta.properties").read_text() == "version=0\nbroker.id=1\ncluster.id=abc\n"
    assert directory.cluster_id() == "abc"
    with pytest.raises(LogDirectoryError, match=r"broker\.id=1"):
        directory.claim(broker_id=2, cluster_id="abc")
    with pytest.raises(LogDirectoryError, match=r"cluster\.id=abc"):
        directory.claim(broker_id=1, cluster_id="xyz")


def test_a_deletion_that_was_not_finished_is_finished_later(directory: LogDirectory, tmp_path: Path) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    directory.delete_logs([log], bytes(16))
    assert directory.list_logs() == []
    removal = directory.leftover_removals()
    assert removal is not None
    removal.run()
    assert directory.leftover_removals() is None
    assert not list(tmp_path.glob("orders*"))


def test_a_new_log_inherits_nothing_from_a_deleted_one_of_its_name(
    directory: LogDirectory, tmp_path: Path
) -> None:
    log = directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    append(log, 1000)
    log.advance_start_offset(1000)
    directory.checkpoint([log], {ORDERS: 1000})
    directory.delete_logs([log], bytes(16)).run()
    log = directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID[::-1])
    append(log, 500)
    directory.release()
    log = reopen(tmp_path).open_log(ORDERS, LogOptions())
    assert (log.start_offset, log.end_offset) == (0, 500)


def test_a_checkpoint_that_was_under_way_does_not_bring_a_deleted_log_back(directory: LogDirectory) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 10)
    log.advance_start_offset(10)
    directory.delete_logs([log], bytes(16))
    directory.checkpoint([log], {})
    assert directory.open_log(ORDERS, LogOptions()).start_offset == 0


def test_a_checkpoint_without_its_log_says_nothing_about_a_new_one(
    directory: LogDirectory, tmp_path: Path
) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    append(log, 10)
    log.advance_start_offset(10)
    directory.checkpoint([log], {})
    directory.release()
    shutil.rmtree(tmp_path / "orders-0")  # a crash came between the deletion and the next checkpoint
    again = reopen(tmp_path)
    append(again.open_log(ORDERS, LogOptions()), 3)
    again.release()
    log = reopen(tmp_path).open_log(ORDERS, LogOptions())
    assert (log.start_offset, log.end_offset) == (0, 3)


def test_one_log_that_cannot_be_deleted_does_not_keep_the_others(
    directory: LogDirectory, tmp_path: Path
) -> None:
    logs = [directory.open_log(TopicPartition("orders", index), LogOptions()) for index in range(3)]
    shutil.rmtree(tmp_path / "orders-1")
    with pytest.raises(FileNotFoundError):
        directory.delete_logs(logs, bytes(16))
    assert directory.list_logs() == []


def test_the_partitions_of_a_topic_with_a_long_name_are_deleted_side_by_side(
    directory: LogDirectory,
) -> None:
    logs = [directory.open_log(TopicPartition("x" * 249, index), LogOptions()) for index in range(12)]
    directory.delete_logs(logs, bytes(16))
    assert directory.list_logs() == []
    removal = directory.leftover_removals()
    assert removal is not None
    removal.run()
    assert directory.leftover_removals() is None


def test_a_topic_made_again_inherits_no_checkpoint_of_the_dead_one(
    directory: LogDirectory, tmp_path: Path
) -> None:
    log = directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    append(log, 5)
    log.advance_start_offset(3)
    log.flush()
    directory.cleaner_offsets.set(ORDERS, 4)
    directory.cleaner_offsets.write()
    directory.checkpoint([log], {ORDERS: 5})
    directory.delete_logs([log], bytes(16))
    directory.release()  # a crash before the next checkpoint
    for name in ("replication-offset", "recovery-point-offset", "log-start-offset", "cleaner-offset"):
        assert "orders" not in (tmp_path / f"{name}-checkpoint").read_text(), name
    assert reopen(tmp_path).high_watermarks == {}


def test_a_checkpoint_that_began_before_a_deletion_does_not_bring_the_high_watermark_back(
    directory: LogDirectory, tmp_path: Path
) -> None:
    log = directory.open_log(ORDERS, LogOptions(), topic_id=TOPIC_ID)
    directory.delete_logs([log], bytes(16))
    directory.checkpoint([log], {ORDERS: 5})
    assert directory.high_watermarks == {}
    assert "orders" not in (tmp_path / "replication-offset-checkpoint").read_text()


def test_a_start_offset_above_a_cut_is_put_right_at_once(directory: LogDirectory, tmp_path: Path) -> None:
    log = directory.open_log(ORDERS, LogOptions())
    for _ in range(10):
        append(log)
    log.advance_start_offset(8)
    directory.checkpoint([log], {})
    log.truncate_to(5)
    append(log, 2)
    log.flush()
    directory.release()  # a crash before the next checkpoint
    again = reopen(tmp_path).open_log(ORDERS, LogOptions())
    assert (again.start_offset, again.end_offset) == (5, 7)
