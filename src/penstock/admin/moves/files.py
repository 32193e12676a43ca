"""Reassignments as JSON, in Kafka's form: {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from penstock.admin.json_documents import entries, field, list_field, parse_document
from penstock.admin.moves.model import ANY_LOG_DIR, Assignment, LogDirs, Replica, Request
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

T = TypeVar("T")


def parse_request(text: str) -> Request:
    document = parse_document(text)
    partitions: list[tuple[TopicPartition, list[int]]] = []
    log_dirs: LogDirs = {}
    if "partitions" in document:
        for entry in entries(document, "partitions", of="topic, partition and replicas"):
            partition = TopicPartition(field(entry, "topic", str), field(entry, "partition", int))
            replicas = list_field(entry, "replicas", int)
            dirs = (
                list_field(entry, "log_dirs", str) if "log_dirs" in entry else [ANY_LOG_DIR] * len(replicas)
            )
            if len(replicas) != len(dirs):
                raise UserError(
                    f"Size of replicas list {_listed(replicas)} is different from size of log dirs list "
                    f"{_listed(dirs)} for partition {partition}"
                )
            partitions.append((partition, replicas))
            for broker, log_dir in zip(replicas, dirs, strict=True):
                if log_dir != ANY_LOG_DIR:
                    log_dirs[Replica(broker, partition.topic, partition.partition)] = log_dir
    return Request(partitions, log_dirs)


def checked_assignment(request: Request) -> Assignment:
    """What can be executed: each partition once, each of its brokers once, none without brokers."""
    if not request.partitions:
        raise UserError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in request.partitions):
        raise UserError("Partition replica list cannot be empty")
    twice = duplicates(partition for partition, _ in request.partitions)
    if twice:
        raise UserError(
            f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, twice))}"
        )
    repeated = [
        f"{partition} contains multiple entries for {','.join(map(str, duplicates(replicas)))}"
        for partition, replicas in request.partitions
        if duplicates(replicas)
    ]
    if repeated:
        raise UserError(f"Partition replica lists may not contain duplicate entries: {'. '.join(repeated)}")
    return dict(request.partitions)


def parse_topics(text: str) -> list[str]:
    """{"version":1,"topics":[{"topic":"orders"}]} → the names."""
    document = parse_document(text)
    if "topics" not in document:
        return []
    names: list[str] = [field(entry, "topic", str) for entry in entries(document, "topics", of="topic")]
    twice = duplicates(names)
    if twice:
        raise UserError(f"List of topics to reassign contains duplicate entries: {_listed(twice)}")
    return names


def parse_brokers(text: str) -> list[int]:
    brokers = []
    for word in text.split(","):
        try:
            brokers.append(int(word))
        except ValueError:
            raise UserError(f"--broker-list takes broker ids, such as 0,1,2: '{word}' is none") from None
    twice = duplicates(brokers)
    if twice:
        raise UserError(f"Broker list contains duplicate entries: {_listed(twice)}")
    return brokers


def as_json(assignment: Assignment, log_dirs: LogDirs | None = None) -> str:
    known = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": replicas,
            "log_dirs": [
                known.get(Replica(broker, partition.topic, partition.partition), ANY_LOG_DIR)
                for broker in replicas
            ],
        }
        for partition, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def duplicates(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
