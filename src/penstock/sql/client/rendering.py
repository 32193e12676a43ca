"""What the server said, as lines for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.sql.client.tables import table

Document = Mapping[str, Any]
WORDS = {"STRING": "VARCHAR(STRING)", "INT": "INTEGER"}


def type_text(schema: Document) -> str:
    kind = str(schema.get("type", ""))
    if kind == "ARRAY":
        return f"ARRAY<{type_text(schema['memberSchema'])}>"
    if kind == "MAP":
        key = schema.get("keySchema") or {"type": "STRING"}
        return f"MAP<{key.get('type', 'STRING')}, {type_text(schema['memberSchema'])}>"
    if kind == "STRUCT":
        inner = ", ".join(f"{one['name']} {type_text(one['schema'])}" for one in schema.get("fields") or ())
        return f"STRUCT<{inner}>"
    if kind == "DECIMAL":
        about = schema.get("parameters") or {}
        return f"DECIMAL({about.get('precision')}, {about.get('scale')})"
    return WORDS.get(kind, kind)


def lines_of(entity: Document) -> list[str]:
    show = _SHOWN.get(str(entity.get("@type", "")))
    lines = _other(entity) if show is None else show(entity)
    for warning in entity.get("warnings") or ():
        lines.append(f"WARNING: {warning.get('message', warning) if isinstance(warning, dict) else warning}")
    return lines


def _other(entity: Document) -> list[str]:
    hidden = ("@type", "statementText", "warnings")
    return [f"{name}: {value}" for name, value in entity.items() if name not in hidden]


def _status(entity: Document) -> list[str]:
    return table(["Message"], [[(entity.get("commandStatus") or {}).get("message", "")]])


def _sources(kind: str, field: str) -> Callable[[Document], list[str]]:
    def show(entity: Document) -> list[str]:
        rows = [
            [
                one["name"], one["topic"], one.get("keyFormat", "KAFKA"), one.get("valueFormat", one.get("format")),
                one.get("isWindowed", False),
            ]
            for one in entity[field]
        ]  # fmt: skip
        return table([f"{kind} Name", "Kafka Topic", "Key Format", "Value Format", "Windowed"], rows)

    return show


def _topics(entity: Document) -> list[str]:
    heads = ["Kafka Topic", "Partitions", "Partition Replicas"]
    is_extended = any("consumerCount" in one for one in entity["topics"])
    rows = []
    for one in entity["topics"]:
        replicas = one["replicaInfo"]
        told = replicas[0] if len(set(replicas)) == 1 else ", ".join(map(str, replicas))
        row = [one["name"], len(replicas), told]
        rows.append([*row, one["consumerCount"], one["consumerGroupCount"]] if is_extended else row)
    return table([*heads, "Consumers", "ConsumerGroups"] if is_extended else heads, rows)


def _queries(entity: Document) -> list[str]:
    rows = [
        [
            one["id"], one["queryType"], ",".join(f"{name}:{count}" for name, count in one["statusCount"].items()),
            ",".join(one["sinks"]), ",".join(one["sinkKafkaTopics"]), " ".join(one["queryString"].split()),
        ]
        for one in entity["queries"]
    ]  # fmt: skip
    heads = ["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"]
    return table(heads, rows, ["For detailed information on a Query run: EXPLAIN <Query ID>;"])


def _fields(fields: list[Document], *, is_table: bool) -> list[str]:
    key = "(primary key)" if is_table else "(key)"
    rows = []
    for one in fields:
        note = {"KEY": f" {key}", "HEADER": " (header)"}.get(str(one.get("type")), "")
        if one.get("headerKey"):
            note = f" (header('{one['headerKey']}'))"
        rows.append([one["name"], type_text(one["schema"]) + (f" {note}" if note else "")])
    return table(["Field", "Type"], rows)


def _described(source: Document) -> list[str]:
    is_table = source["type"] == "TABLE"
    if not source.get("extended"):
        return [
            "",
            f"{'Name':<20} : {source['name']}",
            *_fields(source["fields"], is_table=is_table)[1:],
            "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;",
        ]
    topic = f"{source['topic']} (partitions: {source['partitions']}, replication: {source['replication']})"
    about = {
        "Name": source["name"], "Type": source["type"], "Timestamp field": source["timestamp"] or "Not set - using <ROWTIME>",
        "Key format": source["keyFormat"], "Value format": source["valueFormat"], "Kafka topic": topic,
        "Statement": source["statement"],
    }  # fmt: skip
    lines = ["", *(f"{name:<20} : {value}" for name, value in about.items())]
    lines += _fields(source["fields"], is_table=is_table)
    if source.get("sourceConstraints"):
        lines += _under("Sources that have a DROP constraint on this source", source["sourceConstraints"])
    for verb, queries in (("read", source["readQueries"]), ("write", source["writeQueries"])):
        if queries:
            told = [
                f"{one['id']} ({one['state']}) : {' '.join(one['queryString'].split())}" for one in queries
            ]
            lines += _under(f"Queries that {verb} from this {source['type']}", told)
            lines += ["", "For query topology and execution plan please run: EXPLAIN <QueryId>"]
    for group in source.get("queryOffsetSummaries") or ():
        lines += ["", "Consumer Groups summary:", "", f"{'Consumer Group':<20} : {group['groupId']}"]
        if not group["topicSummaries"]:
            lines.append("<no offsets committed by this group yet>")
        for one in group["topicSummaries"]:
            lags = [each["logEndOffset"] - each["consumerOffset"] for each in one["offsets"]]
            lines += [
                "",
                f"{'Kafka topic':<20} : {one['kafkaTopic']}",
                f"{'Max lag':<20} : {max(lags, default=0)}",
            ]
            rows = [
                [
                    each["partition"],
                    each.get("logStartOffset", 0),
                    each["logEndOffset"],
                    each["consumerOffset"],
                    lag,
                ]
                for each, lag in zip(one["offsets"], lags, strict=True)
            ]
            lines += table(["Partition", "Start Offset", "End Offset", "Offset", "Lag"], rows)
    return lines


def _under(title: str, lines: list[str]) -> list[str]:
    return ["", title, "-" * len(title), *lines]


def _query_description(query: Document) -> list[str]:
    lines = [""]
    for name, value in (
        ("ID", query["id"]),
        ("Query Type", query["queryType"]),
        ("SQL", query["statementText"]),
    ):
        lines.append(f"{name:<20} : {value}")
    if query.get("tier"):
        lines.append(f"{'Tier':<20} : {query['tier']}: {query['tierReason']}")
    if query.get("ksqlHostQueryStatus"):
        told = ", ".join(f"{host}={state}" for host, state in query["ksqlHostQueryStatus"].items())
        lines.append(f"{'Host Query Status':<20} : {{{told}}}")
    lines += _fields(query["fields"], is_table=False)
    for title, names in (("Sources that this query reads from: ", query["sources"]),
                         ("Sinks that this query writes to: ", query["sinks"])):  # fmt: skip
        if names:
            lines += _under(title, list(names))
    for title, told in (
        ("Execution plan", query["executionPlan"]),
        ("Processing topology", query["topology"]),
    ):
        if told:
            lines += _under(title, told.split("\n"))
    if query.get("overriddenProperties"):
        lines += ["", "Overridden Properties", "-" * 21]
        lines += table(["Property", "Value"], sorted(query["overriddenProperties"].items()))[1:]
    for error in query.get("queryErrors") or ():
        lines += [
            "",
            f"{'Error Details':<20} : {error['errorMessage']}",
            f"{'Error Type':<20} : {error['type']}",
        ]
    return lines


def _properties(entity: Document) -> list[str]:
    overwritten = set(entity.get("overwrittenProperties") or ())
    rows = [
        [
            one["name"],
            one.get("scope", "KSQL"),
            "SESSION" if one["name"] in overwritten else "SERVER",
            one.get("value"),
        ]
        for one in sorted(entity["properties"], key=lambda one: str(one["name"]))
    ]
    return table(["Property", "Scope", "Default override", "Effective Value"], rows)


def _function(entity: Document) -> list[str]:
    lines = ["", f"{'Name':<12}: {entity['name']}"]
    for name, field in (("Author", "author"), ("Version", "version")):
        if entity.get(field):
            lines.append(f"{name:<12}: {entity[field]}")
    lines += [
        f"{'Overview':<12}: {entity.get('description', '')}",
        f"{'Type':<12}: {entity['type']}",
        "Variations  : ",
    ]
    for one in entity["functions"]:
        told = ", ".join(
            f"{each['name']} {each['type']}{'[]' if each.get('isVariadic') else ''}"
            for each in one["arguments"]
        )
        lines += ["", f"\tVariation   : {entity['name']}({told})", f"\tReturns     : {one['returnType']}"]
        if one.get("description"):
            lines.append(f"\tDescription : {one['description']}")
    return lines


def _connector(entity: Document) -> list[str]:
    status = entity["status"]
    connector = status["connector"]
    lines = [
        "",
        f"{'Name':<20} : {status['name']}",
        f"{'Class':<20} : {entity.get('connectorClass')}",
        f"{'Type':<20} : {status.get('type')}",
        f"{'State':<20} : {connector['state']}",
        f"{'WorkerId':<20} : {connector.get('worker_id', '')}",
    ]
    if connector.get("trace"):
        lines.append(f"{'Trace':<20} : {connector['trace']}")
    tasks = [[one["id"], one["state"], one.get("trace") or ""] for one in status.get("tasks") or ()]
    lines += table(["Task ID", "State", "Error Trace"], tasks)
    if entity.get("sources"):
        rows = [[one["name"], one["topic"], one["type"]] for one in entity["sources"]]
        lines += table(["KSQL Source Name", "Kafka Topic", "Type"], rows)
    if entity.get("topics"):
        lines += table(["Related Topics"], [[each] for each in entity["topics"]])
    return lines


def _exists(entity: Document) -> str:
    return "exists" if entity["exists"] else "does not exist"


def _schema_words(entity: Document) -> str:
    words = (("subject name", entity.get("subject")), ("id", entity.get("id")))
    return " ".join(f"{name} {value}" for name, value in words if value is not None)


_SHOWN: dict[str, Callable[[Document], list[str]]] = {
    "currentStatus": _status,
    "streams": _sources("Stream", "streams"),
    "tables": _sources("Table", "tables"),
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics,
    "queries": _queries,
    "properties": _properties,
    "sourceDescription": lambda entity: _described(entity["sourceDescription"]),
    "source_descriptions": lambda entity: [
        line for one in entity["sourceDescriptions"] for line in _described(one)
    ],
    "queryDescription": lambda entity: _query_description(entity["queryDescription"]),
    "queryDescriptions": lambda entity: [
        line for one in entity["queryDescriptions"] for line in _query_description(one)
    ],
    "function_names": lambda entity: table(
        ["Function Name", "Category"], [[one["name"], one.get("category", "")] for one in entity["functions"]]
    ),
    "describe_function": _function,
    "connector_info": lambda entity: table(["Message"], [[f"Created connector {entity['info']['name']}"]]),
    "connector_list": lambda entity: table(
        ["Connector Name", "Type", "Class", "Status"],
        [
            [
                one["name"],
                str(one.get("type") or "UNKNOWN").upper(),
                one.get("className") or "",
                one.get("state") or "",
            ]
            for one in entity["connectors"]
        ],
    ),
    "connector_plugins_list": lambda entity: table(
        ["Class", "Type", "Version"],
        [
            [one["className"], str(one["type"] or "").upper(), one["version"] or ""]
            for one in entity["connectorsPlugins"]
        ],
    ),
    "connector_description": _connector,
    "drop_connector": lambda entity: table(["Message"], [[f'Dropped connector "{entity["connectorName"]}"']]),
    "type_list": lambda entity: table(
        ["Type Name", "Schema"], [[name, type_text(one)] for name, one in entity["types"].items()]
    ),
    "variables": lambda entity: table(
        ["Variable Name", "Value"], [[one["name"], one["value"]] for one in entity["variables"]]
    ),
    "assert_topic": lambda entity: [f"Topic {entity['topicName']} {_exists(entity)}."],
    "assert_schema": lambda entity: [f"Schema with {_schema_words(entity)} {_exists(entity)}."],
    "warning_entity": lambda entity: table(["Message"], [[entity["message"]]]),
}
