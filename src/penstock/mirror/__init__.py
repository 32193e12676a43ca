"""Mirroring: the topics, groups and access rules of one cluster kept in another one. MirrorMaker 2's job.

    source       topics of the source cluster are made, grown and configured at the target; their records are copied
    checkpoints  the offsets of groups are translated, told in `A.checkpoints.internal`, and set for groups that are not active
    heartbeats   a record in `heartbeats` every second, so that who looks sees that a flow is alive

These are three connectors with Kafka's names (`source`, `checkpoints`, `heartbeats`), which run on any worker of Connect.
`flows` reads mm2.properties, and `running` runs its flows in one process. `migration` moves a cluster's work to another one.

Records go in whole batches (`lane`): `following` fetches them, `batches` makes them fit to be sent, `writing` sends them. No
record becomes a Python object, and none is unpacked. With transforms or other converters than ByteArray they go one by one, as
in MirrorMaker 2.

Promises: records with keys, values, headers and timestamps, in their order and in the partition of the same number; aborted
transactions are not copied. At least once; with `exactly.once.source.support=enabled` exactly once. `translation` knows where
each offset of the source is at the target, also behind gaps. Not promised: transactions of the source stay whole at the target.
"""
