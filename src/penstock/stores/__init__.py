"""Where the metadata tree is kept: `embedded` (SQLite, a broker that is its own cluster) or `zookeeper` (several brokers).

Each store is a `penstock.metadata.tree.MetadataTree`; `open_store(…)` of either module opens it, `close()` ends it. Promised:
what a call returned from is on disk; a `multi` is there wholly or not at all, also after kill -9. Not promised: use
from two threads, and for the embedded one from two processes (the second is refused).

A change on its way to ZooKeeper: `zookeeper` (deadlines, what is asked again, watches), `zookeeper_requests` (from the tree's
words to ZooKeeper's), `zookeeper_messages` and `zookeeper_wire` (bytes), `zookeeper_session` (one session over
connections that come and go). `zookeeper_server` composes the command line of a ZooKeeper server of our own.
"""
