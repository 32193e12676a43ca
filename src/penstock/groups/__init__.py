"""The group coordinator: who is in a group, which generation it is in, and how far it has read. Pure.

The one path through it: `shard.GroupShard.<api>(request, context, ticket, now_ms)` finds the group, a
decision in `classic/` or `offsets.py` works on it and fills an `Outcome`; the host appends, then
`GroupShard.replay` changes the hard state (`records.GroupMetadata` and `records.CommittedOffset` in Kafka's
own `__consumer_offsets` formats).

A classic group therefore exists twice: as last recorded (hard), and, while it has members, alive
(`state.Group`: who has joined, who is waited for). A restart keeps the first and rebuilds the second from it,
as Kafka does: a rebalance that was under way is forgotten and its members join again.

Promises: Kafka's rules and error codes for the classic protocol; a refused request changes nothing.
Non-promises: it understands no assignment (the leader makes it, we pass it on), and does not expire old
offsets yet.
"""
