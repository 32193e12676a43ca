"""How the database is reached: the same for sink and source."""

from __future__ import annotations

from typing import Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

ALWAYS, NEVER = "always", "never"

CONNECTION: Final = Settings(
    Setting("connection.url", Kind.STRING, "The database, as a JDBC URL (jdbc:postgresql://host:5432/db, jdbc:mysql://…, "
            "jdbc:mariadb://…, jdbc:sqlite:file) or as SQLAlchemy's (postgresql://host/db).", importance=HIGH),
    Setting("connection.user", Kind.STRING, "The login's name.", default=None, importance=HIGH),
    Setting("connection.password", Kind.PASSWORD, "The login's password.", default=None, importance=HIGH),
    Setting("dialect.name", Kind.STRING, "PostgreSqlDatabaseDialect, MySqlDatabaseDialect, SqliteDatabaseDialect, or "
            "postgresql, mysql, mariadb, sqlite; empty: by the URL.", default="", importance=LOW),
    Setting("connection.timeout.ms", Kind.INT, "How long an attempt to connect may take.", default=10_000,
            check=at_least(1000), importance=LOW),
    Setting("connection.attempts", Kind.INT, "Taken, without an effect: max.retries of the sink and the restarts of failed "
            "tasks stand in its place.", default=3, check=at_least(1), importance=LOW),
    Setting("connection.backoff.ms", Kind.LONG, "Taken, without an effect, too.", default=10_000, check=at_least(0),
            importance=LOW),
    Setting("quote.sql.identifiers", Kind.STRING, "Whether names in statements are quoted: `always`, `never`.",
            default=ALWAYS, check=one_of(ALWAYS, NEVER, any_case=True), importance=LOW),
)  # fmt: skip
