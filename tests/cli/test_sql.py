"""penstock sql: topics answered by DuckDB."""

import csv
import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Finished, Run

WAIT_S = 60.0
# An hour ago: what is older than retention.ms may be deleted at any moment.
FIRST_TIMESTAMP_MS = (int(time.time()) - 3600) * 1000


def time_of(number: int) -> str:
    """Of a record, as the command shows it."""
    at = datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000 + number * 60, tz=UTC)
    return at.isoformat(timespec="milliseconds")


def produce(broker: PenstockBroker, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0})
    for number, (key, value) in enumerate(records):
        producer.produce(
            topic, value, key, timestamp=FIRST_TIMESTAMP_MS + number * 60_000, headers={"n": b"%d" % number}
        )
    assert producer.flush(WAIT_S) == 0


@pytest.fixture
def orders(broker: PenstockBroker, topic_name: str) -> str:
    """A topic with three orders and a tombstone; its name has dashes."""
    produce(
        broker,
        topic_name,
        (b"ana", '{"amount": 10.5, "city": "São Paulo"}'.encode()),
        (b"rui", b'{"amount": 2}'),
        (b"ana", b'{"amount": 4}'),
        (b"rui", None),
    )
    return topic_name


def as_json(done: Finished) -> list[dict[str, object]]:
    assert done.code == 0, done.err
    rows: list[dict[str, object]] = json.loads(done.out)
    return rows


def complaint(done: Finished) -> str:
    """Failures are one line and exit code 1."""
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    return done.err.strip()


def test_a_sum_over_json_values_by_key(penstock: Run, orders: str) -> None:
    query = f"""select key, sum((value->>'$.amount')::double) as total from "{orders}" group by key order by key"""
    assert as_json(penstock("sql", query, "-o", "json")) == [
        {"key": "ana", "total": 14.5},
        {"key": "rui", "total": 2.0},
    ]


def test_a_row_has_all_columns(penstock: Run, orders: str) -> None:
    rows = as_json(penstock("sql", f'select *, headers from "{orders}" where "offset" = 3', "-o", "json"))
    (row,) = rows
    headers = row.pop("headers")
    row.pop("headers_1", None)
    assert row == {
        "key": "rui",
        "value": None,
        "topic": orders,
        "partition": 0,
        "offset": 3,
        "timestamp": time_of(3),
        "timestampType": 0,
    }
    assert headers == [{"key": "n", "value": "3"}]


def test_a_table_for_people(penstock: Run, orders: str) -> None:
    done = penstock("sql", f'select key, value from "{orders}" order by "offset"')
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "key value"
    assert lines[2:] == [
        'ana {"amount": 10.5, "city": "São Paulo"}',
        'rui {"amount": 2}',
        'ana {"amount": 4}',
        "rui NULL",
    ]


def test_csv_for_programs(penstock: Run, orders: str) -> None:
    done = penstock(
        "sql",
        f"""select key, value->>'$.city' as city from "{orders}" where value is not null""",
        "-o",
        "csv",
    )
    assert done.code == 0
    assert list(csv.reader(io.StringIO(done.out))) == [
        ["key", "city"],
        ["ana", "São Paulo"],
        ["rui", ""],
        ["ana", ""],
    ]


def test_start_and_end_are_offsets_times_or_partitions_with_offsets(penstock: Run, orders: str) -> None:
    def count(*words: str) -> object:
        return as_json(penstock("sql", f'select count(*) as n from "{orders}"', *words, "-o", "json"))[0]["n"]

    assert count("--start", "1", "--end", "3") == 2
    assert count("--start", time_of(2)) == 2
    assert count("--end", "0:1") == 1
    assert count("--start", "10m") == 0


def test_a_topic_may_be_named_twice(penstock: Run, orders: str) -> None:
    query = f'select count(*) as n from "{orders}" a join "{orders}" b using (key)'
    assert as_json(penstock("sql", query, "-o", "json")) == [{"n": 8}]


def test_a_topic_with_dots_needs_no_quotes(penstock: Run, broker: PenstockBroker) -> None:
    produce(broker, "lab.measurements", (b"a", b"1"))
    produce(broker, "lab.workers", (b"a", b"Ana"))
    query = (
        'select w.value as name, m.value as value from lab.measurements m join "lab.workers" w using (key)'
    )
    assert as_json(penstock("sql", query, "-o", "json")) == [{"name": "Ana", "value": "1"}]
    query = "select count(*) as n from lab.measurements, lab.workers"
    assert as_json(penstock("sql", query, "-o", "json")) == [{"n": 1}]


def test_bytes_that_are_no_text_are_shown_escaped_or_raw(
    penstock: Run, broker: PenstockBroker, topic_name: str
) -> None:
    produce(broker, topic_name, (b"\xff\x00", "é".encode()))
    query = f'select key, value, typeof(value) as type from "{topic_name}"'
    assert as_json(penstock("sql", query, "-o", "json")) == [
        {"key": "\\xFF\\x00", "value": "é", "type": "VARCHAR"}
    ]
    query = f'select octet_length(key) as size, typeof(key) as type from "{topic_name}"'
    assert as_json(penstock("sql", query, "--raw", "-o", "json")) == [{"size": 2, "type": "BLOB"}]


def test_a_query_from_stdin_may_write_files_and_read_them(penstock: Run, orders: str, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    query = f"""copy (select key from "{orders}") to '{path}'; select count(*) as n from '{path}';"""
    assert as_json(penstock("sql", "-", "-o", "json", stdin=query)) == [{"n": 4}]


def test_a_topic_that_is_not_there_is_told_with_a_suggestion(penstock: Run, broker: PenstockBroker) -> None:
    produce(broker, "salaries", (None, b"1"))
    assert complaint(penstock("sql", "select * from salarie")) == (
        "penstock: there is no topic 'salarie'. Did you mean 'salaries'?"
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec 1", 'Parser Error: syntax error at or near "selec"'),
        (
            "select valu from {}",
            'Binder Error: Referenced column "valu" not found in FROM clause! Candidate bindings: "value"',
        ),
        ("select offset from {}", 'The column offset stands in double quotes: "offset"'),
        ("select * from my-orders", 'Names with dashes stand in double quotes: "my-topic"'),
        ("select (value->>'x')::int + 'a'::int from {}", "Could not convert string 'a'"),
        ("  ", "the query is empty"),
    ],
)
def test_what_is_wrong_with_a_query_is_told_in_one_line(
    penstock: Run, orders: str, query: str, said: str
) -> None:
    assert said in complaint(penstock("sql", query.format(f'"{orders}"')))


def test_a_place_that_is_none_is_told(penstock: Run, orders: str) -> None:
    assert complaint(penstock("sql", f'select 1 from "{orders}"', "--start", "soon")).startswith(
        "penstock: --start: 'soon' is not earliest, latest"
    )
    assert "has no partition 9" in complaint(penstock("sql", f'select 1 from "{orders}"', "--end", "9:1"))


def test_a_broker_that_is_not_there_is_told(run: Run) -> None:
    assert complaint(run("penstock", "sql", "select 1 from orders", "-b", "localhost:1")).startswith(
        "penstock: cannot reach a broker at localhost:1: connection refused."
    )


def test_a_truststore_that_cannot_be_read_is_told(penstock: Run, orders: str, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\nssl.truststore.location=/nowhere.pem\nkey.deserializer=y\n")
    done = penstock("sql", f'select 1 from "{orders}"', "--command-config", str(properties))
    assert complaint(done) == (
        "penstock: ssl.truststore.location: cannot read '/nowhere.pem': no such file or directory"
    )
