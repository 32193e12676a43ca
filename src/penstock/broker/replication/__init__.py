"""Leaders and followers in a cluster. What they decide is in `penstock.replication`; here it is done.

`roles` takes the controller's word (LeaderAndIsr, StopReplica, UpdateMetadata) and makes partitions lead or follow; `fetchers`
has one `fetcher` for each leader that is followed; `isr_changes` asks the controller for another in-sync set; `quotas` slows
replication down where an operator has set a limit.
"""
