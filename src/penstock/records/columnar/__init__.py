"""Record batches as they were fetched → Arrow columns, without one Python object per record.

The one path through it: `decode.Decoder.decode` hands the bytes of one partition to the walks of `kernels.py`, which
check them and copy keys, values and numbers to growing columns (`columns.py`); a batch whose records are compressed
comes back to Python for `records.compression` and continues. What is full leaves as a `pyarrow.RecordBatch`.
Beside it, typed columns are made of a column of values: of JSON texts by `json_columns.parse_objects`, of Avro's bytes by
`avro_columns.AvroReader` (a program for each pair of schemas, interpreted by one kernel), of Protobuf's messages by
`protobuf_columns.read_messages`. `avro_encode.AvroWriter` goes the other way.

Promises: the same records that `records.walk` reads, or `InvalidRecord` with the offset; no byte outside of the given
ones is read, whatever they say. The CRC is checked. Control batches and, given the fetch answer's list, aborted
transactions leave no row. Columns stay below 2 GiB, so that 32-bit offsets do. Not promised: message formats 0 and 1,
which Kafka 4 has dropped.

Needs the extra `arrow` (pyarrow); nothing that a broker imports may import this package. The compiled walks are kept
beside the package, or in the user's cache where that is read-only.
"""
