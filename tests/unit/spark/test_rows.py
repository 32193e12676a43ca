"""Arrow batches to messages, in pieces that keep their order."""

import pyarrow as pa
import pytest

from penstock.spark.writing import rows
from penstock.spark.writing.rows import Columns, chunks

ALL = Columns(value=0, key=1, topic=2, partition=3, headers=None)


def batch(*records: tuple[str, str | None, str | None, int | None]) -> pa.RecordBatch:
    value, key, topic, partition = zip(*records, strict=True)
    return pa.record_batch(
        [
            pa.array(value, pa.string()),
            pa.array(key, pa.string()),
            pa.array(topic, pa.string()),
            pa.array(partition, pa.int32()),
        ],
        names=["value", "key", "topic", "partition"],
    )


def test_rows_of_one_place_stay_together_and_in_order() -> None:
    made = list(
        chunks(
            batch(("1", "k", "a", 0), ("2", None, "b", 0), ("3", "k", "a", 0), ("4", "k", "a", 1)), ALL, None
        )
    )
    assert [(chunk.topic, chunk.partition, [each["value"] for each in chunk.messages]) for chunk in made] == [
        ("a", 0, [b"1", b"3"]),
        ("b", 0, [b"2"]),
        ("a", 1, [b"4"]),
    ]
    assert all(chunk.is_plain for chunk in made)


def test_rows_with_and_without_a_partition_go_one_after_the_other() -> None:
    (made,) = chunks(batch(("1", "k", "a", 1), ("2", "k", "a", None)), ALL, None)
    assert not made.is_plain
    assert [message.get("partition") for message in made.messages] == [1, None]


def test_the_option_goes_before_the_column() -> None:
    (made,) = chunks(batch(("1", "k", "a", None)), ALL._replace(topic=None), "given")
    assert made.topic == "given"


def test_a_row_without_a_topic_is_an_error() -> None:
    with pytest.raises(ValueError, match="a row has no topic"):
        list(chunks(batch(("1", "k", None, 0)), ALL, None))


def test_large_rows_make_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_MAX_BYTES", 1000)
    table = pa.record_batch([pa.array(["x" * 300] * 10)], names=["value"])
    made = list(chunks(table, Columns(0, None, None, None, None), "t"))
    assert len(made) > 3
    assert sum(len(chunk.messages) for chunk in made) == 10
