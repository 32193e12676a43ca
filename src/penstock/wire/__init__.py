"""Kafka's protocol as values: messages, their codec, and frames.

One path through it: `framing` cuts a frame and reads its header; `codec.decode` makes a message of its body,
for instance `messages.metadata.MetadataRequest`; a handler answers with another message; `codec.encode`
writes that in the version of the request. Produce and Fetch have codecs of their own (`produce`, `fetch`),
which keep views and copy no records.

Promises: a message has the fields of all versions, so no handler asks for the version; a field that a version
lacks has Kafka's default after reading and is left out in writing. Bytes that are no message raise
`errors.Malformed` and nothing else. Messages share no memory with the buffer they were read from.

Not promised: any check of what the values mean, and any word about a value that was left out because the
version has no field for it. Memory is bounded by the size of the frame, but a message of tiny structs takes
some forty times the bytes it came in, so whoever reads frames must bound them.
"""
