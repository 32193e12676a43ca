"""Consumer instances of v2: a client of a group, with a thread of its own, that lives from request to request.

    `instances.Instances` (which there are, bounds, expiry) → `instance.Instance` (the thread and what waits for it) →
    `member.Member` (librdkafka's consumer and its positions; all in the instance's thread) → `reading` (one GET of records)

An instance is of the login that made it; to others it is not there. Positions that are committed are those of records that were
returned, not of those that were fetched ahead.
"""
