"""What the console knows of a cluster: one batched look at all of it every few seconds, and lists made from the last look.

The one path through it: `snapshot.Snapshot` has a thread that calls `look.Looker.look`; that asks by `asking` (few big
requests to each broker, never one per topic or group), works out rates and lags (`rates` ◇, `end_offsets` ◇) and gives a
`model.ClusterView` ◇, which never changes. Pages read `snapshot.latest` and cut their page of a list out of it by `lists`
◇: what a page costs the brokers does not depend on who looks at it.

Not promised: a picture of one instant. Committed offsets are asked before the ends of the logs, so a lag is never negative,
and may be too great by what was committed in between.
"""
