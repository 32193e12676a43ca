"""The broker: one node of the cluster, serving Kafka's protocol from its logs.

The one path: `requests` reads a frame and calls the handler of its API (`handlers/<api>.py`, one file each). The handler asks
one of the rooms and answers, at once or later:

    access        how listeners are entered: TLS, logins; and how this broker enters those of others
    partitions    what clients append and read; the logs that this broker holds
    replication   leader and follower: roles, fetching from leaders, changes of the in-sync set
    coordinators  hosts of the groups' and the transactions' coordinators
    metadata      topics, configs, producer ids: changes of what the cluster knows
    cluster       membership, the controller, and how its decisions reach the brokers
    upkeep        flushes, retention, compaction, log directories, moves: what nobody asks for by a request
    adoption      opening directories that Apache Kafka wrote
    metrics       what Prometheus is told

`node` wires them, `serving` starts and stops them, `process` is the process around it. A handler promises what Kafka
documents for its API. The broker decides nothing that a pure folder below can decide.
"""
