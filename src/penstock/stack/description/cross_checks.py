"""What no single entry can tell: ports that clash, more copies than brokers, schemas without a registry, files wrong inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.schemas.model import InvalidSchema
from penstock.stack import brokers, registry, spark
from penstock.stack.composition import Wish
from penstock.stack.description.forms import Given
from penstock.stack.description.model import Contents, SchemaWish, ScriptWish, TopicWish
from penstock.stack.description.table import key_of
from penstock.stack.description.yaml_tree import Findings
from penstock.stack.stack import Service, service_named


def check_together(
    top: Mapping[str, Given], contents: Contents, wish: Wish, services: Sequence[Service], found: Findings
) -> None:
    _check_ports(top, wish, services, found)
    broker = (
        service_named(services, brokers.NAME) if any(one.name == brokers.NAME for one in services) else None
    )
    count = (wish.of(broker).count or broker.default_count) if broker is not None else 1
    for topic in contents.topics:
        _check_topic(topic, count, found)
    _check_collisions(contents.topics, found)
    for schema in contents.schemas:
        _check_schema(schema, found)
    if contents.schemas and registry.NAME not in top:
        found.add(
            top["schemas"].line, "schemas need a schema registry: write `registry:` on a line of its own"
        )
    if contents.script is not None:
        _check_script(contents.script, found)
    _check_security(top, wish, found)


def _check_ports(top: Mapping[str, Given], wish: Wish, services: Sequence[Service], found: Findings) -> None:
    owners: dict[int, str] = {}
    for service in services:
        asked = wish.of(service)
        given = top.get(key_of(service))
        count = asked.count if given is not None and asked.count is not None else service.default_count
        first = service.port if asked.port is None else asked.port
        if first == 0:
            continue
        line = _port_line(top, service)
        for port in range(first, first + count):
            if port > 65535:
                found.add(line, f"the ports of {key_of(service)} would go beyond 65535")
                break
            if port in owners:
                found.add(
                    line,
                    f"{owners[port]} and {key_of(service)} would both have port {port}: give one of them another `port`",
                )
                break
            owners[port] = key_of(service)


def _port_line(top: Mapping[str, Given], service: Service) -> int:
    given = top.get(key_of(service))
    if given is None:
        return 1
    port = given.value.get("port")
    return port.line if port is not None else given.line


def _check_topic(topic: TopicWish, count: int, found: Findings) -> None:
    if topic.replication is not None and topic.replication > count:
        there = "is 1 broker" if count == 1 else f"are {count} brokers"
        found.add(topic.line, f"topic `{topic.name}` has replication {topic.replication}, and there {there}")
    least = topic.configs.get("min.insync.replicas")
    if least is not None and topic.replication is not None and int(least) > topic.replication:
        found.add(
            topic.line,
            f"topic `{topic.name}` asks for {least} replicas in sync and has {topic.replication}: "
            "nobody could write with acks=all",
        )


def _check_collisions(topics: Sequence[TopicWish], found: Findings) -> None:
    """Metric names turn '.' into '_', so brokers refuse a second topic that differs only there."""
    unified: dict[str, str] = {}
    for topic in topics:
        other = unified.setdefault(topic.name.replace(".", "_"), topic.name)
        if other != topic.name:
            found.add(
                topic.line,
                f"topics `{other}` and `{topic.name}` differ in '.' and '_' only, which brokers refuse",
            )


def _check_schema(schema: SchemaWish, found: Findings) -> None:
    """One with references is left to the registry, which has the others."""
    if schema.references:
        return
    from penstock.schemas.parsing import check_new, parse

    try:
        check_new(parse(schema.kind, schema.text))
    except ModuleNotFoundError:
        return  # of the extra that reads it
    except InvalidSchema as error:
        first = " ".join(str(error).split())
        found.add(schema.line, f"{schema.path} is no {schema.kind} schema: {first}")


def _check_script(script: ScriptWish, found: Findings) -> None:
    try:
        from penstock.stack.contents.statements import script_problem
    except ModuleNotFoundError:
        return  # of the extra that reads it
    problem = script_problem(script.text)
    if problem is not None:
        found.add(script.line, f"{script.path}: {problem}")


def _check_security(top: Mapping[str, Given], wish: Wish, found: Findings) -> None:
    if wish.secure and spark.NAME in top:
        found.add(
            top[spark.NAME].line,
            "a Spark master asks nobody who they are, so it is no part of a secured stack: leave out `spark`",
        )
