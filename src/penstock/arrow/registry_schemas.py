"""Which registry, and which schema: what the driver decides and tasks are told. Small, and without pyarrow."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from typing import Any, Final, NamedTuple

from penstock.client.errors import BadOption, UserError
from penstock.client.schema_registry import RegisteredSchema, SchemaRegistry
from penstock.schemas.model import AVRO, JSON, PROTOBUF, Referred, Schema, SchemaReference
from penstock.schemas.parsing import parse
from penstock.schemas.subject_names import TOPIC_NAME

FORMATS: Final = {"avro": AVRO, "protobuf": PROTOBUF, "json": JSON}
ANY: Final = "registry"
"""Of whatever kind the schema is."""
_FORMATS: Final = {
    AVRO: "penstock.arrow.avro_format",
    JSON: "penstock.arrow.json_format",
    PROTOBUF: "penstock.arrow.protobuf_format",
}
URL: Final = "schema.registry.url"
PREFIX: Final = "schema.registry."
PROPERTIES: Final = frozenset({"basic.auth.user.info", "basic.auth.credentials.source", "bearer.auth.token"})
"""Besides those that begin with `ssl.`; without the prefix."""
MAX_CLIENTS: Final = 16


class Registry(NamedTuple):
    """Hashable, and no more than text: so Spark carries it to tasks, and a process keeps one client of it."""

    urls: str
    properties: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Without passwords."""
        return f"Registry({_shown(self.urls)!r})"

    def client(self) -> SchemaRegistry:
        with _lock:
            found = _clients.get(self)
            if found is None:
                found = _clients[self] = self.new_client()
                while len(_clients) > MAX_CLIENTS:
                    _clients.popitem(last=False)
            return found

    def new_client(self) -> SchemaRegistry:
        """One that has kept nothing."""
        return SchemaRegistry(self.urls, dict(self.properties))


_clients: OrderedDict[Registry, SchemaRegistry] = OrderedDict()
_lock = Lock()


class SchemaText(NamedTuple):
    """A schema with all that it refers to; what others need comes before them."""

    kind: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    referred: tuple[tuple[str, Referred], ...] = ()
    """By name, with what these refer to."""
    id: int = -1
    subject: str = ""
    version: int = 0
    message: str = ""
    """Protobuf's: the full name of the one that is meant, by default the first."""

    def parsed(self) -> Schema:
        """InvalidSchema, which is a ValueError."""
        return parse(self.kind, self.text, self.references, dict(self.referred))


class WriteFormat(NamedTuple):
    """How keys or values are written. Hashable, and no more than text."""

    registry: Registry
    format: str
    is_key: bool = False
    schema: str | None = None
    subject: str | None = None
    strategy: str = TOPIC_NAME
    auto_register: bool = True
    use_latest: bool = False
    normalize: bool = False
    message: str = ""


def _shown(urls: str) -> str:
    return ",".join(url.rpartition("@")[2] for url in urls.split(","))


def registry_of(options: Mapping[str, str]) -> Registry:
    """From `schema.registry.url` and the other properties of Confluent's serializers. BadOption."""
    given = {name.lower(): value for name, value in options.items()}
    urls = given.pop(URL, "").strip()
    if not urls:
        raise BadOption(f"{URL}: it must say where the schema registry is, such as http://localhost:8081")
    properties = {}
    for name, value in sorted(given.items()):
        short = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or not (short in PROPERTIES or short.startswith("ssl.")):
            raise BadOption(f"{name}: it is no option of a schema registry's client")
        properties[short] = value
    return Registry(urls, tuple(properties.items()))


def with_references(client: SchemaRegistry, found: RegisteredSchema) -> SchemaText:
    texts = client.texts_of(found.references) if found.references else {}
    return SchemaText(
        found.kind,
        found.text,
        found.references,
        tuple(texts.items()),
        found.id,
        found.subject,
        found.version,
    )


def registered(registry: Registry, subject: str, version: int | None, value_format: str) -> SchemaText:
    """The newest one, or of a version. UserError also where it is of another kind than the format."""
    client = registry.new_client()  # a query that is planned now has what is the newest now
    found = client.latest(subject) if version is None else client.version(subject, version)
    if value_format != ANY:
        check_kind(found.kind, value_format, f"the schema of '{subject}'")
    return with_references(client, found)


def format_module(kind: str) -> Any:
    """What reads and writes values of a kind. UserError where its library is not installed."""
    try:
        return import_module(_FORMATS[kind])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("penstock"):
            raise
        raise UserError(
            f"values in {kind} need the library {error.name}: pip install 'penstock[registry]'"
        ) from None


def check_kind(kind: str, value_format: str, what: str) -> None:
    if kind != FORMATS[value_format]:
        wanted = next((name for name, each in FORMATS.items() if each == kind), kind)
        raise UserError(f"{what} is {kind}, not {FORMATS[value_format]}: the format is '{wanted}'")
