"""The table of services: what `penstock up` can start. A new service is a module with its row, and a line here.

The order does not matter; what a service needs says when it is started.
"""

from __future__ import annotations

from penstock.stack import brokers, connect, console, registry, rest, spark, sql_server, zookeeper
from penstock.stack.stack import Service

SERVICES: tuple[Service, ...] = (
    zookeeper.SERVICE,
    brokers.SERVICE,
    registry.SERVICE,
    rest.SERVICE,
    sql_server.SERVICE,
    connect.SERVICE,
    console.SERVICE,
    spark.MASTER,
    spark.WORKER,
)
