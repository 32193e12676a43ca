"""An engine with its parts, as options say."""

from __future__ import annotations

from penstock.sql.engine.engine import Engine
from penstock.sql.engine.leading import Leading
from penstock.sql.engine.options import REGISTRY_URL, SqlOptions
from penstock.sql.engine.queries import Queries
from penstock.sql.engine.spark_runner import SparkRunner
from penstock.streams.schema_lookup import ClientLookup


def engine_of(options: SqlOptions) -> Engine:
    """BadOption for what cannot be used."""
    url = options[REGISTRY_URL]
    schemas = ClientLookup(url, options.registry) if url else None
    return Engine(options, schemas, Queries(SparkRunner(options)), Leading(options))
