"""Records of topics to tables of a lake: Apache Iceberg, by pyiceberg. The settings are those of Iceberg's own sink.

    task.py        which records go to which table, when tables are committed, where a restart goes on
    tables.py      one table: its columns, what is written but not committed, a commit
    evolving.py    a table made from the first records, and changed by later ones
    offsets.py     what the snapshots of a table say of the offsets in it
    partitions.py  day(at), bucket(id, 16)
    catalogs.py    the catalog, by the properties of Java's or pyiceberg's
    compaction.py  many small files become few

Exactly once: a snapshot holds the offsets behind the records in it, for each connector and partition. A commit is made only on
top of the offsets that the task began with, so a task that has been replaced cannot add its records a second time. A restart
reads the offsets from the table and goes on there; those of the consumer group only follow.
"""
