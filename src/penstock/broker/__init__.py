"""The broker: one node of the cluster, serving Kafka's protocol from its logs.

The one path: `dispatch` reads a frame's header and calls the handler of its API (`handlers/<api>.py`, one file each);
the handler asks `partitions`, `topics`, the groups' `coordinator_host` or the configuration, and answers at once or later.
It promises what Kafka documents for each API. It decides nothing that a pure folder below can decide.
"""
