"""The log on disk, byte for byte in Kafka's directory layout.

The one path through it: `log_directory.LogDirectory` opens a `log.Log` per partition; `Log.append` patches offset and leader
epoch into a batch and writes it at the end of the active `segment.Segment`; `Log.read` answers with a `Slice` of a file.

Promises: after a crash of the process nothing that `append` returned for is lost; after a power failure nothing that was
flushed; a torn or damaged tail is cut, never served. Apache's `kafka-dump-log` reads the files. Not promised: thread safety.
One owner calls a log; only `Flush.run` (`flushing`), `Removal.run`, `Slice.file` and chores (`chores`: what a `truncation`
has to wait for, for example) may be used from threads.
"""
