"""Statements about connectors. They are Connect's, and no commands of this server: it asks, and remembers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, Final

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.connect_calls import CONNECT_URL, ConnectRefused, ConnectServer
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import Entity, entity, source_description
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.parsing import statements as st

CLASS: Final = "connector.class"
RUNNING: Final = "RUNNING"
NOT_FOUND, CONFLICT = 404, 409


def about_connectors(statement: st.Statement, engine: Engine) -> Entity:
    """SqlRefused with Connect's status and words; Unreachable."""
    if engine.connect is None:
        raise StatementRefused(
            f"No Connect is configured, so there are no connectors: {CONNECT_URL}, or --connect-url"
        )
    return _answer(statement, engine.connect, engine)


def _refused(what: str, refused: ConnectRefused) -> SqlRefused:
    return SqlRefused(f"{what}: {refused}", code=refused.status * 100)


@singledispatch
def _answer(statement: st.Statement, connect: ConnectServer, engine: Engine) -> Entity:
    raise StatementRefused(f"This server does not run statements of this kind: {statement.text}")


@_answer.register
def _(s: st.CreateConnector, connect: ConnectServer, engine: Engine) -> Entity:
    config = {name: _text(value) for name, value in s.properties if value is not None} | {"name": s.name}
    try:
        known = connect.connectors()
    except ConnectRefused as refused:
        raise _refused("Failed to check for existing connector", refused) from None
    if any(each.upper() == s.name.upper() for each in known):
        if s.if_not_exists:
            return entity("warning_entity", s.text, message=f"Connector {s.name} already exists")
        raise SqlRefused(f"Connector {s.name} already exists", code=CONFLICT * 100)
    try:
        mistakes = _mistakes(config, connect)
    except ConnectRefused as refused:
        mistakes = [str(refused)]
    if mistakes:
        raise StatementRefused("Validation error: " + "\n".join(mistakes))
    try:
        return entity("connector_info", s.text, info=connect.create(s.name, config))
    except ConnectRefused as refused:
        raise _refused("Failed to create connector", refused) from None


def _mistakes(config: Mapping[str, str], connect: ConnectServer) -> list[str]:
    if CLASS not in config:
        return [
            f"Connector config {{{', '.join(f'{k}={v}' for k, v in config.items())}}} contains no connector type"
        ]
    if not config[CLASS].strip():
        return ["Connector type cannot be empty"]
    return connect.mistakes(config)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@_answer.register
def _(s: st.DropConnector, connect: ConnectServer, engine: Engine) -> Entity:
    try:
        connect.delete(s.name)
    except ConnectRefused as refused:
        if s.if_exists and refused.status == NOT_FOUND:
            return entity("warning_entity", s.text, message=f"Connector '{s.name}' does not exist.")
        raise _refused("Failed to drop connector", refused) from None
    return entity("drop_connector", s.text, connectorName=s.name)


@_answer.register
def _(s: st.ShowConnectors, connect: ConnectServer, engine: Engine) -> Entity:
    try:
        names = connect.connectors()
    except ConnectRefused as refused:
        raise _refused("Failed to list connectors", refused) from None
    found: list[dict[str, Any]] = []
    warnings = []
    for name in names:
        try:
            info, status = connect.info(name), connect.status(name)
        except ConnectRefused as refused:
            warnings.append({"message": f"Could not describe connector {name}: {refused}"})
            if s.kind is None:
                found.append({"name": name, "type": "unknown"})
            continue
        kind = str(info.get("type", "unknown"))
        if s.kind is None or kind.upper() == s.kind:
            class_name = (info.get("config") or {}).get(CLASS)
            found.append({"name": name, "type": kind, "className": class_name, "state": _state(status)})
    return entity("connector_list", s.text, connectors=found) | {"warnings": warnings}


def _state(status: Mapping[str, Any]) -> str:
    state = str((status.get("connector") or {}).get("state"))
    if state != RUNNING:
        return state
    tasks = status.get("tasks") or []
    running = sum(each.get("state") == RUNNING for each in tasks)
    return f"{'WARNING' if tasks and not running else RUNNING} ({running}/{len(tasks)} tasks RUNNING)"


@_answer.register
def _(s: st.ShowConnectorPlugins, connect: ConnectServer, engine: Engine) -> Entity:
    try:
        plugins = connect.plugins()
    except ConnectRefused as refused:
        raise _refused("Failed to list connector plugins", refused) from None
    rows = [
        {"className": each.get("class"), "type": each.get("type"), "version": each.get("version")}
        for each in plugins
    ]
    return entity("connector_plugins_list", s.text, connectorsPlugins=rows)


@_answer.register
def _(s: st.DescribeConnector, connect: ConnectServer, engine: Engine) -> Entity:
    try:
        status = connect.status(s.name)
    except ConnectRefused as refused:
        raise _refused("Failed to query connector status", refused) from None
    try:
        info = connect.info(s.name)
    except ConnectRefused as refused:
        raise _refused("Failed to describe connector", refused) from None
    topics: list[str] = []
    warnings = []
    try:
        topics = connect.topics(s.name)
    except ConnectRefused as refused:
        if refused.status != NOT_FOUND:  # Connect of older versions has no such path
            warnings.append({"message": f"Could not list related topics due to error: {refused}"})
    sources = [
        source_description(
            each, extended=False, partitions=0, replication=0, read_queries=(), write_queries=()
        )
        for each in engine.state.sources.values()
        if each.topic in topics
    ]
    found = entity(
        "connector_description", s.text, connectorClass=(info.get("config") or {}).get(CLASS), status=status,
        sources=sources, topics=topics,
    )  # fmt: skip
    return found | {"warnings": warnings}
