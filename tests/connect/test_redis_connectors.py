"""The Redis sink and sources, with a real server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.redis.keys_source import RedisKeysSource, RedisKeysSourceTask
from penstock.connect.connectors.redis.sink import RedisSink, RedisSinkTask
from penstock.connect.connectors.redis.stream_source import RedisStreamSource, RedisStreamSourceTask
from penstock.connect.data import BOOLEAN, FLOAT64, INT64, STRING, struct
from penstock.connect.errors import ConnectError, DataError, Hopeless, RetriableError
from tests.connect.databases import Redis
from tests.connect.tasks_alone import polled, records, sink_task, source_task

_numbers = itertools.count(1)


class Space:
    """Keys of the test's own."""

    def __init__(self, server: Redis, client: Any) -> None:
        self.name, self.port, self.client = f"space{next(_numbers)}", server.port, client

    def config(self, **more: str) -> dict[str, str]:
        given = {name.replace("_", "."): value for name, value in more.items()}
        return {
            "redis.uri": f"redis://127.0.0.1:{self.port}", "redis.keyspace": self.name, "retry.backoff.ms": "5", **given,
        }  # fmt: skip


@pytest.fixture
def space(redis_server: Redis) -> Iterator[Space]:
    with redis_server.client() as client:
        yield Space(redis_server, client)


@pytest.mark.parametrize("multi", ["true", "false"])
def test_hashes_follow_their_records(space: Space, multi: str) -> None:
    schema = struct("s", name=STRING, n=INT64, f=FLOAT64, ok=BOOLEAN, gone=STRING.optional())
    value = schema.new(name="grüße", n=1, f=1.5, ok=True, gone="x")
    with sink_task(
        RedisSinkTask, space.config(redis_type="hash", redis_multiexec=multi, redis_key_ttl="100")
    ) as task:
        task.put(records("t", value, {"deep": {"a": [1]}}, keys=["a", 7]))
        assert space.client.hgetall(f"{space.name}:a") == {
            "name": "grüße",
            "n": "1",
            "f": "1.5",
            "ok": "true",
            "gone": "x",
        }
        assert space.client.hgetall(f"{space.name}:7") == {"deep": '{"a":[1]}'}
        assert 0 < space.client.ttl(f"{space.name}:a") <= 100
        task.put(records("t", schema.of({**dict(value.items()), "gone": None}), None, keys=["a", "7"]))
    assert "gone" not in space.client.hgetall(f"{space.name}:a")
    assert not space.client.exists(f"{space.name}:7")


def test_strings_lists_sets_and_sorted_sets(space: Space) -> None:
    client, name = space.client, space.name
    with sink_task(RedisSinkTask, space.config(redis_command="SET", redis_separator="/")) as task:
        task.put(records("t", "text", b"bytes", {"a": 1}, 5, None, keys=["a", "b", "c", "d", "a"]))
    assert client.mget(*[f"{name}/{key}" for key in "abcd"]) == [None, "bytes", '{"a":1}', "5"]
    for kind, expected in (("LPUSH", ["c", "a"]), ("RPUSH", ["a", "c"])):
        with sink_task(RedisSinkTask, space.config(redis_command=kind, redis_key=f"{name}-{kind}")) as task:
            task.put(records("t", 1, 1, 1, None, keys=["a", "b", "c", "b"]))
        assert client.lrange(f"{name}-{kind}", 0, -1) == expected
    with sink_task(
        RedisSinkTask, space.config(redis_type="SET", redis_keyspace=f"${{topic}}-{name}")
    ) as task:
        task.put(records("t", 1, 1, None, keys=["a", b"b", "a"]))
    assert client.smembers(f"t-{name}") == {"b"}
    with sink_task(RedisSinkTask, space.config(redis_type="ZSET")) as task:
        task.put(records("t", 1, 2.5, "3", "no score", None, keys=["a", "b", "c", "d", "c"]))
        assert [record.offset for record, _ in task.context.reported] == [3]
    assert client.zrange(name, 0, -1, withscores=True) == [("a", 1.0), ("b", 2.5)]


def test_a_record_that_redis_refuses_is_told(space: Space) -> None:
    space.client.set(f"{space.name}:a", "a text")
    with sink_task(RedisSinkTask, space.config(redis_type="HASH")) as task:
        task.put(records("t", {"f": 1}, {"f": 2}, "text", {"f": 3}, keys=["a", "b", "c", None]))
        told = {record.offset: str(error) for record, error in task.context.reported}
    assert told.keys() == {0, 2, 3}
    assert "WRONGTYPE" in told[0]
    assert space.client.hget(f"{space.name}:b", "f") == "2"
    with (
        sink_task(RedisSinkTask, space.config(redis_type="HASH"), tolerates=False) as task,
        pytest.raises(DataError),
    ):
        task.put(records("t", {"f": 1}, keys=["a"]))
    with (
        sink_task(RedisSinkTask, space.config(redis_type="JSON")) as task,
        pytest.raises(Hopeless, match="no such command"),
    ):
        task.put(records("t", {"f": 1}, keys=["j"]))
    given = space.config(redis_wait_replicas="1", redis_wait_timeout="10")
    with sink_task(RedisSinkTask, given) as task, pytest.raises(ConnectError, match="replicas"):
        task.put(records("t", {"f": 1}))


def test_exactly_once_leaves_out_what_is_written(space: Space) -> None:
    given = space.config(
        redis_type="STREAM", redis_multiexec="true", penstock_offsets_key=f"{space.name}-offsets"
    )
    assert RedisSink.check(given) == {}
    assert RedisSink.check({**given, "redis.multiexec": "false"}).keys() == {"penstock.offsets.key"}
    with sink_task(RedisSinkTask, given) as task:
        task.open([("t", 0)])
        assert task.context.sought == {}
        task.put(records("t", {"n": 0}, {"n": 1}))
        task.put(records("t", {"n": 0}, {"n": 1}, {"n": 2}, None))
        assert len(task.context.reported) == 1
    with sink_task(RedisSinkTask, given) as task:
        task.open([("t", 0), ("t", 1)])
        assert task.context.sought == {("t", 0): 4}
    assert [fields["n"] for _, fields in space.client.xrange(space.name)] == ["0", "1", "2"]
    hashes = {**given, "redis.type": "HASH", "penstock.offsets.key": f"{space.name}-other"}
    space.client.set(f"{space.name}:wrong", "a text")
    with sink_task(RedisSinkTask, hashes, tolerates=False) as task:
        with pytest.raises(DataError):
            task.put(records("t", {"n": 0}, {"n": 1}, keys=["right", "wrong"]))
        task.open([("t", 0)])
        assert task.context.sought == {("t", 0): 1}, "the record that failed comes again"
    assert RedisSink().alter_offsets({**given, "name": "tested"}, {("t", 0): 1, ("t", 1): None})
    with sink_task(RedisSinkTask, given) as task:
        task.open([("t", 0)])
        assert task.context.sought == {("t", 0): 1}


def test_a_redis_that_is_away_is_waited_for_and_a_wrong_password_is_not(tmp_path: Path) -> None:
    with Redis(tmp_path / "r") as server:
        given = {"redis.host": "127.0.0.1", "redis.port": str(server.port), "retry.backoff.ms": "5", "redis.type": "STRING",
                 "max.retries": "1"}  # fmt: skip
        with sink_task(RedisSinkTask, given) as task:
            task.put(records("t", "1", keys=["a"]))
            server.process.kill()
            with pytest.raises(RetriableError):
                task.put(records("t", "2", keys=["b"]))
            with pytest.raises(ConnectError, match=r"max\.retries"):
                task.put(records("t", "2", keys=["b"]))
            server.start()
            task.put(records("t", "2", keys=["b"]))
            with server.client() as client:
                assert client.get("t:b") == "2"
                client.config_set("requirepass", "word")
        with sink_task(RedisSinkTask, {**given, "redis.password": "wrong"}) as task, pytest.raises(Hopeless):
            task.put(records("t", "3", keys=["c"]))


def stream_config(space: Space, **more: str) -> dict[str, str]:
    return space.config(redis_stream_name=space.name, redis_stream_block="10", topic="from-${stream}", **more)


def test_a_stream_is_read_acknowledged_and_read_again(space: Space) -> None:
    client, name = space.client, space.name
    for number in range(5):
        client.xadd(name, {"n": number, "text": "grüße"}, id=f"{number + 1}-0")
    with source_task(RedisStreamSourceTask, stream_config(space, batch_size="2")) as task:
        found = polled(task, 5)
        assert [record.value["body"]["n"] for record in found] == ["0", "1", "2", "3", "4"]
        assert (found[0].key, found[0].topic, found[0].value["stream"]) == ("1-0", f"from-{name}", name)
        found[0].value.check()
        assert client.xpending(name, "kafka-consumer-group")["pending"] == 5
    with source_task(RedisStreamSourceTask, stream_config(space)) as task:
        assert len(polled(task, 5)) == 5, "they were not acknowledged"
    kept = [(found[2].source_partition, found[2].source_offset)]
    with source_task(RedisStreamSourceTask, stream_config(space), kept) as task:
        assert [record.key for record in polled(task, 2)] == ["4-0", "5-0"], "what is written is left out"
        task.commit()
        assert client.xpending(name, "kafka-consumer-group")["pending"] == 0
        client.xadd(name, {"n": 5})
        assert polled(task, 1)[0].value["body"] == {"n": "5"}
    with pytest.raises(ConnectError):
        RedisStreamSource().alter_offsets({}, {"p": {"messageId": "x"}})


def test_tasks_share_a_stream_and_take_over_what_one_has_left(space: Space) -> None:
    client, name = space.client, space.name
    for number in range(4):
        client.xadd(name, {"n": number})
    given = stream_config(space, batch_size="2", redis_stream_claim_idle_ms="1")
    connector = RedisStreamSource()
    connector.configure(given)
    assert len(connector.task_configs(3)) == 3
    connector.configure({**given, "redis.stream.consumer.name": "one"})
    assert len(connector.task_configs(3)) == 1
    with source_task(RedisStreamSourceTask, {**given, "redis.stream.consumer.name": "dead"}) as task:
        assert len(polled(task, 2)) == 2
    with source_task(RedisStreamSourceTask, given) as task:
        assert [record.value["body"]["n"] for record in polled(task, 2)] == ["2", "3"]
        task._next_claim_s = 0
        assert [record.value["body"]["n"] for record in polled(task, 2)] == ["0", "1"]
    with source_task(RedisStreamSourceTask, {**given, "redis.stream.delivery": "at-most-once",
                                             "redis.stream.consumer.group": "g2"}) as task:  # fmt: skip
        polled(task, 4)
        assert client.xpending(name, "g2")["pending"] == 0


def test_keys_come_with_their_values_and_their_changes(space: Space) -> None:
    client, name = space.client, space.name
    client.config_set("notify-keyspace-events", "KEA")
    client.set(f"{name}:s", "text", ex=100)
    client.hset(f"{name}:h", mapping={"a": "1"})
    client.rpush(f"{name}:l", "x", "y")
    client.sadd(f"{name}:set", "m", "n")
    client.zadd(f"{name}:z", {"m": 1.5})
    client.xadd(f"{name}:stream", {"a": 1})
    client.set("other", "x")
    with source_task(RedisKeysSourceTask, space.config(redis_keys_pattern=f"{name}:*", topic="t")) as task:
        found = {record.key.removeprefix(f"{name}:"): record.value for record in polled(task, 6)}
        assert (found["s"]["string"], found["s"]["type"]) == ("text", "string")
        assert 0 < found["s"]["ttl"] <= 100
        assert (found["h"]["hash"], found["l"]["list"], found["set"]["set"]) == (
            {"a": "1"},
            ["x", "y"],
            ["m", "n"],
        )
        assert found["z"]["zset"] == {"m": 1.5}
        assert found["stream"]["type"] == "stream"
        client.set(f"{name}:s", "new")
        assert polled(task, 1)[0].value["string"] == "new"
        client.delete(f"{name}:h")
        [gone] = polled(task, 1)
        assert (gone.key, gone.value) == (f"{name}:h", None)
    live = space.config(redis_keys_pattern=f"{name}:*", topic="t", mode="LIVEONLY")
    with source_task(RedisKeysSourceTask, live) as task:
        assert not task.poll()
        client.set(f"{name}:s", "again")
        assert polled(task, 1)[0].value["string"] == "again"
    with pytest.raises(ConnectError):
        RedisKeysSource().alter_offsets({}, {})
