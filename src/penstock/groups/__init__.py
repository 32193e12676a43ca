"""The group coordinator: who is in a group, which generation it is in, and how far it has read. Pure.

The one path through it: `shard.GroupShard.<api>(request, context, ticket, now_ms)` finds the group in its
`directory`, a decision in `classic/`, `consumer/`, `offsets.py`, `forget.py` or `admin.py` works on it and fills an
`Outcome`; the host appends, then `GroupShard.replay` changes the hard state (in Kafka's own `__consumer_offsets`
formats, see `records.py` and `consumer/records.py`). Offsets are in `offset_book`, where those of open transactions
wait for their markers (`replay_marker`), and go with time by the rules of `expiry`.

A classic group therefore exists twice: as last recorded (hard), and, while it has members, alive
(`state.Group`: who has joined, who is waited for). A restart keeps the first and rebuilds the second from it,
as Kafka does: a rebalance that was under way is forgotten and its members join again.

Promises: Kafka's rules and error codes; a refused request changes nothing. Non-promises: of a classic group it
understands no assignment (the leader makes it, we pass it on), and it does not check whether a transaction is open
(the host has asked the transaction coordinator).
"""
