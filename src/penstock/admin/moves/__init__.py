"""Replicas that move from broker to broker: what kafka-reassign-partitions and the `penstock cluster` commands share.

One path: an assignment (which brokers shall keep each partition) from a file (`files`) or a plan (`plans`, pure) →
`cluster` starts it, with a throttle if one is asked for (`throttles`, pure) → the controller moves the replicas →
`watching` waits until none moves any more, and `following` takes the throttle away.

All state is in the cluster. A command that is interrupted can be run again: it goes on with what is under way.
"""
