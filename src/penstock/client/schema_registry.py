"""A schema registry, asked over HTTP: ours, Confluent's or another one with its API.

What is asked for by id never changes, so it is kept. The newest version of a subject may change, so it is kept for a while only.
Calls block: a service with an event loop makes them in a thread. `SchemaRegistry` may be shared between threads.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.client.errors import BadOption, Refused, Unreachable, one_line
from penstock.client.kept import Kept
from penstock.client.security import security_of
from penstock.credentials.http import NoRedirects, reason_of
from penstock.schemas.model import Referred, SchemaReference

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
REQUEST_TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 16 << 20
LATEST_KEPT_S: Final = 60.0
"""How long the newest version of a subject is taken for the newest. Confluent's clients ask once and never again."""
MAX_REFERENCE_DEPTH: Final = 100

_URL: Final = "schema.registry.url"
_PREFIX: Final = "schema.registry."
_USER_INFO: Final = "basic.auth.user.info"
_SOURCE: Final = "basic.auth.credentials.source"
_BEARER: Final = "bearer.auth.token"


class RegisteredSchema(NamedTuple):
    id: int
    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[SchemaReference, ...] = ()
    subject: str = ""
    version: int = 0


class RegistryRefused(Refused):
    """The registry answered with an error. `code` is its `error_code`, such as 40403."""

    def __init__(self, detail: str, *, status: int, code: int) -> None:
        super().__init__(detail, code=code)
        self.status = status


class SchemaRegistry:
    """`urls`: one address, or several with commas, which are tried in turn. `properties`: those of Confluent's serializers."""

    def __init__(
        self,
        urls: str,
        properties: Mapping[str, str] | None = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        given = {name.removeprefix(_PREFIX): value for name, value in (properties or {}).items()}
        self._addresses, user_info = _addresses(urls)
        self._authorization = _authorization(given, user_info)
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(
            NoRedirects, urllib.request.HTTPSHandler(context=_tls_context(given))
        )
        self._by_id = Kept[RegisteredSchema]()
        self._by_guid = Kept[RegisteredSchema]()
        self._by_version = Kept[RegisteredSchema]()
        self._latest = Kept[RegisteredSchema](LATEST_KEPT_S)
        self._ids = Kept[int]()

    def by_id(self, schema_id: int, subject: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            query = {"subject": subject} if subject else {}
            return _schema(self.ask("GET", f"/schemas/ids/{schema_id}", query=query), schema_id)

        return self._by_id.get((schema_id, subject), ask)

    def by_guid(self, guid: UUID) -> RegisteredSchema:
        """Its id is 0 where the registry does not say one: an id is one registry's, a GUID is everyone's."""
        return self._by_guid.get(guid, lambda: _schema(self.ask("GET", f"/schemas/guids/{guid}"), 0))

    def version(self, subject: str, version: int) -> RegisteredSchema:
        return self._by_version.get((subject, version), lambda: self._of(subject, str(version)))

    def latest(self, subject: str) -> RegisteredSchema:
        return self._latest.get(subject, lambda: self._of(subject, "latest"))

    def register(
        self,
        subject: str,
        text: str,
        kind: str = "AVRO",
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> int:
        """The schema's id. It is the same one when the schema is registered already."""
        return self._id_of(
            "register", f"/subjects/{quoted(subject)}/versions", text, kind, references, normalize
        )

    def lookup(
        self,
        subject: str,
        text: str,
        kind: str = "AVRO",
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> int:
        """The id of a schema that the subject has; RegistryRefused with 40403 when it has not."""
        return self._id_of("lookup", f"/subjects/{quoted(subject)}", text, kind, references, normalize)

    def subjects(self, prefix: str = "") -> list[str]:
        query = {"subjectPrefix": prefix} if prefix else None
        return [str(each) for each in self.ask("GET", "/subjects", query=query, form=list)]

    def versions(self, subject: str) -> list[int]:
        return [int(each) for each in self.ask("GET", f"/subjects/{quoted(subject)}/versions", form=list)]

    def texts_of(self, references: Sequence[SchemaReference]) -> dict[str, Referred]:
        """The schemas that are referred to, and those that they refer to, by name: as `schemas.parsing` takes them, what others
        need before them."""
        texts: dict[str, Referred] = {}
        self._collect(references, texts, depth=0)
        return texts

    def _collect(self, references: Sequence[SchemaReference], texts: dict[str, Referred], depth: int) -> None:
        if depth > MAX_REFERENCE_DEPTH:
            raise RegistryRefused("the schema's references go around in a circle", status=422, code=42201)
        for name, subject, version in references:
            if name not in texts:
                found = self.version(subject, version)
                self._collect(found.references, texts, depth + 1)
                texts[name] = Referred(found.text, found.references)

    def _of(self, subject: str, version: str) -> RegisteredSchema:
        return _schema(self.ask("GET", f"/subjects/{quoted(subject)}/versions/{version}"))

    def _id_of(
        self,
        what: str,
        path: str,
        text: str,
        kind: str,
        references: Sequence[SchemaReference],
        normalize: bool,
    ) -> int:
        def ask() -> int:
            body: dict[str, Any] = {"schema": text}
            if kind != "AVRO":
                body["schemaType"] = kind
            if references:
                body["references"] = [each._asdict() for each in references]
            answer = self.ask("POST", path, body, {"normalize": "true"} if normalize else {})
            return int(answer["id"])

        return self._ids.get((what, path, text, kind, tuple(references), normalize), ask)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        form: type = dict,
    ) -> Any:
        """What the registry says, asked anew each time. `form` is what a registry answers here."""
        suffix = path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        failure = ""
        for address in self._addresses:
            request = urllib.request.Request(
                address + suffix,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Accept": CONTENT_TYPE, "Content-Type": CONTENT_TYPE, **self._authorization},
                method=method,
            )
            try:
                with self._opener.open(request, timeout=self._timeout_s) as answer:
                    said = json.loads(answer.read(MAX_ANSWER_BYTES))
                if isinstance(said, form):
                    return said
                failure = f"{address}{path} does not answer as a schema registry does"
            except urllib.error.HTTPError as error:
                with error:
                    refusal = _refusal(error, address)
                if refusal.status < 500:
                    raise refusal from None
                failure = str(refusal)
            except (OSError, http.client.HTTPException) as error:
                failure = f"cannot reach the schema registry at {address}: {reason_of(error)}"
            except ValueError:
                failure = f"{address}{path} does not answer with JSON"
        raise Unreachable(f"{failure} ({_URL})")


def quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _schema(said: Mapping[str, Any], schema_id: int | None = None) -> RegisteredSchema:
    references = tuple(
        SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
        for each in said.get("references") or ()
    )
    return RegisteredSchema(
        int(said["id"]) if schema_id is None else schema_id,
        str(said.get("schemaType") or "AVRO"),
        str(said["schema"]),
        references,
        str(said.get("subject") or ""),
        int(said.get("version") or 0),
    )


def _refusal(error: urllib.error.HTTPError, address: str) -> RegistryRefused:
    code, detail = error.code, f"the schema registry at {address} answers {error.code} {error.reason}"
    try:
        said = json.loads(error.read(MAX_ANSWER_BYTES))
        code, detail = int(said["error_code"]), one_line(said["message"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        pass  # a proxy before it answered, in words of its own
    if error.code in (401, 403):
        detail = f"{detail} ({_PREFIX}{_USER_INFO} or {_PREFIX}{_BEARER})"
    return RegistryRefused(detail, status=error.code, code=code)


def _addresses(urls: str) -> tuple[list[str], str]:
    """The addresses without what they say of a login, and that."""
    addresses, user_info = [], ""
    for url in urls.split(","):
        parts = urllib.parse.urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadOption(
                f"{_URL}: '{_without_login(url)}' is not an address such as http://localhost:8081"
            )
        login, _, place = parts.netloc.rpartition("@")
        user_info = user_info or urllib.parse.unquote(login)
        addresses.append(urllib.parse.urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", "")))
    return addresses, user_info


def _without_login(url: str) -> str:
    return url.strip().rpartition("@")[2]


def _authorization(given: Mapping[str, str], of_url: str) -> dict[str, str]:
    source = given.get(_SOURCE, "USER_INFO" if given.get(_USER_INFO) else "URL").upper()
    if given.get(_BEARER):
        return {"Authorization": f"Bearer {given[_BEARER]}"}
    if source not in ("URL", "USER_INFO"):
        raise BadOption(f"{_PREFIX}{_SOURCE}: '{source}' is not URL or USER_INFO")
    user_info = given.get(_USER_INFO, "") if source == "USER_INFO" else of_url
    if not user_info:
        return {}
    if ":" not in user_info:
        raise BadOption(f"{_PREFIX}{_USER_INFO}: it is not NAME:PASSWORD")
    return {"Authorization": f"Basic {base64.b64encode(user_info.encode()).decode()}"}


def _tls_context(given: Mapping[str, str]) -> ssl.SSLContext:
    stores = {name: value for name, value in given.items() if name.startswith("ssl.")}
    return security_of({"security.protocol": "SSL", **stores}).tls_context
