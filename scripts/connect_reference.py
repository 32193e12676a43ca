"""The pages about Connect that scripts/generate_reference.py writes: properties of workers; connectors, transforms, predicates
and converters with their settings."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.config.option import Option
from penstock.connect import common_settings
from penstock.connect.interface import Configured, Connector
from penstock.connect.plugin_table import TABLE
from penstock.connect.plugins import SINK, SOURCE, Plugins
from penstock.connect.running.options import OWN_OPTIONS, WITHOUT_EFFECT
from penstock.connect.settings import Kind, Setting, Settings

OPTIONS_INTRO = """# Properties of Connect's workers

`penstock connect standalone` and `penstock connect distributed` take them in a file; `--set NAME=VALUE` sets one. They have
Kafka Connect's names; those that begin with `penstock.` are our own. Those of [all HTTP services](web-options.md) count, too.
[Move records between topics and other systems](../how-to/connect.md) says how to use them, and [connectors, transforms and
converters](connect-plugins.md) what connectors are configured with.

`key.converter.…`, `value.converter.…` and `header.converter.…` are settings of the converters. `producer.…`, `consumer.…` and
`admin.…` are properties of Kafka's clients; those of security and connection count for all clients also without a prefix.
`topic.creation.…` is for connectors.
"""

OPTIONS_ACCEPTED = """
## Accepted without effect

Kafka Connect has these, or those that begin so. Here they change nothing: {names}.
"""

PLUGINS_INTRO = """# Connectors, transforms and converters

What a configuration of [Connect](../how-to/connect.md) can name, and the settings of each. A class can be named in full, by its
simple name, or by that without `Connector`, `Converter` and so on. `GET /connector-plugins` lists what a worker has, also of
plugins of yours.
"""

CONNECTORS_INTRO = """
## Every connector

These can stand in the configuration of any connector. `producer.override.…`, `consumer.override.…` and `admin.override.…` are
properties of the connector's clients.
"""

SOURCES_INTRO = "\n### Every source\n"
SINKS_INTRO = "\n### Every sink\n"
TRANSFORMS_INTRO = """
## Transforms

`transforms=a,b` names them, in their order; the settings of `a` stand behind `transforms.a.`, and `transforms.a.type` is its
class. Those with `$Key` and `$Value` are for the key or the value of a record.
"""
EVERY_TRANSFORM = "\n### Every transform\n"
PREDICATES_INTRO = """
## Predicates

`predicates=p` names them, `predicates.p.type` is the class, and `transforms.a.predicate=p` uses it.
"""
CONVERTERS_INTRO = """
## Converters

`key.converter`, `value.converter` and `header.converter` name them, in the worker's file or in a connector's configuration;
their settings stand behind that name.
"""

EVERYWHERE = frozenset({"predicate", "negate", "converter.type"})
"""Settings that a section says once."""


SHARING_A_MODULE = {
    "FileStreamSourceConnector": "Each line of a file becomes a record. A line counts when its end is there.",
    "FileStreamSinkConnector": "Each record becomes a line of a file.",
    "DropHeaders": "Headers with these names are left out.",
    "InsertHeader": "A header with a fixed value is added.",
    "HasHeaderKey": "Records that have a header with this name.",
    "RecordIsTombstone": "Records without a value.",
    "TopicNameMatches": "Records of topics whose whole name matches a pattern.",
    "AvroConverter": "Avro, with schemas in a registry, as Confluent's converter.",
    "JsonSchemaConverter": "JSON with JSON Schemas in a registry, as Confluent's converter.",
    "ProtobufConverter": "Protobuf, with schemas in a registry, as Confluent's converter.",
    "BooleanConverter": "One byte: 0 or 1.",
    "ByteArrayConverter": "Bytes as they are.",
    "DoubleConverter": "A 64-bit floating-point number, in the bytes of Kafka's serializer.",
    "FloatConverter": "A 32-bit floating-point number, in the bytes of Kafka's serializer.",
    "IntegerConverter": "A 32-bit integer, in the bytes of Kafka's serializer.",
    "LongConverter": "A 64-bit integer, in the bytes of Kafka's serializer.",
    "ShortConverter": "A 16-bit integer, in the bytes of Kafka's serializer.",
    "StringConverter": "Text. Any other value is written as the text that Java prints of it.",
}
"""What a module says of all its classes together is said of each here."""


class Entry(NamedTuple):
    name: str
    others: tuple[str, ...]
    kind: type[Configured]
    has_sides: bool

    @property
    def simple(self) -> str:
        return self.name.rpartition(".")[2]


def service_cell(text: str) -> str:
    """A bar would be the end of the cell, and brackets a link."""
    return " ".join(text.split()).replace("](", "]\\(").replace("|", "\\|").replace("<", "&lt;")


def default_cell(setting: Setting) -> str:
    if setting.is_required:
        return "*required*"
    text = setting.shown(setting.default)
    if text is None or setting.kind is Kind.PASSWORD:
        return "–"
    return f"`{service_cell(text)}`" if text else "empty"


def settings_table(settings: Iterable[Setting]) -> str:
    rows = ["| Setting | Type | Default | Allowed | |", "|---|---|---|---|---|"]
    for each in settings:
        allowed = service_cell(each.check.text) if each.check is not None else ""
        rows.append(
            f"| `{each.name}` | {each.kind.name.lower()} | {default_cell(each)} | {allowed} | {service_cell(each.doc)} |"
        )
    return "\n".join(rows) + "\n"


def entries(*kinds: str) -> list[Entry]:
    """One for each class, with all names that it has."""
    names: dict[str, list[str]] = {}
    for name, kind, where, *others in TABLE:
        if kind in kinds:
            names.setdefault(_of_both_sides(where), []).extend([name, *others])
    found = []
    plugins = Plugins()
    for all_names in names.values():
        try:
            loaded = plugins.load(all_names[0], *kinds)
        except Exception as error:  # the others can be read all the same
            print(f"not in the reference: {all_names[0]}: {error}", file=sys.stderr)
            continue
        first, *others = dict.fromkeys(re.sub(r"\$(Key|Value)$", "", name) for name in all_names)
        more = [re.sub(r"\$(Key|Value)$", "", name) for name in loaded.java_names]
        others = [name for name in dict.fromkeys((*others, *more)) if name != first]
        found.append(Entry(first, tuple(others), loaded, has_sides=all_names[0].endswith("$Key")))
    return sorted(found, key=lambda entry: entry.simple.lower())


def _of_both_sides(where: str) -> str:
    """A transform of keys and of values is one."""
    return (
        re.sub(r"(?<=\w)(Key|Value)$", "", where)
        if "transforms." in where and "ValueToKey" not in where
        else where
    )


def about(kind: type[Configured]) -> str:
    """The first paragraph of a connector's module, or of the class."""
    texts = [kind.__doc__, sys.modules[kind.__module__].__doc__]
    if issubclass(kind, Connector):
        texts.reverse()
    paragraph = inspect.cleandoc(next(filter(None, texts), "")).partition("\n\n")[0]
    text = " ".join(paragraph.split()).replace("<", "&lt;").removesuffix(":")
    named, colon, rest = text.partition(": ")
    return f"{rest[0].upper()}{rest[1:]}" if colon and " " not in named and rest else text


def section(entry: Entry) -> str:
    text = f"\n### {entry.simple}\n\n`{entry.name}`{' (`$Key`, `$Value`)' if entry.has_sides else ''}"
    if entry.others:
        text += ", also " + ", ".join(f"`{name}`" for name in entry.others)
    said = SHARING_A_MODULE.get(entry.simple) or about(entry.kind)
    text += f"\n\n{said}\n" if said else "\n"
    settings = [each for each in entry.kind.settings if each.name not in EVERYWHERE]
    return text + ("\n" + settings_table(settings) if settings else "")


def sections(*kinds: str) -> str:
    return "".join(section(entry) for entry in entries(*kinds))


def plugins_page() -> str:
    return (
        PLUGINS_INTRO
        + "\n## Sources\n"
        + sections(SOURCE)
        + "\n## Sinks\n"
        + sections(SINK)
        + CONNECTORS_INTRO
        + "\n"
        + settings_table(common_settings.COMMON_SETTINGS)
        + SOURCES_INTRO
        + "\n"
        + settings_table(_own(common_settings.SOURCE_SETTINGS))
        + SINKS_INTRO
        + "\n"
        + settings_table(_own(common_settings.SINK_SETTINGS))
        + TRANSFORMS_INTRO
        + EVERY_TRANSFORM
        + "\n"
        + settings_table(common_settings.CONDITION_SETTINGS)
        + sections("transformation")
        + PREDICATES_INTRO
        + sections("predicate")
        + CONVERTERS_INTRO
        + sections("converter", "header_converter")
    )


def _own(settings: Settings) -> list[Setting]:
    return [each for each in settings if each.name not in common_settings.COMMON_SETTINGS]


def options_page(table: Callable[[Iterable[Option]], str]) -> str:
    names = ", ".join(
        f"`{name}…`" if name.endswith((".", "_")) else f"`{name}`" for name in sorted(WITHOUT_EFFECT)
    )
    return OPTIONS_INTRO + "\n" + table(OWN_OPTIONS) + OPTIONS_ACCEPTED.format(names=names)


def pages(table: Callable[[Iterable[Option]], str]) -> Mapping[str, str]:
    """By name of the file in docs/reference."""
    return {"connect-options.md": options_page(table), "connect-plugins.md": plugins_page()}
