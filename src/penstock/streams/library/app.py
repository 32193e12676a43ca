"""The program as a whole: what it reads is declared here, and it is run, tested, explained and asked here."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from penstock.streams.library.driver import TestDriver, view_of
from penstock.streams.library.explaining import explained
from penstock.streams.library.failures import TopologyError, unknown
from penstock.streams.library.program import FORMATS, Program, columns_of, schema_of, timestamp_of
from penstock.streams.library.stores import StoreView
from penstock.streams.library.stream import Stream
from penstock.streams.library.table import GlobalTable, Table
from penstock.streams.plan import nodes
from penstock.streams.plan import types as t
from penstock.streams.plan.nodes import STREAM, TABLE
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Source, SourceKind, Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.streams.running.following import Followers
    from penstock.streams.running.query import RunningQuery

GUARANTEES: Final = ("at_least_once", "exactly_once")
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,150}")
_OF_REGISTRY: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
_HEADERS: Final = t.array(t.struct(("KEY", t.STRING), ("VALUE", t.BYTES)))


class App:
    """`name` is the application id: the group, and the beginning of the names of internal topics. `guarantee` is at_least_once or
    exactly_once. `dead_letters` is a topic for records that cannot be read or processed (without one they are counted and left
    out); with `fails_on_bad_records` they hold the program. `properties` are Kafka Streams' and those of its clients, and
    of the registry's (`schema.registry.ssl.…`, `basic.auth.…`)."""

    def __init__(
        self,
        name: str,
        *,
        bootstrap: str = "localhost:9092",
        registry: str | None = None,
        properties: Mapping[str, Any] | None = None,
        guarantee: str | None = None,
        dead_letters: str | None = None,
        fails_on_bad_records: bool = False,
        key_format: str = "JSON",
        value_format: str = "JSON",
    ) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise TopologyError(
                f"the name of an app begins the names of topics: letters, digits, dots, underscores and hyphens, not {name!r}"
            )
        if guarantee is not None and guarantee not in (*GUARANTEES, "exactly_once_v2"):
            raise unknown("guarantee", guarantee, GUARANTEES)
        self.name, self.bootstrap = name, bootstrap
        self._registry, self._dead_letters = registry, dead_letters
        self._guarantee, self._fails = guarantee, fails_on_bad_records
        given = {key: _text(value) for key, value in (properties or {}).items()}
        self._registry_properties = {
            key: value for key, value in given.items() if key.startswith(_OF_REGISTRY)
        }
        self._properties = {key: given[key] for key in given if key not in self._registry_properties}
        for each in (key_format, value_format):
            if each.upper() not in FORMATS:
                raise unknown("format", each, FORMATS)
        self._program = Program(
            name,
            Format(key_format.upper()),
            Format(value_format.upper()),
            registry is not None,
            {key: value for key, value in self._properties.items() if key.startswith("ksql.functions.")},
        )
        self._query: RunningQuery | None = None
        self._followers: Followers | None = None
        self._stop = threading.Event()

    def __repr__(self) -> str:
        return f"<App {self.name}>"

    # ---------------------------------------------------------------- topics

    def stream(
        self,
        topic: str,
        *,
        key: Any = None,
        value: Any,
        key_format: str | Format | None = None,
        value_format: str | Format | None = None,
        timestamp: Any = None,
        headers: Mapping[str, str | None] | None = None,
        window: Window | None = None,
    ) -> Stream:
        """A topic whose records are rows, each for itself. `key` and `value` are columns with their types, as
        `{"page": str, "ms": int}`, or one type. `timestamp`: the column that is the time of a row. `headers`: columns
        of bytes from the
        record's headers, by the header's key; None stands for all of them. `window`: the windows of the topic's keys."""
        return Stream(
            self._program,
            node := self._read(
                topic,
                STREAM,
                "KSTREAM-SOURCE",
                key,
                value,
                key_format,
                value_format,
                timestamp,
                headers,
                window,
            ),
            node.source.formats.key,
        )

    def table(
        self,
        topic: str,
        *,
        key: Any,
        value: Any,
        key_format: str | Format | None = None,
        value_format: str | Format | None = None,
        timestamp: Any = None,
        window: Window | None = None,
        store: str | None = None,
    ) -> Table:
        """A topic whose newest record of a key counts; one without a value deletes the key. `store`: a name under
        which its rows can be
        asked."""
        node = self._read(
            topic, TABLE, "KTABLE-SOURCE", key, value, key_format, value_format, timestamp, None, window
        )
        table = Table(self._program, node, node.source.formats.key)
        return table if store is None else table.materialize(store)

    def global_table(
        self,
        topic: str,
        *,
        key: Any,
        value: Any,
        key_format: str | Format | None = None,
        value_format: str | Format | None = None,
    ) -> GlobalTable:
        """A table that every task has whole, for joins by any column."""
        return GlobalTable(
            self._program,
            self._read(
                topic, TABLE, "GLOBAL-KTABLE-SOURCE", key, value, key_format, value_format, None, None, None
            ),
        )

    def _read(
        self,
        topic: str,
        kind: SourceKind,
        word: str,
        key: Any,
        value: Any,
        key_format: str | Format | None,
        value_format: str | Format | None,
        timestamp: Any,
        headers: Mapping[str, str | None] | None,
        window: Window | None,
    ) -> nodes.Read:
        if not isinstance(topic, str) or not topic:
            raise TopologyError(f"the name of a topic is a text, not {topic!r}")
        keys = columns_of(key, is_key=True)
        if kind is TABLE and not keys:
            raise TopologyError(f"a table has a key: app.table('{topic}', key=str, …)")
        program = self._program
        formats = program.formats(schema_of(keys, columns_of(value, is_key=False)), key_format, value_format)
        from_headers = dict(headers or {})
        columns = tuple(
            Column(name, _HEADERS if wanted is None else t.BYTES) for name, wanted in from_headers.items()
        )
        schema = schema_of(keys, (*columns_of(value, is_key=False), *columns), from_headers.items())
        source = Source(
            topic, kind, topic, schema, formats, timestamp=timestamp_of(timestamp, schema), window=window
        )
        self._check_same(source)
        program.sources.setdefault(topic, []).append(source)
        return program.add(
            nodes.Read(name=program.next_name(word), schema=schema, kind=kind, window=window, source=source)
        )

    def _check_same(self, source: Source) -> None:
        for other in self._program.sources.get(source.topic, ()):
            if other.formats != source.formats or _types(other.schema) != _types(source.schema):
                raise TopologyError(
                    f"the topic {source.topic} is declared already with other columns or formats: {other.schema}"
                )

    # ---------------------------------------------------------------- looking

    def explain(self, form: str = "text") -> str:
        """As "text", which says where functions of the program stand; as a "drawing" (Mermaid); as a "topology", in
        the form of Kafka
        Streams' description."""
        return explained(self._program, form, self._guarantee or "at_least_once")

    def test(self, *, partitions: int | Mapping[str, int] = 1) -> TestDriver:
        """The program in this process, without brokers."""
        return TestDriver(self._program, partitions=partitions)

    def store(self, name: str) -> StoreView:
        """The rows of a table that has this store's name, from a view in this process that follows the store's topic: also
        where the program does not run. Where a view cannot be had, the tasks are asked, if they run here."""
        from penstock.streams.library.running import QueryStores, ViewsOrTasks
        from penstock.streams.running.following import Followers
        from penstock.streams.running.options import run_options

        plan = self._program.plan()
        if self._followers is None:
            options = run_options(self.name, self.bootstrap, self._properties, guarantee=self._guarantee)
            self._followers = Followers(plan, options, self._lookup())
        tasks = QueryStores(self._running)
        return view_of(
            self._program, name, plan, ViewsOrTasks(self._followers, tasks, lambda: self._query is not None)
        )

    # ---------------------------------------------------------------- running

    def start(
        self,
        *,
        master: str | None = None,
        spark: SparkSession | None = None,
        launcher: Any = None,
        parallelism: int | None = None,
    ) -> RunningQuery:
        """Starts it and comes back: its state, lag, counters, errors and troubles are those of what is given back. Topics that it
        writes are made where they are not there. `master` is Spark's (`local[*]`, `spark://…`); `spark` is a session
        of one's own."""
        from penstock.spark.tasks.states import FINAL
        from penstock.streams.library.running import make_sinks
        from penstock.streams.running.options import run_options
        from penstock.streams.running.query import RunningQuery

        if self._query is not None and self._query.state not in FINAL:
            raise RuntimeError(f"{self.name} runs already")
        plan = self._program.plan()
        options = run_options(self.name, self.bootstrap, self._properties, guarantee=self._guarantee)
        make_sinks(self.bootstrap, dict(options.security), plan)
        if spark is None and launcher is None:
            from penstock.spark.session import DEFAULT_MASTER, session

            spark = session(self.name, master or DEFAULT_MASTER, long_tasks=True)
        self._stop.clear()
        self._query = RunningQuery.start(
            plan,
            self.name,
            bootstrap=self.bootstrap,
            properties=self._properties,
            spark=spark,
            launcher=launcher,
            parallelism=parallelism,
            guarantee=self._guarantee,
            registry=self._lookup(),
            dead_letters=self._dead_letters,
            fails_on_bad_records=self._fails,
        )
        return self._query

    def run(
        self,
        *,
        master: str | None = None,
        spark: SparkSession | None = None,
        launcher: Any = None,
        parallelism: int | None = None,
    ) -> None:
        """Runs until Ctrl-C, SIGTERM or `stop()` from another thread, with a line of progress on a terminal."""
        from penstock.streams.library.running import watch

        watch(
            self.start(master=master, spark=spark, launcher=launcher, parallelism=parallelism),
            stop=self._stop,
        )

    def stop(self) -> None:
        """Lets it commit and end, and the views of its stores. These begin anew when they are asked again."""
        self._stop.set()
        if self._query is not None:
            self._query.stop()
        self._forget_views()

    def reset(self) -> list[str]:
        """Deletes its internal topics and its group's offsets, for good: it begins anew. What topics there were. It
        must not run."""
        from penstock.admin import Cluster
        from penstock.spark.tasks.states import FINAL
        from penstock.streams.running import topics
        from penstock.streams.running.options import run_options

        if self._query is not None and self._query.state not in FINAL:
            raise RuntimeError(f"{self.name} runs: stop it first")
        options = run_options(self.name, self.bootstrap, self._properties, guarantee=self._guarantee)
        self._forget_views()
        with Cluster(self.bootstrap, options.security) as cluster:
            return topics.remove(cluster, self.name)

    def _forget_views(self) -> None:
        followers, self._followers = self._followers, None
        if followers is not None:
            followers.close()

    def _lookup(self) -> Callable[[], Any] | None:
        """Makes the client of the schema registry, in each task."""
        from penstock.streams.schema_lookup import ClientLookup

        if self._registry is None:
            return None
        return partial(ClientLookup, self._registry, self._registry_properties)

    def _running(self) -> RunningQuery:
        if self._query is None:
            raise RuntimeError(
                f"{self.name} does not run here: start() or run() it, or ask the store of app.test()"
            )
        return self._query


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _types(schema: Schema) -> list[tuple[str, t.SqlType]]:
    return [(column.name, column.type) for column in (*schema.key, *schema.value)]
