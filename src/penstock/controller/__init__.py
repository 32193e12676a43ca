"""What the controller decides about topics, partitions, replicas, leaders, configs and producer ids. Pure.

The path through it: a handler, or what the cluster's tree tells, calls one decision (`topics.create_topics`,
`elections.elect_leaders`, `brokers.broker_lost`, `isr.alter_partition`, `reassignments.alter` …) with the cluster image and the
request, and gets a `Decision`: the results to answer with, the ops to write to the metadata tree (in one `multi`, or in the
pieces of `decision.chunks`), and the changes to apply to the image once they are written. `effects` says which brokers have to
hear of the changes, and `announce` makes the requests that tell them.

Promised: a decision changes nothing by itself, looks at nothing but its arguments, and gives Kafka 4.3's error codes and texts
(3.9's where only a cluster on ZooKeeper knows them); its ops and its changes say the same (an image read again from the tree
equals the image kept); a leader is in the ISR, the ISR is never empty and among the replicas, and epochs only grow. What needs
chance or time is passed in. Not promised: that the caller may do this (authorization is the handler's), nor that it is still the
controller; put a `Check` of `/controller_epoch` before the ops where another broker could be.
"""
