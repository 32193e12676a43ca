"""From the text of `penstock.yaml` to what it says. All mistakes are found before anything is started."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from penstock.client.errors import UserError, reason
from penstock.client.property_files import read_properties
from penstock.schemas.model import AVRO, JSON, PROTOBUF, SchemaReference
from penstock.stack import connect, sql_server
from penstock.stack.composition import ServiceWish, Wish
from penstock.stack.description.cross_checks import check_together
from penstock.stack.description.forms import Given, nearest
from penstock.stack.description.model import (
    ConnectorWish,
    Contents,
    Description,
    SchemaWish,
    ScriptWish,
    TopicWish,
)
from penstock.stack.description.table import key_of, root
from penstock.stack.description.yaml_tree import BadDescription, Findings, pairs_of, read_tree
from penstock.stack.stack import DEFAULT_DATA, Service

FILE_NAME = "penstock.yaml"
MAX_FILE_BYTES = 16 << 20
KINDS = {".avsc": AVRO, ".json": JSON, ".proto": PROTOBUF}
NOTHING: Mapping[str, Given] = {}


def read_description(path: Path, services: Sequence[Service]) -> Description:
    """BadDescription with every mistake; UserError where the file cannot be read."""
    tree = read_tree(path)
    found = Findings()
    if tree is None:
        raise UserError(f"{path} is empty: `brokers:` alone would be a stack of one broker")
    given = root(services).read(tree, "", found)
    top: Mapping[str, Given] = given.value if given is not None else NOTHING
    contents = Contents(
        topics=_topics(top),
        schemas=_schemas(top, path.parent, found),
        connectors=_connectors(top, path.parent, found),
        script=_script(top, path.parent, found),
    )
    wish = _wish(top, services)
    check_together(top, contents, wish, services, found)
    if found.mistakes:
        raise BadDescription(path, found.mistakes)
    return Description(
        path=path,
        name=_value(top, "name") or _name_of(path.resolve().parent),
        data=data_of(path, _value(top, "data")),
        wish=wish,
        contents=contents,
    )


def data_of(path: Path, said: str | None) -> Path:
    return path.parent / (said or DEFAULT_DATA)


def said_data(path: Path) -> Path:
    """Where the stack of the file is, whatever else may be wrong in it: so that one can be stopped whose file is half written."""
    try:
        tree = read_tree(path)
    except BadDescription as error:
        raise UserError(f"{error}\nName the stack's directory with --data") from None
    if isinstance(tree, yaml.MappingNode):
        for name, _, node in pairs_of(tree, Findings()):
            if name == "data" and isinstance(node, yaml.ScalarNode):
                return data_of(path, node.value)
    return data_of(path, None)


def _name_of(folder: Path) -> str:
    kept = "".join(letter if letter.isalnum() else "-" for letter in folder.name.lower()).strip("-")
    return kept if kept.isascii() and kept else "penstock"


def _value(section: Mapping[str, Given], name: str) -> Any:
    given = section.get(name)
    return given.value if given is not None else None


def _texts(section: Mapping[str, Given], name: str) -> dict[str, str]:
    return {each: given.value for each, given in (_value(section, name) or {}).items()}


def _wish(top: Mapping[str, Given], services: Sequence[Service]) -> Wish:
    asked = {}
    for service in services:
        given = top.get(key_of(service))
        if given is None:
            continue
        count = _value(given.value, "count")
        settings = _texts(given.value, "settings")
        asked[service.name] = ServiceWish(
            count=count if count is not None else max(1, service.default_count),
            port=_value(given.value, "port"),
            settings=tuple(f"{name}={value}" for name, value in settings.items())
            if "settings" in given.value
            else None,
        )
    return Wish(asked, _value(top, "listen"), bool(_value(top, "secure")))


def _topics(top: Mapping[str, Given]) -> tuple[TopicWish, ...]:
    return tuple(
        TopicWish(
            name,
            _value(given.value, "partitions"),
            _value(given.value, "replication"),
            _texts(given.value, "configs"),
            given.line,
        )
        for name, given in (_value(top, "topics") or {}).items()
    )


def _schemas(top: Mapping[str, Given], folder: Path, found: Findings) -> tuple[SchemaWish, ...]:
    schemas = []
    for subject, given in (_value(top, "schemas") or {}).items():
        file = given.value.get("file")
        if file is None:
            found.add(given.line, f"schema `{subject}` needs a `file`")
            continue
        path = folder / file.value
        kind = _value(given.value, "type") or KINDS.get(path.suffix)
        if kind is None:
            found.add(file.line, f"say what {file.value} is: `type: AVRO`, JSON or PROTOBUF")
            continue
        text = _read(path, file, found)
        if text is not None:
            references = tuple(_references(given.value.get("references"), found))
            compatibility = _value(given.value, "compatibility")
            schemas.append(SchemaWish(subject, kind, text, path, references, compatibility, given.line))
    return tuple(schemas)


def _references(given: Given | None, found: Findings) -> list[SchemaReference]:
    references = []
    for each in given.value if given is not None else ():
        missing = [name for name in ("name", "subject", "version") if name not in each.value]
        if missing:
            found.add(each.line, f"a reference needs `{missing[0]}`")
            continue
        references.append(
            SchemaReference(*(each.value[name].value for name in ("name", "subject", "version")))
        )
    return references


def _connectors(top: Mapping[str, Given], folder: Path, found: Findings) -> tuple[ConnectorWish, ...]:
    section = _value(top, connect.NAME) or {}
    connectors = []
    for name, given in (_value(section, "connectors") or {}).items():
        config: dict[str, str] = {}
        if (file := given.value.get("file")) is not None:
            config |= _connector_file(folder / file.value, file, name, found)
        config |= _texts(given.value, "config")
        if not given.value.keys() & {"file", "config"}:
            found.add(given.line, f"connector `{name}` needs a `config`, or a `file` that has one")
        elif not config.get("connector.class"):
            if file is None or config:
                found.add(given.line, f"connector `{name}` needs `connector.class`: what it is")
        else:
            _check_connector(name, config, given, _texts(section, "settings"), found)
        if config.get("name", name) != name:
            found.add(given.line, f"connector `{name}` is called '{config['name']}' in its configuration")
        connectors.append(ConnectorWish(name, {**config, "name": name}, given.line))
    return tuple(connectors)


def _check_connector(
    name: str, config: Mapping[str, str], given: Given, worker: Mapping[str, str], found: Findings
) -> None:
    """Each mistake at the line of its setting, where that stands in this file."""
    try:
        from penstock.stack.description.connector_checks import connector_problems

        here = _value(given.value, "config") or {}
        for setting, problem in connector_problems({**config, "name": name}, worker):
            line = here[setting].line if setting in here else given.line
            found.add(line, f"connector `{name}`: {problem}")
    except ModuleNotFoundError:
        return  # of the extra that has them


def _connector_file(path: Path, file: Given, name: str, found: Findings) -> dict[str, str]:
    """Properties, a JSON object of them, or one with `name` and `config`."""
    text = _read(path, file, found)
    if text is None:
        return {}
    if path.suffix != ".json":
        try:
            return read_properties(str(path))
        except UserError as error:
            found.add(file.line, str(error))
            return {}
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        found.add(file.line, f"{path} is no JSON: {error}")
        return {}
    inner = read.get("config", read) if isinstance(read, dict) else None
    if not isinstance(inner, dict):
        found.add(file.line, f"{path} must have an object: the configuration of connector `{name}`")
        return {}
    config = {str(key): json.dumps(one) if isinstance(one, bool) else str(one) for key, one in inner.items()}
    if read is not inner and "name" in read:
        config["name"] = str(read["name"])
    return config


def _script(top: Mapping[str, Given], folder: Path, found: Findings) -> ScriptWish | None:
    section = _value(top, sql_server.NAME) or {}
    file = section.get("script")
    if file is None:
        return None
    path = folder / file.value
    text = _read(path, file, found)
    return ScriptWish(path, text, file.line) if text is not None else None


def _read(path: Path, given: Given, found: Findings) -> str | None:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            found.add(given.line, f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
            return None
        return path.read_text()
    except UnicodeDecodeError:
        found.add(given.line, f"{path} is not UTF-8")
    except OSError as error:
        near = _similar(path)
        hint = f"; did you mean {near}?" if near is not None else ""
        found.add(given.line, f"cannot read {path}: {reason(error)}{hint}")
    return None


def _similar(path: Path) -> str | None:
    try:
        return nearest(path.name, [each.name for each in path.parent.iterdir() if each.is_file()])
    except OSError:
        return None
