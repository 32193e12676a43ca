"""Writes the pages of options and APIs in docs/reference from the code's own tables.

python scripts/generate_reference.py           writes them
python scripts/generate_reference.py --check   fails where they are not what the tables say
"""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import connect_reference  # noqa: E402

from penstock.config.broker_options import BROKER_OPTIONS  # noqa: E402
from penstock.config.option import DOUBLE_MAX, INT_MAX, LONG_MAX, Option  # noqa: E402
from penstock.config.topic_options import SCHEMA_OPTIONS, TOPIC_OPTIONS  # noqa: E402
from penstock.registry.options import OWN_OPTIONS as REGISTRY_OPTIONS  # noqa: E402
from penstock.registry.options import WITHOUT_EFFECT  # noqa: E402
from penstock.rest.options import REST_OPTIONS  # noqa: E402
from penstock.sql.engine.options import SQL_OPTIONS  # noqa: E402
from penstock.web.options import WEB_OPTIONS  # noqa: E402
from penstock.wire.apis import APIS, Api  # noqa: E402

NOTE = "<!-- Written by scripts/generate_reference.py from the code's tables; do not edit. -->\n"

BROKER_INTRO = """# Broker options

Set them in a `server.properties` file (`penstock broker --config FILE`) or one by one (`--set name=value`).

*Live* says whether an option can change while the broker runs, with `kafka-configs --entity-type brokers`. `cluster-wide`:
for all brokers together or for one. `per-broker`: for one broker only. `read-only`: change the file and restart the broker.

Names, types, defaults and allowed values are those of Apache Kafka 4.3.1. `node.id`, which Kafka requires, is 1 by default.
Options that begin with `penstock.` are our own; those that begin with `confluent.` are of Confluent's brokers.
"""

TOPIC_INTRO = """# Topic options

Set them when you create a topic (`kafka-topics --create --config name=value`) or later (`kafka-configs
--entity-type topics`). A topic without a value of its own uses the broker option in the same row. Where the row names several,
the first one that is set counts. Names, types, defaults and allowed values are those of Apache Kafka 4.3.1; options that begin
with `confluent.` are of Confluent's brokers.
"""

TOPIC_ACCEPTED = """
## Accepted without effect

These options are parsed, checked and described like the others, but they change nothing yet.
"""

BROKER_ACCEPTED = (
    TOPIC_ACCEPTED
    + """
All other broker options of Apache Kafka are accepted too, also those that only Kafka 3.9 with ZooKeeper has. The broker names
them once in its log when it starts. For an option that does not exist it logs a warning with the most similar name.
"""
)


WEB_INTRO = """# Properties of the HTTP services

Every HTTP service takes these in the file of `--config`, beside its own. Names are Confluent's where Confluent has one; those
that begin with `penstock.` are our own. A name that nobody knows is told at the start, with the nearest one that there is.
"""

REGISTRY_INTRO = """# Properties of the schema registry

Set them in a file: `penstock registry --config schema-registry.properties`. Those of [all HTTP services](web-options.md) count,
too. What begins with `kafkastore.` and has the name of a property of Kafka's clients behind it (`kafkastore.security.protocol`,
`kafkastore.sasl.…`, `kafkastore.ssl.…`) goes to the client that reads and writes the topic.
[Run a schema registry](../how-to/schema-registry.md) says how to use it.
"""

REGISTRY_ACCEPTED = """
## Accepted without effect

Confluent's registry has these. Here they change nothing: {names}.
"""

REST_INTRO = """# Properties of the REST proxy

Set them in a file: `penstock rest --config kafka-rest.properties`. Those of [all HTTP services](web-options.md) count, too. What
begins with `client.` goes to all clients of the proxy, `producer.`, `consumer.` and `admin.` to those of one kind:
`producer.linger.ms`, `client.sasl.jaas.config`. `schema.registry.…` is for the client of the schema registry.
[Reach topics over HTTP](../how-to/rest-proxy.md) says how to use it.
"""

SQL_INTRO = """# Properties of the SQL server

`penstock sql-server --config ksql-server.properties` takes these, by ksqlDB's names where ksqlDB has one, and the
[properties that all HTTP services have](web-options.md). Those of clients, such as a login, stand beside them, with or without
`ksql.streams.` in front.
"""
REST_ACCEPTED = """
## Accepted without effect

Confluent's proxy has these. Here they change nothing: {names}.
"""


def default_cell(option: Option) -> str:
    text = option.default_text
    if text is None:
        return "–"
    if option.default in (LONG_MAX, INT_MAX, DOUBLE_MAX) and not isinstance(option.default, bool):
        return "no limit"
    return f"`{text}`" if text else "empty"


def check_cell(option: Option) -> str:
    return option.check.text.replace("|", "\\|") if option.check is not None else ""


def doc_cell(option: Option) -> str:
    """`[n:format](pattern)` would be a link, and a bar the end of the cell."""
    return option.doc.replace("](", "]\\(").replace("|", "\\|")


def broker_table(options: Iterable[Option]) -> str:
    rows = ["| Option | Type | Default | Allowed | Live | |", "|---|---|---|---|---|---|"]
    rows += [
        f"| `{o.name}` | {o.kind.name.lower()} | {default_cell(o)} | {check_cell(o)} | {o.live} | {doc_cell(o)} |"
        for o in sorted(options, key=lambda option: option.name)
    ]
    return "\n".join(rows) + "\n"


def topic_table(options: Iterable[Option]) -> str:
    rows = ["| Option | Type | Default | Allowed | Broker option | |", "|---|---|---|---|---|---|"]
    for o in options:
        synonyms = ", ".join(f"`{name}`" for name, _ in o.synonyms)
        kind = o.kind.name.lower()
        rows.append(
            f"| `{o.name}` | {kind} | {default_cell(o)} | {check_cell(o)} | {synonyms} | {doc_cell(o)} |"
        )
    return "\n".join(rows) + "\n"


def service_table(options: Iterable[Option]) -> str:
    rows = ["| Property | Type | Default | Allowed | |", "|---|---|---|---|---|"]
    rows += [
        f"| `{o.name}` | {o.kind.name.lower()} | {default_cell(o)} | {check_cell(o)} | {doc_cell(o)} |"
        for o in options
    ]
    return "\n".join(rows) + "\n"


APIS_INTRO = """# APIs and versions

These are the APIs of Kafka's protocol that the broker answers, with their versions. `kafka-broker-api-versions` asks a running
broker for the same list. Versions are those of Apache Kafka 4.3.1. The last column says what Apache Kafka does and Penstock does
not.

The broker closes the connection when a request has another version, or an API that is not in the table. ApiVersions
is the exception: the broker answers UNSUPPORTED_VERSION with this table, so that the client can choose a version that both know.
"""

BROKER_APIS_INTRO = """
## Between brokers

Brokers of a cluster send each other these requests. Versions are those of Apache Kafka 3.9, the last release that has them. A
broker without ZooKeeper does not offer them.
"""

NOT_THERE_INTRO = """
## Not there yet

The broker does not answer these: share groups, streams groups, and what only KRaft needs (votes, snapshots, broker
registration).
"""

HANDLERS = ROOT / "src" / "penstock" / "broker" / "handlers"
NOTHING = "nothing that Kafka documents."


def api_row(key: int, api: Api) -> str:
    """From the handler's docstring: `API 0 Produce, versions 3–13: Append …`, and its last paragraph, `Not done: …`."""
    name = "".join(word.capitalize() for word in api.name.split("_"))
    source = (HANDLERS / f"{api.name}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    versions = f"{api.min_version}–{api.max_version}" if api.max_version else f"{api.max_version}"
    word = "versions" if api.max_version > api.min_version else "version"
    beginning = f"API {key} {name}, {word} {versions}: "
    about, _, _ = docstring.partition("\n\n")
    about = " ".join(about.split())
    _, _, missing = docstring.rpartition("Not done: ")
    if not about.startswith(beginning) or "Not done: " not in docstring:
        raise SystemExit(f"handlers/{api.name}.py: begin with {beginning!r} and end with 'Not done: …'")
    missing = " ".join(missing.split())
    missing = "" if missing == NOTHING else missing[0].upper() + missing[1:]
    return f"| {key} | {name} | {versions} | {about.removeprefix(beginning)} | {missing} |"


def apis_table(*, between_brokers: bool) -> str:
    rows = ["| Key | API | Versions | What it does | Not there |", "|---|---|---|---|---|"]
    rows += [api_row(key, api) for key, api in sorted(APIS.items()) if api.between_brokers == between_brokers]
    return "\n".join(rows) + "\n"


def pages() -> dict[Path, str]:
    broker, topic = list(BROKER_OPTIONS.values()), [*TOPIC_OPTIONS.values(), *SCHEMA_OPTIONS.values()]
    reference = ROOT / "docs" / "reference"
    return {
        reference / "apis.md": NOTE
        + APIS_INTRO
        + "\n"
        + apis_table(between_brokers=False)
        + BROKER_APIS_INTRO
        + "\n"
        + apis_table(between_brokers=True)
        + NOT_THERE_INTRO,
        reference / "broker-options.md": NOTE
        + BROKER_INTRO
        + "\n"
        + broker_table(o for o in broker if o.honoured)
        + BROKER_ACCEPTED
        + "\n"
        + broker_table(o for o in broker if not o.honoured),
        reference / "web-options.md": NOTE + WEB_INTRO + "\n" + service_table(WEB_OPTIONS),
        reference / "registry-options.md": NOTE
        + REGISTRY_INTRO
        + "\n"
        + service_table(REGISTRY_OPTIONS)
        + REGISTRY_ACCEPTED.format(names=", ".join(f"`{name}`" for name in sorted(WITHOUT_EFFECT))),
        reference / "rest-options.md": NOTE
        + REST_INTRO
        + "\n"
        + service_table(o for o in REST_OPTIONS if o.honoured)
        + REST_ACCEPTED.format(
            names=", ".join(sorted(f"`{o.name}`" for o in REST_OPTIONS if not o.honoured))
        ),
        reference / "sql-options.md": NOTE + SQL_INTRO + "\n" + service_table(SQL_OPTIONS),
        **{reference / name: NOTE + text for name, text in connect_reference.pages(service_table).items()},
        reference / "topic-options.md": NOTE
        + TOPIC_INTRO
        + "\n"
        + topic_table(o for o in topic if o.honoured)
        + TOPIC_ACCEPTED
        + "\n"
        + topic_table(o for o in topic if not o.honoured),
    }


def main(arguments: list[str]) -> int:
    stale = 0
    for path, text in pages().items():
        name = path.relative_to(ROOT)
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{name} is not up to date; run: python scripts/generate_reference.py", file=sys.stderr)
                stale = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
