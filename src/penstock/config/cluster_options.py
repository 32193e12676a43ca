"""Broker options of a cluster on ZooKeeper. Names, types and defaults are those of Kafka 3.9, the last that had them.

They are not described to clients: Kafka 4 does not have them, and its tools would not know what to make of them.
"""

from penstock.config.option import (
    BOOLEAN,
    INT,
    PASSWORD,
    READ_ONLY,
    STRING,
    Option,
    at_least,
)

CLUSTER_OPTIONS = (
    Option("zookeeper.connect", STRING, None, None, READ_ONLY,
           "Where the cluster's ZooKeeper is: host:port, several with commas, perhaps with a /path behind. "
           "Not set, the broker is a cluster of its own.", internal=True),
    Option("zookeeper.session.timeout.ms", INT, 18_000, at_least(1), READ_ONLY,
           "A broker that ZooKeeper has not heard of for this long counts as gone.", internal=True),
    Option("zookeeper.connection.timeout.ms", INT, None, None, READ_ONLY,
           "How long the first connection to ZooKeeper may take; not set, as long as a session lasts.", internal=True),
    Option("zookeeper.max.in.flight.requests", INT, 10, at_least(1), READ_ONLY,
           "Requests to ZooKeeper that may wait for their answers at once.", internal=True),
    Option("zookeeper.set.acl", BOOLEAN, False, None, READ_ONLY,
           "Whether only this cluster's brokers may change what they write to ZooKeeper.", internal=True),
    Option("penstock.zookeeper.auth", PASSWORD, None, None, READ_ONLY,
           "Who the broker is to ZooKeeper (digest scheme), as user:password.", internal=True),
    Option("controller.socket.timeout.ms", INT, 30_000, None, READ_ONLY,
           "How long the controller waits for a broker's answer.", internal=True),
    Option("leader.imbalance.per.broker.percentage", INT, 10, None, READ_ONLY,
           "Leaders go back to preferred replicas when more of a broker's are elsewhere.", internal=True),
)  # fmt: skip
