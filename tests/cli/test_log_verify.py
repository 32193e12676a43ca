import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Finished, Run, run_command
from tests.cli.log_files import FIRST, edit, some_records, write_logs
from tests.unit.storage.batches import close_cleanly

BATCHES = 6
SECOND = f"{40:020d}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two logs of two segments, with an index entry for each batch but the first of a segment."""
    path = tmp_path / "data"
    batches: list[dict[str, object]] = [
        {"producer_id": 7, "producer_epoch": 0, "base_sequence": 10 * number} for number in range(BATCHES)
    ]
    segment_bytes = 4 * len(build_batch(some_records(10, 0)))
    write_logs(
        path, {"orders-0": batches, "orders-1": batches}, segment_bytes=segment_bytes, index_interval_bytes=1
    )
    assert (path / "orders-0" / f"{SECOND}.log").exists()
    return path


def verify(*words: str | Path) -> Finished:
    return run_command("penstock", "log", "verify", *map(str, words))


def problems(path: Path) -> list[str]:
    done = verify(path)
    assert done.code == (1 if done.out else 0)
    return done.out.splitlines()


def snapshot_of(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_sound_directory_has_no_problem(data: Path) -> None:
    done = verify(data, "--deep")
    assert (done.out, done.code) == ("", 0)
    assert done.err.startswith("nothing is wrong: 2 logs, 4 segments, 12 batches, ")


def test_one_partition_may_be_asked_for(data: Path) -> None:
    done = verify(data / "orders-1")
    assert done.err.startswith("nothing is wrong: 1 log, 2 segments, 6 batches, ")


def test_a_wrong_crc_names_byte_and_offsets(data: Path) -> None:
    log = data / "orders-0" / f"{FIRST}.log"

    def flip(bytes_: bytearray) -> None:
        bytes_[300] ^= 1

    size = struct.unpack_from(">i", log.read_bytes(), 8)[0] + 12
    edit(log, flip)
    assert problems(data) == [
        f"orders-0/{FIRST}.log, byte {size}, offset 10: wrong CRC: offsets 10 to 19 cannot be believed"
    ]


def test_a_wrong_crc_within_a_log_is_not_cut_away(data: Path) -> None:
    log = data / "orders-0" / f"{FIRST}.log"

    def flip(bytes_: bytearray) -> None:
        bytes_[300] ^= 1

    edit(log, flip)
    log.with_suffix(".index").unlink()  # rebuilding it would cut the log at the damage
    before = log.read_bytes()
    done = verify(data, "--repair")
    assert (done.code, "repaired" in done.out) == (1, False)
    assert log.read_bytes() == before


@pytest.mark.parametrize("length", [0, 0x7FFFFFFF])
def test_a_length_that_is_none_is_told_and_what_is_sound_behind_it_is_kept(data: Path, length: int) -> None:
    log = data / "orders-0" / f"{SECOND}.log"
    edit(log, lambda bytes_: struct.pack_into(">i", bytes_, 8, length))
    (told,) = problems(data)
    assert told.startswith(f"orders-0/{SECOND}.log, byte 0, offset 40: ")
    assert "sound batches go on at byte " in told
    before = log.read_bytes()
    verify(data, "--repair")
    assert log.read_bytes() == before


def test_messages_of_an_older_format_are_not_taken_for_a_torn_tail(data: Path) -> None:
    body = struct.pack(">bbqii", 1, 0, 5, -1, -1)
    message = struct.pack(">qi", 60, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body
    log = data / "orders-0" / f"{SECOND}.log"
    edit(log, lambda bytes_: bytes(bytes_) + message)
    assert [line.partition(": ")[2] for line in problems(data)] == [
        "messages of format 1, which Penstock does not read"
    ]
    verify(data, "--repair")
    assert log.read_bytes().endswith(message)


def test_a_torn_tail_is_told_and_only_cut_with_repair(data: Path) -> None:
    log = data / "orders-0" / f"{SECOND}.log"
    whole = log.read_bytes()
    edit(log, lambda bytes_: bytes(bytes_[:-5]))
    before = snapshot_of(data)
    done = verify(data)
    size = len(whole) // 2
    assert done.out.splitlines()[0] == (
        f"orders-0/{SECOND}.log, byte {size}, offset 50: a torn batch: 5 of its {size} bytes are missing"
    )
    assert done.code == 1
    assert snapshot_of(data) == before
    repaired = verify(data, "--repair")
    assert f"cut {size - 5} bytes off, indexes rebuilt" in repaired.out
    assert log.read_bytes() == whole[:size]
    assert problems(data) == []


def test_batches_out_of_order_are_told(data: Path) -> None:
    log = data / "orders-0" / f"{FIRST}.log"
    edit(log, lambda bytes_: bytes(bytes_[len(bytes_) // 4 :] + bytes_[: len(bytes_) // 4]))
    assert any("offset 40 or above was expected" in line for line in problems(data))


@pytest.mark.parametrize(
    ("suffix", "bytes_", "cause"),
    [
        (".index", struct.pack(">ii", 19, 7), "byte 0, offset 19: points to byte 7, where no batch begins"),
        (".index", struct.pack(">ii", 500, 100_000), "byte 0: 1 entry points behind the end of the log"),
        (".index", b"abc", "3 bytes are no whole number of entries of 8 bytes"),
        (".timeindex", b"", "ends at timestamp -1, the log at 1700000000309"),
        (
            ".timeindex",
            struct.pack(">qi", 5, 39),
            "byte 0, offset 39: timestamp 5, but the largest up to there",
        ),
    ],
)
def test_an_index_that_contradicts_its_log_is_told_and_rebuilt(
    data: Path, suffix: str, bytes_: bytes, cause: str
) -> None:
    path = data / "orders-0" / f"{FIRST}{suffix}"
    sound = path.read_bytes()
    path.write_bytes(bytes_)
    assert any(cause in line and line.startswith(f"orders-0/{FIRST}{suffix}") for line in problems(data))
    assert verify(data, "--repair").code == 0
    assert problems(data) == []
    assert len(path.read_bytes()) <= len(sound)


def test_a_missing_index_is_rebuilt(data: Path) -> None:
    (data / "orders-1" / f"{FIRST}.index").unlink()
    assert problems(data) == [f"orders-1/{FIRST}.index: missing"]
    assert verify(data, "--repair").code == 0
    assert problems(data) == []


def test_a_damaged_snapshot_is_removed(data: Path) -> None:
    path = data / "orders-0" / f"{60:020d}.snapshot"
    edit(path, lambda bytes_: bytes(bytes_[:-1]))
    assert problems(data) == [f"orders-0/{path.name}: not a producer snapshot: wrong CRC"]
    verify(data, "--repair")
    assert not path.exists()


def test_leader_epochs_that_contradict_the_log_are_rebuilt(data: Path) -> None:
    path = data / "orders-0" / "leader-epoch-checkpoint"
    sound = path.read_bytes()
    path.write_text("0\n2\n0 0\n3 20\n")
    assert problems(data) == [
        "orders-0/leader-epoch-checkpoint, offset 59: says epoch 3 where the log has epoch 0"
    ]
    verify(data, "--repair")
    assert path.read_bytes() == sound


def test_a_checkpoint_behind_the_end_of_its_log_is_corrected(data: Path) -> None:
    path = data / "replication-offset-checkpoint"
    path.write_text("0\n2\norders 0 60\norders 1 99\n")
    assert problems(data) == ["replication-offset-checkpoint, offset 99: orders-1 ends at offset 60"]
    verify(data, "--repair")
    assert path.read_text() == "0\n2\norders 0 60\norders 1 60\n"


def test_a_checkpoint_that_is_none_is_set_aside(data: Path) -> None:
    path = data / "recovery-point-offset-checkpoint"
    path.write_text("junk")
    assert problems(data) == ["recovery-point-offset-checkpoint: not an offset checkpoint"]
    verify(data, "--repair")
    assert not path.exists()
    assert path.with_name(path.name + ".damaged").read_text() == "junk"


def test_leftovers_are_notes_and_go_with_repair(data: Path) -> None:
    leftover = data / "orders-0" / f"{FIRST}.log.deleted"
    leftover.touch()
    done = verify(data)
    assert done.out == f"note: orders-0/{FIRST}.log.deleted: a leftover that nobody needs\n"
    assert done.code == 0
    assert verify(data, "--repair").code == 0
    assert not leftover.exists()


def test_json_tells_the_same(data: Path) -> None:
    (data / "orders-1" / f"{FIRST}.index").unlink()
    done = verify(data, "-o", "json")
    told = json.loads(done.out)
    assert (told["logs"], told["segments"], told["batches"], told["in_use"]) == (2, 4, 12, False)
    assert told["problems"] == [
        {
            "file": f"orders-1/{FIRST}.index",
            "position": None,
            "offset": None,
            "cause": "missing",
            "repair": "rebuild the indexes",
            "repaired": None,
        }
    ]
    assert done.code == 1


def test_a_directory_in_use_is_checked_but_not_repaired(tmp_path: Path, run: Run) -> None:
    with PenstockBroker(tmp_path) as broker:
        produced = run("penstock", "produce", "orders", "-b", broker.bootstrap, stdin="a\nb\n")
        assert produced.code == 0, produced.err
        checked = verify(broker.data_dir)
        assert (checked.out, checked.code) == ("", 0)
        assert "a broker is writing here" in checked.err
        refused = verify(broker.data_dir, "--repair")
        assert refused.err == f"penstock: a broker is using {broker.data_dir}: stop it before a repair\n"
        assert refused.code == 1


@pytest.mark.parametrize("at", [8, 67], ids=["length", "record"])
def test_damage_in_the_last_batch_is_told_while_a_broker_runs(tmp_path: Path, run: Run, at: int) -> None:
    def damage(bytes_: bytearray) -> None:
        bytes_[at] ^= 0x7F

    with PenstockBroker(tmp_path) as broker:
        produced = run("penstock", "produce", "orders", "-b", broker.bootstrap, stdin="a\n")
        assert produced.code == 0, produced.err
        edit(broker.data_dir / "orders-0" / f"{FIRST}.log", damage)
        told = verify(broker.data_dir)
        assert f"orders-0/{FIRST}.log, byte 0, offset 0: " in told.out
        assert told.code == 1


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    done = verify(tmp_path)
    assert done.err == f"penstock: {tmp_path} is neither a broker's data directory nor a partition's\n"
    assert done.code == 1


def test_show_draws_each_segment(data: Path, run: Run) -> None:
    (data / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    lines = run("penstock", "log", "show", str(data), "orders-0").out.splitlines()
    assert lines[0].startswith("orders-0  2 segments, ")
    assert "offsets 0–60, high watermark 60, on the device up to 60, cleaned up to 40" in lines[0]
    assert "█" in lines[1]
    assert "▒" in lines[1]
    assert [line.split()[0] for line in lines[4:6]] == ["0", "40"]
    assert [line.split()[-1] for line in lines[4:6]] == ["clean", "active"]


def test_show_without_a_topic_has_a_line_for_each_log(data: Path, run: Run) -> None:
    lines = run("penstock", "log", "show", str(data)).out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["orders-0", "orders-1"]


def test_show_as_json(data: Path, run: Run) -> None:
    shown = json.loads(run("penstock", "log", "show", str(data), "orders-1", "-o", "json").out)
    assert [(s["base_offset"], s["end_offset"], s["state"]) for s in shown[0]["segments"]] == [
        (0, 40, "closed"),
        (40, 60, "active"),
    ]
    assert shown[0]["end_offset"] == 60


def test_show_of_a_log_that_is_not_there_is_one_line(data: Path, run: Run) -> None:
    done = run("penstock", "log", "show", str(data), "payments")
    assert (done.err, done.code) == (f"penstock: {data} has no log of payments\n", 1)


# --- transactions


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two aborted transactions: one within the first segment, one that begins there and ends in the second."""
    path = tmp_path / "ledger"
    log = Log.open(OsDisk(), str(path / "ledger-0"), LogOptions(), SystemClock())
    partition = Partition("ledger", 0, log, SystemClock(), leader_epoch=0)

    def put(producer_id: int) -> None:
        batch = build_batch(
            some_records(1, 0), producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        partition.append(memoryview(batch), verified_transaction=True)

    def abort(producer_id: int) -> None:
        partition.append_marker(
            producer_id=producer_id, producer_epoch=0, committed=False, coordinator_epoch=0
        )

    put(7)
    put(8)
    abort(7)
    log.roll()
    abort(8)
    close_cleanly(log)
    return path / "ledger-0"


def test_sound_transaction_indexes_are_no_problem(ledger: Path) -> None:
    assert len(list(ledger.glob("*.txnindex"))) == 2
    assert problems(ledger) == []


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda path: path.unlink(), "offset 3: 1 aborted transaction is not in it, the first of producer 8"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "33 bytes are no whole number of entries"),
        (lambda path: path.write_bytes(b"\0\7" + path.read_bytes()[2:]), "unknown version 7 of entry 0"),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b"\0\10", b"\0\11", 1)),
            "offset 3: 1 entry names a marker that the log does not have",
        ),
    ],
    ids=["missing", "torn", "version", "unfounded"],
)
def test_a_wrong_transaction_index_is_told_and_rebuilt(
    ledger: Path, change: Callable[[Path], object], cause: str
) -> None:
    path = ledger / f"{3:020d}.txnindex"
    whole = path.read_bytes()
    change(path)
    assert any(f"{path.name}" in line and cause in line for line in problems(ledger))
    done = verify(ledger, "--repair")
    assert "indexes rebuilt" in done.out
    assert path.read_bytes() == whole
    assert problems(ledger) == []
