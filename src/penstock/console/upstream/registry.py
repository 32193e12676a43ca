"""What the schema screens ask of a registry: ours, Confluent's or another one with its API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from penstock.client.errors import Refused, Unreachable
from penstock.client.schema_registry import RegistryRefused, SchemaRegistry, quoted
from penstock.console.messages.decode import Registry
from penstock.console.upstream.asking import TIMEOUT_S
from penstock.schemas.model import SchemaReference

KINDS: Final = ("AVRO", "JSON", "PROTOBUF")
LEVELS: Final = (
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE",
)  # fmt: skip
MODES: Final = ("READWRITE", "READONLY", "IMPORT")
ROWS_AT_ONCE: Final = 8
_NO_CONFIG: Final = (40401, 40408, 40409)


class Candidate(NamedTuple):
    """A schema that is to be checked or registered."""

    text: str
    kind: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()

    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            found["schemaType"] = self.kind
        if self.references:
            found["references"] = [each._asdict() for each in self.references]
        return found


class SubjectVersion(NamedTuple):
    subject: str
    version: int
    id: int
    kind: str
    text: str
    references: tuple[SchemaReference, ...]


class SubjectRow(NamedTuple):
    """A subject in the list. `problem`: why its newest version is not known."""

    subject: str
    version: int = 0
    id: int = 0
    kind: str = ""
    versions: int = 0
    problem: str = ""


class SubjectState(NamedTuple):
    """All about a subject but its schemas."""

    versions: tuple[int, ...]
    deleted_versions: tuple[int, ...]
    """Those that were deleted softly."""
    level: str
    """The compatibility that counts for it."""
    has_own_level: bool
    mode: str


class Check(NamedTuple):
    is_compatible: bool
    messages: tuple[str, ...]


class RegistryServer:
    """Safe to share between threads; calls block for no longer than the deadline of a question, or a few of them."""

    def __init__(self, url: str, properties: Mapping[str, str] | None = None) -> None:
        self._registry = SchemaRegistry(url, properties, timeout_s=TIMEOUT_S)
        self.values = Registry(self._registry)
        """For those who read keys and values with its schemas."""

    def subjects(self, *, deleted: bool = False) -> list[str]:
        query = {"deleted": "true"} if deleted else None
        return sorted(str(each) for each in self._registry.ask("GET", "/subjects", query=query, form=list))

    def rows(self, subjects: Sequence[str]) -> list[SubjectRow]:
        """The newest version of each, in their order: of one page of the list, asked side by side."""
        if not subjects:
            return []
        with ThreadPoolExecutor(min(ROWS_AT_ONCE, len(subjects))) as pool:
            return list(pool.map(self._row, subjects))

    def state(self, subject: str) -> SubjectState:
        live = tuple(self._versions(subject))
        every = tuple(self._versions(subject, deleted=True))
        if not every:
            raise RegistryRefused(f"Subject '{subject}' not found.", status=404, code=40401)
        level, has_own = self._level(subject)
        mode = self._registry.ask("GET", f"/mode/{quoted(subject)}", query={"defaultToGlobal": "true"})[
            "mode"
        ]
        return SubjectState(live, tuple(sorted(set(every) - set(live))), level, has_own, str(mode))

    def version(self, subject: str, version: int) -> SubjectVersion:
        """Also one that was deleted softly."""
        return self._version(subject, str(version), {"deleted": "true"})

    def referenced_by(self, subject: str, version: int) -> list[tuple[str, int]]:
        """Subjects and versions that refer to it."""
        path = f"/subjects/{quoted(subject)}/versions/{version}/referencedby"
        found: list[tuple[str, int]] = []
        for schema_id in self._registry.ask("GET", path, form=list):
            for each in self._registry.ask("GET", f"/schemas/ids/{int(schema_id)}/versions", form=list):
                found.append((str(each["subject"]), int(each["version"])))
        return sorted(set(found))

    def global_level(self) -> str:
        return str(self._registry.ask("GET", "/config")["compatibilityLevel"])

    def check(self, subject: str, candidate: Candidate) -> Check:
        """Whether it could be registered now. What is no schema at all is `Refused`."""
        path = f"/compatibility/subjects/{quoted(subject)}/versions"
        try:
            said = self._registry.ask("POST", path, candidate.body(), {"verbose": "true"})
        except RegistryRefused as error:
            if error.code == 40401:  # some registries know no check of a subject that is not there yet
                return Check(True, ())
            raise
        messages = tuple(str(each) for each in said.get("messages") or ())
        return Check(bool(said.get("is_compatible")), messages)

    # ------------------------------------------------------------------ changes

    def register(self, subject: str, candidate: Candidate) -> int:
        """The schema's id."""
        return int(
            self._registry.ask("POST", f"/subjects/{quoted(subject)}/versions", candidate.body())["id"]
        )

    def set_level(self, subject: str | None, level: str) -> None:
        """None: of all subjects without one of their own."""
        self._registry.ask("PUT", _config_of(subject), {"compatibility": level})

    def remove_level(self, subject: str) -> None:
        self._registry.ask("DELETE", _config_of(subject))

    def set_mode(self, subject: str, mode: str) -> None:
        self._registry.ask("PUT", f"/mode/{quoted(subject)}", {"mode": mode})

    def delete_subject(self, subject: str, *, permanent: bool) -> None:
        self._registry.ask("DELETE", f"/subjects/{quoted(subject)}", query=_permanent(permanent), form=list)

    def delete_version(self, subject: str, version: int, *, permanent: bool) -> None:
        path = f"/subjects/{quoted(subject)}/versions/{version}"
        self._registry.ask("DELETE", path, query=_permanent(permanent), form=int)

    # ------------------------------------------------------------------ parts

    def _row(self, subject: str) -> SubjectRow:
        try:
            newest = self._version(subject, "latest")
            return SubjectRow(subject, newest.version, newest.id, newest.kind, len(self._versions(subject)))
        except RegistryRefused as error:
            if error.code in (40401, 40402):
                return SubjectRow(subject)  # all versions are deleted
            return SubjectRow(subject, problem=str(error))
        except (Refused, Unreachable) as error:
            return SubjectRow(subject, problem=str(error))

    def _versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        query = {"deleted": "true"} if deleted else None
        found: list[int] = self._unless(
            (40401,),
            lambda: [
                int(each)
                for each in self._registry.ask(
                    "GET", f"/subjects/{quoted(subject)}/versions", query=query, form=list
                )
            ],
            [],
        )
        return found

    def _version(self, subject: str, version: str, query: Mapping[str, str] | None = None) -> SubjectVersion:
        said = self._registry.ask("GET", f"/subjects/{quoted(subject)}/versions/{version}", query=query)
        references = tuple(
            SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in said.get("references") or ()
        )
        kind = str(said.get("schemaType") or "AVRO")
        return SubjectVersion(
            str(said["subject"]), int(said["version"]), int(said["id"]), kind, str(said["schema"]), references
        )

    def _level(self, subject: str) -> tuple[str, bool]:
        own = self._unless(
            _NO_CONFIG, lambda: self._registry.ask("GET", _config_of(subject))["compatibilityLevel"], None
        )
        return (str(own), True) if own else (self.global_level(), False)

    def _unless(self, codes: Sequence[int], ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except RegistryRefused as error:
            if error.code in codes:
                return otherwise
            raise


def _config_of(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{quoted(subject)}"


def _permanent(permanent: bool) -> Mapping[str, str] | None:
    return {"permanent": "true"} if permanent else None
