"""The schema registry: schemas by subject and version over HTTP, kept in a compacted topic.

The path of a write, from the request to the answer:

    routes        → which subject, which body, who asks
    instance      → is this the leader? if not, `forwarding` passes the request on
    decisions     → pure: the state and a request become records and an answer, or a refusal
    log.writing   → the records go to `_schemas`, marked with the leader's term
    log.following → they are read back, like everybody's, into `state`; only then the request is answered

So the state is always what the topic says, in each instance. Reads are answered from the state and wait for nobody.

Promised: what was answered is in the topic, also when the leader dies or hangs. An id never means two schemas: records of a
leader that has been replaced are known by their term, ignored by all instances, and undone by the leader (`terms`). Records that
are not understood are left alone. Not promised: that Confluent's own instances ignore a replaced leader's records as ours do.

`leadership` says who leads, by Kafka's group protocol in Confluent's form. Needs the extra `registry`.
"""
