"""The engine: one state, changed by the log of commands, and what runs because of it.

    execute(text) → statement by statement: checked against the state → its topics made → appended to the log → applied →
    answered

Statements that change something are taken one after another, under a lock; questions are not. All calls block; the
server makes them in
threads.
"""

from __future__ import annotations

import logging
import re
import secrets
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.admin.cluster import Cluster
from penstock.client.clients import Connection
from penstock.client.errors import NoSuchTopic, Unreachable, UserError
from penstock.sql.analysis.legacy import LEGACY
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine import applying
from penstock.sql.engine.applying import KIND_WORDS, Change
from penstock.sql.engine.callers import Caller, Callers, acting
from penstock.sql.engine.command_log import Command, CommandLog
from penstock.sql.engine.entities import command_status
from penstock.sql.engine.inserting import Inserts
from penstock.sql.engine.kept_views import Views
from penstock.sql.engine.leading import Leading
from penstock.sql.engine.options import QUERIES_FILE, SqlOptions
from penstock.sql.engine.queries import Queries
from penstock.sql.engine.quick_lookups import QuickLookups
from penstock.sql.engine.refusals import FORBIDDEN, SqlRefused
from penstock.sql.engine.registering import ServerSchemas
from penstock.sql.engine.state import State
from penstock.sql.engine.world import World, sizes
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.plan.sources import Source

log = logging.getLogger("penstock.sql")

STATUSES_KEPT = 10_000
PRINTS = "transient_print_"
"""How ids of PRINT begin. It counts as a push query, and is not shown as one."""
RETRY_S = 1.0
"""Between two attempts to apply a command, while nobody answers."""


class Engine:
    def __init__(
        self, options: SqlOptions, schemas: ServerSchemas | None, queries: Queries, leading: Leading
    ) -> None:
        self.options = options
        self.callers = Callers(options, schemas)
        self.schemas = schemas
        self.connect = options.connect
        self.queries = queries
        self._leading = leading
        self.state = State()
        self.changing = threading.RLock()
        """Held by who changes something, from the check to the answer."""
        self.commands_known: set[str] = set()
        """The texts of all commands that were applied."""
        self.statuses: dict[str, dict[str, Any]] = {}
        self.cluster_id = ""
        self.address = ""
        """Where clients find this server: HOST:PORT."""
        self._own_directory: tempfile.TemporaryDirectory[str] | None = None
        self.views = Views(self._directory(), self.connection, schemas)
        self.quick_lookups = QuickLookups()
        self.counting = threading.Lock()
        """Held while open push queries are counted."""
        self.open_pushes: dict[str, str] = {}
        """Push queries and PRINT by their ids, with their texts."""
        self._topics: Mapping[str, tuple[int, int]] | None = None
        self._messages: dict[int, str] = {}
        self._refusals: dict[int, str] = {}
        self.log = CommandLog(
            self.connection, options.command_topic, replicas=options["ksql.internal.topic.replicas"]
        )

    def start(self) -> None:
        self.queries.prepare()
        self.cluster_id = self.cluster.brokers.describe().cluster_id or ""
        self.log.open(self.cluster)
        # Thousands of commands are read again at a start: the cluster is asked once for all of them.
        self._topics = {topic.name: sizes(topic) for topic in self.cluster.topics.describe()}
        self.log.follow(self._apply)
        self._topics = None
        self.queries.begin(self.state)
        self._leading.start(
            self.connection, lambda leads: self.queries.lead(self.state, leads), address=self.address
        )

    @property
    def connection(self) -> Connection:
        """The caller's, in a thread that works for one whose login is passed on; else the server's. So are the next two."""
        return self.caller.connection

    @property
    def cluster(self) -> Cluster:
        return self.caller.cluster

    @property
    def inserts(self) -> Inserts:
        return self.caller.inserts

    @property
    def caller(self) -> Caller:
        return acting() or self.callers.own

    def close(self) -> None:
        self.log.close()
        self.queries.close()
        self._leading.close()
        self.views.close()
        self.callers.close()
        if self._own_directory is not None:
            self._own_directory.cleanup()

    def _directory(self) -> Path:
        given = self.options["penstock.sql.data"]
        if given:
            return Path(given) / "views"
        self._own_directory = tempfile.TemporaryDirectory(prefix="penstock-sql-")
        return Path(self._own_directory.name)

    @property
    def problem(self) -> str | None:
        return self.log.problem

    def world(self, properties: Mapping[str, str]) -> World:
        return World(self.state, self.options, self.cluster, self.schemas, properties, self._topics)

    def record(
        self, command_id: str, statement: str, *, query_id: str | None, properties: Mapping[str, str]
    ) -> tuple[str, int]:
        """Appended and applied: what it did, in a sentence, and its number. StatementRefused where it could not be applied."""
        sequence = self.log.next_offset
        command = self.log.append(
            Command(command_id, statement, query_id, dict(properties)), sequence=sequence
        )
        refusal = self._refusals.pop(command.offset, None)
        if refusal is not None:
            raise StatementRefused(refusal)
        return self._messages.pop(command.offset, ""), command.offset

    def pushes(self) -> list[dict[str, Any]]:
        return [
            {
                "queryString": text,
                "sinks": [],
                "sinkKafkaTopics": [],
                "id": query_id,
                "statusCount": {"RUNNING": 1},
                "queryType": "PUSH",
                "state": "RUNNING",
            }
            for query_id, text in list(self.open_pushes.items())
            if not query_id.startswith(PRINTS)
        ]

    def transient_id(self, source: str) -> str:
        return f"transient_{source}_{secrets.randbits(63)}"

    def check_takes_changes(self, statement: str | None = None) -> None:
        """SqlRefused: a server with a file of statements runs these and no others (`headless`)."""
        if self.options[QUERIES_FILE]:
            raise SqlRefused(
                f"This server runs the statements of its file and no others ({QUERIES_FILE})",
                code=FORBIDDEN,
                statement=statement,
            )

    def terminate(self, patterns: Sequence[str]) -> str:
        """Ends all queries, and forgets all sources; the topics of those that a pattern names are deleted."""
        self.check_takes_changes()
        with self.changing:
            doomed = [
                source.topic
                for source in self.state.sources.values()
                if source.query_id is not None and any(_matches(each, source) for each in patterns)
            ]
            if self.state.queries:
                self.record("terminate/ALL/execute", "TERMINATE ALL;", query_id=None, properties={})
            for source in list(self.state.sources.values()):
                kind = KIND_WORDS[source.kind]
                name = source.name.replace("`", "``")
                text = f"DROP {kind.upper()} IF EXISTS `{name}`;"
                self.record(f"{kind}/{source.name}/drop", text, query_id=None, properties={})
            for topic in dict.fromkeys(doomed):
                try:
                    self.cluster.topics.delete(topic)
                except NoSuchTopic:
                    pass  # somebody else was as quick
        return "Queries were ended, sources were dropped."

    def next_query_number(self) -> int:
        return self.log.next_offset

    def _changed_by(self, command: Command) -> Change:
        """What raises is the command's fault. When the cluster or the registry does not answer, it is tried again, and the
        commands behind it wait: left out, its queries would not run until the next start."""
        while True:
            try:
                # What a statement means is not changed by what the server says later.
                world = self.world({LEGACY: "false", **command.properties})
                change = applying.apply(command, self.state, world)
                self.log.problem = None
                return change
            except (Unreachable, SchemasUnavailable) as error:
                reason = f"the command at offset {command.offset} waits: {error}"
                if self.log.problem != reason:
                    log.warning("%s", reason)
                self.log.problem = reason
                if self.log.has_stopped_within(RETRY_S):
                    raise

    def _apply(self, command: Command) -> None:
        try:
            change = self._changed_by(command)
        except Exception as error:
            # Whatever it is, the commands behind it count.
            if not isinstance(error, StatementRefused | SyntaxRefused | UserError | Unreachable):
                log.exception("A bug at the command at offset %d", command.offset)
            self._refusals[command.offset] = str(error)
            self._remember(command, "ERROR", str(error))
            applying.failed(command, self.state, str(error))
            return
        self._messages[command.offset] = change.message
        self.commands_known.add(command.statement)
        self._remember(command, "SUCCESS", change.message)
        self.queries.changed(self.state, change)
        self.views.forget(set(self.state.sources))

    def _remember(self, command: Command, status: str, message: str) -> None:
        self.statuses[command.id] = command_status(status, message, command.query_id)
        if len(self.statuses) > STATUSES_KEPT:
            del self.statuses[next(iter(self.statuses))]
        for kept in (self._messages, self._refusals):
            while len(kept) > STATUSES_KEPT:
                del kept[next(iter(kept))]


def _matches(pattern: str, source: Source) -> bool:
    try:
        return re.fullmatch(pattern, source.topic) is not None or pattern == source.name
    except re.error:
        return pattern == source.topic
