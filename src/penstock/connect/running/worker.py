"""A worker put together: the book, the crew, who leads, the herder."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.client.errors import BadOption
from penstock.client.group_identity import Identity
from penstock.connect.plugins import EXCLUDED, plugins_of_worker
from penstock.connect.providers import Providers
from penstock.connect.running.crew import Crew
from penstock.connect.running.desk import Desk
from penstock.connect.running.herder import Herder
from penstock.connect.running.launchers import launchers_of
from penstock.connect.running.leading import Leading
from penstock.connect.running.logs import ConnectorHandler
from penstock.connect.running.options import WorkerOptions
from penstock.connect.topics.book import Book, OwnBook, SharedBook, connection_of


class Worker:
    """`open` blocks until all is read; from then on it may lead."""

    def __init__(
        self, options: WorkerOptions, me: Identity, *, on_leader: Callable[[], None] = lambda: None
    ) -> None:
        """BadOption."""
        worker = options.worker
        self._connection = connection_of(worker)
        self.options = options
        self.book: Book = OwnBook(self._connection) if options.is_standalone else SharedBook(worker)
        self.launchers = launchers_of(options)
        plugins = plugins_of_worker(worker.properties)
        if plugins.unknown_excluded:
            raise BadOption(f"{EXCLUDED}: there is no plugin {', '.join(plugins.unknown_excluded)}")
        self._desk = Desk(
            options,
            self.book,
            plugins,
            Providers.of(worker.properties),
            self.launchers,
            f"{me.host}:{me.port}",
            write=lambda records: self.herder.write(records),
            generation=lambda: self.leading.generation,
        )
        self.crew = Crew(self._desk)
        self._log_handler = ConnectorHandler(self._desk.logs)
        self.leading = Leading(self.book, self.crew, me=me, on_change=on_leader)
        self.herder = Herder(self._desk, self.leading, self.crew)

    def open(self) -> None:
        """Unreachable; UserError for topics that cannot be used."""
        logging.getLogger("penstock.connect").addHandler(self._log_handler)
        self.herder.cluster_id = self.book.open(self.herder.on_change)
        for name, level in list(self.book.configs.loggers.items()):
            self.herder.set_logger(name, level)

    def begin(self) -> None:
        if self.options.is_standalone:
            self.leading.start_alone()
        else:
            self.leading.start(self._connection, self.options.group)

    def close(self) -> None:
        self.leading.stop()
        self.book.close()
        self.launchers.close()
        logging.getLogger("penstock.connect").removeHandler(self._log_handler)

    @property
    def problem(self) -> str | None:
        return self.book.problem
