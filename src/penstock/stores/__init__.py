"""Where the metadata tree is kept: `embedded` (SQLite, one node); a ZooKeeper store joins it later.

Each store is a `penstock.metadata.tree.MetadataTree`. `embedded.open_store(directory)` opens or makes the
file and gives the tree; `close()` ends it. Promised: what a call returned from is on disk; a `multi` is there
wholly or not at all, also after kill -9. Not promised: use from two processes (the second is refused) or from
two threads.
"""
