"""Leaders and followers in a cluster. What they decide is in `penstock.replication`; here it is done.

`roles` carries out the controller's requests (LeaderAndIsr, StopReplica, UpdateMetadata) and makes partitions lead or follow;
`fetchers` has one `fetcher` for each leader that is followed, which knows each partition as `followed` and asks a leader for
its `leader_end`; `cuts` has a thread cut what a leader does not have. `isr_changes` asks the controller for another in-sync
set. `returning_logs` opens the logs that are here before the controller names them. `closest_replica` sends a consumer to
a replica in its rack; `quotas` slows replication down where an operator has set a limit.
"""
