"""Writes docs/reference/broker-options.md, topic-options.md and apis.md from the code's own tables.

python scripts/generate_reference.py           writes them
python scripts/generate_reference.py --check   fails where they are not what the tables say
"""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from penstock.config.broker_options import BROKER_OPTIONS  # noqa: E402
from penstock.config.option import DOUBLE_MAX, INT_MAX, LONG_MAX, Option  # noqa: E402
from penstock.config.topic_options import TOPIC_OPTIONS  # noqa: E402
from penstock.wire.apis import APIS  # noqa: E402

NOTE = "<!-- Written by scripts/generate_reference.py from the code's tables; do not edit. -->\n"

BROKER_INTRO = """# Broker options

Set them in a `server.properties` file (`penstock broker --config FILE`) or one by one (`--set name=value`).
*Live* says whether an option may change while the broker runs, with `kafka-configs --entity-type brokers`:
`cluster-wide` for all brokers at once or for one, `per-broker` for one only. Names, types, defaults and
checks are those of Apache Kafka 4.3.1; `node.id`, which Kafka requires, is 1 where it is not set.
"""

TOPIC_INTRO = """# Topic options

Set them when a topic is created (`kafka-topics --create --config name=value`) or later (`kafka-configs
--entity-type topics`). A topic that does not set one takes the broker option named beside it; of several, the
first that is set. Names, types, defaults and checks are those of Apache Kafka 4.3.1.
"""

TOPIC_ACCEPTED = """
## Accepted without effect yet

These are parsed, checked and described like the others, and change nothing so far.
"""

BROKER_ACCEPTED = (
    TOPIC_ACCEPTED
    + """
All other broker options of Kafka, those of 3.9's ZooKeeper era too, are accepted as well; the broker names
them once in its log when it starts. An option that nobody has gets a warning with the nearest known name.
"""
)


def default_cell(option: Option) -> str:
    text = option.default_text
    if text is None:
        return "–"
    if option.default in (LONG_MAX, INT_MAX, DOUBLE_MAX) and not isinstance(option.default, bool):
        return "no limit"
    return f"`{text}`" if text else "empty"


def check_cell(option: Option) -> str:
    return option.check.text.replace("|", "\\|") if option.check is not None else ""


def broker_table(options: Iterable[Option]) -> str:
    rows = ["| Option | Type | Default | Allowed | Live | |", "|---|---|---|---|---|---|"]
    rows += [
        f"| `{o.name}` | {o.kind.name.lower()} | {default_cell(o)} | {check_cell(o)} | {o.live} | {o.doc} |"
        for o in sorted(options, key=lambda option: option.name)
    ]
    return "\n".join(rows) + "\n"


def topic_table(options: Iterable[Option]) -> str:
    rows = ["| Option | Type | Default | Allowed | Broker option | |", "|---|---|---|---|---|---|"]
    for o in options:
        synonyms = ", ".join(f"`{name}`" for name, _ in o.synonyms)
        kind = o.kind.name.lower()
        rows.append(f"| `{o.name}` | {kind} | {default_cell(o)} | {check_cell(o)} | {synonyms} | {o.doc} |")
    return "\n".join(rows) + "\n"


APIS_INTRO = """# APIs and versions

What the broker answers to ApiVersions, from `src/penstock/wire/apis.py`; each API has a handler of its own in
`src/penstock/broker/handlers/`. Versions are those of Apache Kafka 4.3.1; the rows marked *between brokers* are those
of 3.9, with which they ended, and only brokers of a cluster offer and take them. A request of another version, or of an API
that is not in the table, closes the connection, except ApiVersions itself, which is answered with
UNSUPPORTED_VERSION and this table.
"""


def apis_table() -> str:
    rows = ["| Key | API | Versions | |", "|---|---|---|---|"]
    for key, api in sorted(APIS.items()):
        source = (ROOT / "src/penstock/broker/handlers" / f"{api.name}.py").read_text(encoding="utf-8")
        doc = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
        _, _, about = doc.partition(": ")
        name = "".join(word.capitalize() for word in api.name.split("_"))
        note = "*Between brokers:* " if api.between_brokers else ""
        rows.append(f"| {key} | {name} | {api.min_version}–{api.max_version} | {note}{about} |")
    return "\n".join(rows) + "\n"


def pages() -> dict[Path, str]:
    broker, topic = list(BROKER_OPTIONS.values()), list(TOPIC_OPTIONS.values())
    reference = ROOT / "docs" / "reference"
    return {
        reference / "apis.md": NOTE + APIS_INTRO + "\n" + apis_table(),
        reference / "broker-options.md": NOTE
        + BROKER_INTRO
        + "\n"
        + broker_table(o for o in broker if o.honoured)
        + BROKER_ACCEPTED
        + "\n"
        + broker_table(o for o in broker if not o.honoured),
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
