"""The form that coordinators share: decide, then act. Pure.

A coordinator keeps what it knows about one partition of its internal topic in a *shard*. A request or an
alarm goes in, an `Outcome` comes out: records to append, replies by ticket, alarms to set. The host (in the
broker) does the rest, in this order and in one step of the event loop:

    outcome = shard.join_group(request, context, ticket, now_ms)
    append outcome.records as one batch → shard.replay(key, value) for each → set outcome.alarms
    … and, once all that was appended up to now is committed, send outcome.replies

Promises: hard state (what must survive) changes only in `replay`, so reading the log into a new shard gives
an equal shard; every ticket handed in is answered exactly once, at the latest by `on_unload`. Soft state
(parked requests, deadlines) changes while deciding. Non-promise: a decision cannot be taken back. Where an
append fails the host answers with `on_unload`, throws the shard away and loads a new one from the log.
"""
