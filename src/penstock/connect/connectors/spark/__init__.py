"""Spark as a connector: whatever Spark reads goes to a topic, and records go wherever Spark writes.

`spark.format` is any format of `spark.read`, `spark.readStream` or `df.write`: parquet, orc, csv, jdbc, avro, delta, or one that
a package brings (`spark.conf.spark.jars.packages`).

A task of these connectors is a driver: it has a Spark session of its own, in a process beside it (`driver`, `side_process`),
because a task may itself run in an executor's Python worker. `spark.master` says where the work is done. There is one task for a
connector, whatever `tasks.max` says: Spark divides the work. Records and rows go between the two as Arrow.

The sink writes batches (`batches`), like `foreachBatch`: with `spark.checkpoint.location` each has a number and is what it was
when it is written again, so that a target that can tell (a folder of its own for each batch of files, Delta's `txnVersion`, a
function of one's own) has it once. The source hands over what a batch read or a stream has (`reading`); a stream's checkpoint
goes on only behind what is delivered.
"""
