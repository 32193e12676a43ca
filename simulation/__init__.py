"""What tries Penstock and is no part of it. It is not in the wheel.

`seeds` has whole clusters in one process, with faults, by seeds (`make simulate`), on the disk of `penstock.testing` and the
ZooKeeper in memory of `memory_store`. `liar` is a proxy that answers as a cluster does at a bad moment, and checks our clients
against it (`make simulate-clients`). `chaos` kills, pauses and restarts real processes and checks every record (`make chaos`).
`apache` runs Apache Kafka's brokers and tools beside ours. `transcripts.run_transcript` runs a text file of requests, clock
steps and expected replies and records against a coordinator's shard; an `Adapter` tells it of the coordinator.
"""
