"""Harnesses for tests and benchmarks: real processes on free ports in fresh directories, surely stopped.

The path: `processes.start_process` runs a command with its output in a file and waits, up to a deadline,
until it is ready; `apache_kafka.ApacheKafka` and `penstock_broker.PenstockBroker` are such processes with a
`.bootstrap` address, used as context managers; `apache_kafka.java_tool` runs one of Apache Kafka's own tools
to its end. `penstock_cluster.PenstockCluster` and `kafka_cluster.KafkaCluster` are several brokers on a ZooKeeper, which can be
killed, paused and started again one by one (`clusters`); `chaos` does so at random and checks every record.
`disk.MemoryDisk` is a disk that forgets what was not synced, for tests of whatever keeps files; under `loop_law` it fails on
whatever would wait on a loop's thread. `memory_store` is a ZooKeeper in memory, and `simulation` has whole clusters on them.
`liar` is a proxy that answers as a cluster does at a bad moment, and checks our clients against it.
`transcripts.run_transcript` runs a text file of requests, clock steps and expected replies and records against a
coordinator's shard; an `Adapter` tells it of the coordinator.

Promised: nothing waits without a deadline; whatever was started is gone when its `with` block, or the
interpreter, ends. Not promised: isolation from other users of the machine. A free port is only free until
somebody else takes it.
"""
