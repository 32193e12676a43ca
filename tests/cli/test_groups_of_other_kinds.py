"""Share groups and streams groups at a broker that has none: one clear line for each tool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.conftest import Finished, run_command

Kafka = Callable[..., Finished]


@pytest.mark.parametrize(
    ("tool", "kind"), [("share-groups", "share groups"), ("streams-groups", "streams groups")]
)
@pytest.mark.parametrize(
    "words", [["--list"], ["--describe", "--group", "g"], ["--describe", "--all-groups"]]
)
def test_a_cluster_without_such_groups_says_so_in_one_line(
    kafka: Kafka, tool: str, kind: str, words: list[str]
) -> None:
    done = kafka(tool, *words)
    assert done.err.startswith(
        f"kafka-{tool}: the brokers of this cluster have no {kind} (Apache Kafka 4.1 and "
    )
    assert done.err.count("\n") == 1
    assert (done.out, done.code) == ("", 1)


def test_who_wants_to_read_as_a_share_consumer_hears_what_to_use() -> None:
    words = ("--bootstrap-server", "localhost:1", "--topic", "orders", "--group", "sharers")
    done = run_command("kafka-console-share-consumer", *words)
    assert done.err.startswith(
        "kafka-console-share-consumer: it cannot join a share group. Read as a group of "
    )
    assert "kafka-console-consumer" in done.err
    assert done.err.count("\n") == 1
    assert (done.out, done.code) == ("", 1)
