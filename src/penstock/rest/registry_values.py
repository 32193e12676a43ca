"""Keys and values with schemas of a schema registry: written by a schema that the request names, read by the id in the record.

`client.schema_values` does the work. What was found once is kept here by what requests say, so the usual record asks nobody and
needs no thread. The registry is asked in threads of its own: one that is slow holds up only who needs it.

Where logins are passed on, the registry gets that of who asks, too, and what one may see is kept for that one only.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from penstock.client.errors import BadOption, Unreachable
from penstock.client.schema_registry import RegistryRefused, SchemaRegistry
from penstock.client.schema_values import ReadSchema, SchemaChoice, ValueReader, ValueWriter
from penstock.rest import errors
from penstock.rest.callers import Caller
from penstock.rest.options import RestOptions
from penstock.rest.values import AVRO, JSONSCHEMA, PROTOBUF, Read, Write
from penstock.schemas.framing import framed
from penstock.schemas.model import AVRO as AVRO_KIND
from penstock.schemas.model import JSON as JSON_KIND
from penstock.schemas.model import PROTOBUF as PROTOBUF_KIND
from penstock.schemas.model import InvalidSchema, InvalidValue
from penstock.schemas.subject_names import TOPIC_NAME, strategy_of, subject_of
from penstock.web.errors import HttpError

KIND_OF: Final = {AVRO: AVRO_KIND, JSONSCHEMA: JSON_KIND, PROTOBUF: PROTOBUF_KIND}
FORMAT_OF: Final = {kind: format_ for format_, kind in KIND_OF.items()}
THREADS: Final = 8
MAX_KEPT: Final = 2000
LATEST_KEPT_S: Final = 60.0
FOREVER: Final = float("inf")


class SchemaSpec(NamedTuple):
    """What a request says about the schema of its keys or values."""

    format: str | None = None
    """AVRO, JSONSCHEMA or PROTOBUF; None where the registry says it."""
    text: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    subject: str | None = None
    strategy: str | None = None

    @property
    def is_latest(self) -> bool:
        return self.text is None and self.schema_id is None and self.schema_version is None


class Resolved(NamedTuple):
    schema_id: int
    subject: str
    version: int | None
    format: str
    write: Write


class Registries:
    """The registry as the proxy itself sees it, and as each of its callers does. BadOption where the options cannot be used."""

    def __init__(self, options: RestOptions) -> None:
        self._urls: str = options["schema.registry.url"]
        self._properties = options.registry
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="rest-registry")
        self.own = self._seen_with({}) if self._urls else None
        self._passes_on = options.passes_logins_on and not self._has_own_login() and self._keeps_secrets()

    def of(self, caller: Caller) -> RegistryValues | None:
        return self._seen_with(caller.registry) if self._urls and self._passes_on else self.own

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _seen_with(self, login: Mapping[str, str]) -> RegistryValues:
        return RegistryValues(self._urls, {**self._properties, **login}, self._threads)

    def _has_own_login(self) -> bool:
        given = (name.removeprefix("schema.registry.") for name, value in self._properties.items() if value)
        return "@" in self._urls or not _OWN_LOGIN.isdisjoint(given)

    def _keeps_secrets(self) -> bool:
        """Nobody's password goes over a network as it is."""
        parts = [urlsplit(url.strip()) for url in self._urls.split(",")]
        return all(one.scheme == "https" or one.hostname in _LOOPBACK for one in parts)


_OWN_LOGIN: Final = frozenset(
    {"basic.auth.user.info", "bearer.auth.token", "ssl.keystore.location", "ssl.keystore.key"}
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class RegistryValues:
    """Used by the loop's thread, but for what `reader` returns: that is for threads."""

    def __init__(self, urls: str, properties: Mapping[str, str], threads: ThreadPoolExecutor) -> None:
        self._registry = SchemaRegistry(urls, properties)
        self._values = ValueReader(self._registry)
        self._threads = threads
        self._kept: OrderedDict[tuple[str, SchemaSpec, bool], tuple[Resolved, float]] = OrderedDict()

    async def resolved(self, topic: str, spec: SchemaSpec, *, is_key: bool) -> Resolved:
        """The schema, registered where the request brings its text. HttpError where there is none."""
        key = (topic, spec, is_key)
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() < kept[1]:
            return kept[0]
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, self._resolved, topic, spec, is_key)
        self._kept[key] = (found, time.monotonic() + LATEST_KEPT_S if spec.is_latest else FOREVER)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return found

    def reader(self, format_: str) -> Read:
        """Reads values of that format. ValueError where one cannot be read, HttpError where the registry is away."""
        wanted = KIND_OF[format_]

        def read(data: bytes | None) -> Any:
            if data is None:
                return None
            try:
                value, found = self._values.read(data)
            except InvalidSchema as error:
                raise InvalidValue(f"its schema cannot be used: {error}") from None
            except RegistryRefused as error:
                if error.status == 404:
                    raise InvalidValue(f"the registry does not have its schema: {error}") from None
                raise _not_for_caller(error) or _away(error) from None
            except Unreachable as error:
                raise _away(error) from None
            if found.schema.kind != wanted:
                raise InvalidValue(f"its schema {found.id} is {found.schema.kind}, not {wanted}")
            return value

        return read

    def _resolved(self, topic: str, spec: SchemaSpec, is_key: bool) -> Resolved:
        """In a thread."""
        if spec.text is not None and spec.format not in KIND_OF:
            raise errors.bad_request("'schema' needs a 'type': AVRO, JSONSCHEMA or PROTOBUF")
        try:
            choice = SchemaChoice(
                kind=KIND_OF.get(spec.format or "", AVRO_KIND),
                text=spec.text,
                id=spec.schema_id,
                version=spec.schema_version,
                subject=spec.subject,
                strategy=spec.strategy or TOPIC_NAME,
            )
            found = ValueWriter(self._registry, topic, choice, is_key=is_key).schema()
            subject = spec.subject or subject_of(
                topic,
                is_key=is_key,
                strategy=strategy_of(choice.strategy),
                full_name=lambda: found.schema.full_name,
            )
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None
        except RegistryRefused as error:
            raise _not_for_caller(error) or errors.serialization_failed(
                f"The schema registry refused: {error}"
            ) from None
        except Unreachable as error:
            raise _away(error) from None
        except (BadOption, ValueError) as error:
            raise errors.bad_request(str(error)) from None
        format_ = FORMAT_OF[found.schema.kind]
        if spec.format is not None and spec.format != format_:
            raise errors.invalid_schema(f"schema {found.id} is {found.schema.kind}, not {spec.format}")
        return Resolved(found.id, subject, spec.schema_version, format_, _write(found))


def _write(schema: ReadSchema) -> Write:
    def write(data: Any) -> bytes | None:
        if data is None:
            return None
        try:
            return framed(schema.id, schema.codec.encode(data))
        except InvalidValue as error:
            raise errors.conversion_failed(str(error)) from None

    return write


def _not_for_caller(error: RegistryRefused) -> HttpError | None:
    """401 and 403 of the registry: with logins that are passed on, it is the caller that may not."""
    if error.status in (401, 403):
        return errors.not_allowed(f"The schema registry refused: {error}")
    return None


def _away(error: Unreachable | RegistryRefused) -> HttpError:
    return HttpError(408, str(error), error_code=40801)
