"""The contents of a log's files, as lines in the form of Apache Kafka's kafka-dump-log or as data.

`files.dump` yields the lines of any file. `log_bytes.stored_batches` yields the batches of a .log file as data, and
`penstock.records.walk.iterate_records` the records of a batch. `indexes.Findings` gathers what does not fit together.

Nothing is printed and nothing is written. Not promised: the same lines twice while a broker writes.
"""
