"""The schema registry as a broker asks it: under which subjects a schema is registered. Calls block: for a thread.

Our client library has a whole client, but brokers stand below it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.broker.schemas.checks import Registered, RegistryAway, SchemaName
from penstock.config.layers import BrokerConfig
from penstock.config.option import ConfigError
from penstock.credentials.http import NoRedirects, reason_of
from penstock.security.key_stores import BadStore, certificates

TIMEOUT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 16 << 20
MAX_REFERENCES: Final = 1000
DEFAULT_CONTEXT: Final = "."
TRUST: Final = "confluent.ssl.truststore.location"
TRUST_PASSWORD: Final = "confluent.ssl.truststore.password"


class Registry(NamedTuple):
    addresses: tuple[str, ...]
    authorization: str
    opener: urllib.request.OpenerDirector

    @classmethod
    def of(cls, config: BrokerConfig) -> Registry:
        """ConfigError for an address that is none, and for a store that cannot be read."""
        given = config.get("confluent.schema.registry.url")
        addresses = tuple(url.strip().rstrip("/") for url in given.split(",") if url.strip())
        for address in addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
                raise ConfigError(
                    "confluent.schema.registry.url: it is not an address such as http://localhost:8081 "
                    "(the login goes into confluent.basic.auth.user.info)"
                )
        token, login = config.get("confluent.bearer.auth.token"), config.get("confluent.basic.auth.user.info")
        authorization = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        opener = urllib.request.build_opener(
            NoRedirects, urllib.request.HTTPSHandler(context=_trusting(config))
        )
        return cls(addresses, f"Bearer {token}" if token else authorization, opener)

    def registered(self, schema: SchemaName, needs_name: bool) -> Registered:
        """No subjects: there is no such schema. RegistryAway."""
        schema_id = self._id_of_guid(schema) if isinstance(schema, UUID) else schema
        if schema_id is None:
            return Registered(frozenset())
        versions = self._ask(f"/schemas/ids/{schema_id}/versions")
        if versions is None:
            return Registered(frozenset())
        try:
            subjects = frozenset(str(each["subject"]) for each in versions)
        except (TypeError, KeyError):
            raise RegistryAway("the schema registry does not answer as one") from None
        return Registered(subjects, self._full_name(schema_id) if needs_name and subjects else None)

    def _id_of_guid(self, guid: UUID) -> int | None:
        """In the default context, which topics' subjects are in."""
        found = self._ask(f"/schemas/guids/{guid}/ids")
        try:
            return next((int(each["id"]) for each in found or () if each["context"] == DEFAULT_CONTEXT), None)
        except (TypeError, KeyError, ValueError):
            raise RegistryAway("the schema registry does not answer as one") from None

    def _full_name(self, schema_id: int) -> str | None:
        from penstock.schemas.model import InvalidSchema, Referred
        from penstock.schemas.parsing import parse

        found = self._ask(f"/schemas/ids/{schema_id}")
        try:
            texts: dict[str, Referred] = {}
            self._collect(found, texts)
            references = _references(found)
            return parse(found.get("schemaType") or "AVRO", found["schema"], references, texts).full_name
        except (InvalidSchema, TypeError, KeyError, AttributeError):
            return None

    def _collect(self, schema: Any, texts: dict[str, Any]) -> None:
        """What a schema refers to, and what that refers to, by name."""
        from penstock.schemas.model import Referred

        for name, subject, version in _references(schema):
            if name in texts or len(texts) >= MAX_REFERENCES:
                continue
            found = self._ask(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}")
            texts[name] = Referred(found["schema"], _references(found))
            self._collect(found, texts)

    def _ask(self, path: str) -> Any:
        """What the first address says that answers; None where there is no such thing."""
        failure = ""
        for address in self.addresses:
            headers = {"Accept": "application/json"}
            if self.authorization:
                headers["Authorization"] = self.authorization
            try:
                request = urllib.request.Request(address + path, headers=headers)
                with self.opener.open(request, timeout=TIMEOUT_S) as answer:
                    return json.loads(answer.read(MAX_ANSWER_BYTES))
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404:
                        return None
                failure = f"the schema registry at {address} answers {error.code} {error.reason}"
            except (OSError, http.client.HTTPException) as error:
                failure = f"cannot reach the schema registry at {address}: {reason_of(error)}"
            except ValueError:
                failure = f"{address} does not answer with JSON"
        raise RegistryAway(failure)


def _trusting(config: BrokerConfig) -> ssl.SSLContext:
    store = config.get(TRUST)
    try:
        trusted = certificates(
            TRUST, store, password_option=TRUST_PASSWORD, password=config.get(TRUST_PASSWORD)
        ) if store else None  # fmt: skip
        return ssl.create_default_context(cadata=trusted)
    except BadStore as error:
        raise ConfigError(str(error)) from None
    except ssl.SSLError as error:
        raise ConfigError(f"{TRUST}: holds no certificates: {error.reason}") from None


def _references(schema: Any) -> tuple[Any, ...]:
    from penstock.schemas.model import SchemaReference

    return tuple(
        SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
        for each in schema.get("references") or ()
    )
