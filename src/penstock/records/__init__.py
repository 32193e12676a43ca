"""Record batches: reading, checking and building Kafka's format v2. Pure.

The one path through it: the broker hands the bytes of one partition's produce request to `validate.validate`, which answers
with a `batch.BatchHeader`; the storage patches the offset and keeps the bytes as they are.

Promises: a batch that passes `validate` has a right CRC, a right size and a plausible header, and its records, when they are
not compressed, chain exactly to its end. Not promised: that the fields inside a record, or a compressed payload, can be read;
a consumer of such a batch finds out. Only a batch that must be opened (`opening.py`: the topic is compacted, bounds the age
of records, or stores another codec) has its records checked one by one (`check.py`), in steps. `walk.py` reads records one by
one for internal topics and look-ups by time.
"""
