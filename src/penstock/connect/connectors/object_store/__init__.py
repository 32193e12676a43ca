"""Records of topics to files in an object store (the S3 API), in a folder, or in HDFS. Confluent's S3 sink, by its settings.

    topics.dir/topic/partition=0/topic+0+0000000000.json

    task.py          which records go to which writer; which offsets may be committed
    rotation.py      one partition of a topic: its open files, and when they are finished
    partitioners.py  the folder of a record: by partition, by a field, by time
    formats.py       JSON lines, Avro, Parquet, bytes
    stores.py        where finished files go: whole or not at all

Exactly once: where a file begins and ends, and so its name, depends on the records alone (not with the wall clock). Offsets are
committed behind finished files only. A file that was written before a crash is written again with the same name and content.
A file is kept in memory until it is finished: `flush.size` bounds it.
"""
