"""All of a description's contents, in the order in which one thing needs another: topics, schemas, statements, connectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from penstock.admin import Cluster
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.stack.contents.doors import Doors
from penstock.stack.contents.made import Made
from penstock.stack.contents.outcome import Outcome, Told
from penstock.stack.description.model import Description


class Applying:
    """Topics can be applied when brokers are up, before other services: those may need them."""

    def __init__(
        self, description: Description, doors: Callable[[], Doors], *, told: Told, check: bool = False
    ) -> None:
        """`doors` are asked for when brokers are up: a secured stack has no login before."""
        self._file = description.path
        self._contents = description.contents
        self._ask_doors = doors
        self._check = check
        self.outcome = Outcome(told)

    @cached_property
    def _doors(self) -> Doors:
        return self._ask_doors()

    def topics(self) -> None:
        if not self._contents.topics:
            return

        def apply() -> None:
            from penstock.stack.contents.topics import apply_topics

            with Cluster.over(self._doors.connection) as cluster:
                apply_topics(cluster, self._contents.topics, self._file, self.outcome, check=self._check)

        self._attempt("topics", apply)

    def services(self) -> None:
        """What is in the registry, in Connect, and in the SQL server."""
        contents, doors = self._contents, self._doors
        if contents.schemas and self._is_there(doors.registry_url, "schemas", "a schema registry"):
            self._attempt("schemas", self._schemas)
        if contents.script is not None and self._is_there(doors.sql_url, "the script", "a SQL server"):
            self._attempt("the script", self._script)
        if contents.connectors and self._is_there(doors.connect_url, "connectors", "Connect"):
            self._attempt("connectors", self._connectors)

    def _schemas(self) -> None:
        from penstock.stack.contents.schemas import apply_schemas

        apply_schemas(
            self._doors.registry(), self._contents.schemas, self._file, self.outcome, check=self._check
        )

    def _script(self) -> None:
        from penstock.stack.contents.statements import apply_script

        assert self._contents.script is not None
        apply_script(self._doors.sql(), self._contents.script, self.outcome, check=self._check)

    def _connectors(self) -> None:
        from penstock.stack.contents.connectors import apply_connectors

        apply_connectors(
            self._doors.workers(), self._contents.connectors, self._file, self.outcome, check=self._check
        )

    def gone(self, made: Made) -> Made:
        """Tells what an earlier description had, this one has not, and is still there: that, and what this one has."""
        contents = self._contents
        topics = made.topics - {one.name for one in contents.topics}
        schemas = made.schemas - {one.subject for one in contents.schemas}
        connectors = made.connectors - {one.name for one in contents.connectors}
        left = Made(
            self._still("topic", topics, self._topics_there, "penstock topics delete {}"),
            self._still("schema", schemas, self._subjects_there, "DELETE /subjects/{} of the registry"),
            self._still("connector", connectors, self._connectors_there, "penstock connectors delete {}"),
        )
        return left.union(contents)

    def _still(
        self, what: str, names: frozenset[str], there: Callable[[], set[str]], removal: str
    ) -> frozenset[str]:
        if not names:
            return frozenset()
        try:
            found = names & there()
        except (Unreachable, Refused, UserError):
            return names  # nobody knows: told another time
        for name in sorted(found):
            self.outcome.say_differs(
                f"{what} {name} is in {self._file.name} no more, and stays: {removal.format(name)} removes it"
            )
        return frozenset(found)

    def _topics_there(self) -> set[str]:
        with Cluster.over(self._doors.connection) as cluster:
            return {one.name for one in cluster.topics.list()}

    def _subjects_there(self) -> set[str]:
        return set(self._doors.registry().subjects()) if self._doors.registry_url is not None else set()

    def _connectors_there(self) -> set[str]:
        if self._doors.connect_url is None:
            return set()
        return set(map(str, self._doors.workers().get("/connectors")))

    def _is_there(self, url: str | None, what: str, service: str) -> bool:
        if url is None:
            self.outcome.say_failed(
                f"{self._file.name} has {what}, and there is no {service.partition(' ')[2] or service} to bring them to"
            )
        return url is not None

    def _attempt(self, what: str, apply: Callable[[], None]) -> None:
        try:
            apply()
        except (Unreachable, Refused, UserError) as error:
            self.outcome.say_failed(f"{what}: {error}")


def told_end(outcome: Outcome, file: Path) -> str:
    """`12 of penstock.yaml were as they shall be, 3 were made or changed, 1 differs`"""
    parts = [f"{len(outcome.done)} made or changed"]
    if outcome.as_wished:
        parts.insert(0, f"{outcome.as_wished} as they shall be")
    if outcome.differs:
        parts.append(f"{len(outcome.differs)} different, and left alone")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    return f"What {file.name} says: {', '.join(parts)}"
