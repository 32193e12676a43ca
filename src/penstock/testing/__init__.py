"""For tests: real brokers and clusters on free ports in fresh directories, surely stopped; and a disk that forgets.

The path: `processes.start_process` runs a command with its output in a file and waits, up to a deadline, until it is ready;
`penstock_broker.PenstockBroker` is such a process with a `.bootstrap` address, used as a context manager.
`penstock_cluster.PenstockCluster` is several brokers on a ZooKeeper, which can be killed, paused and started again one by one
(`clusters`). `pytest_plugin` has broker and cluster as fixtures. `spark_cluster.SparkCluster` is a master with workers.
`disk.MemoryDisk` is a disk that forgets what was not synced; under `loop_law` it fails on whatever would wait on a loop's thread.

Promised: nothing waits without a deadline; whatever was started is gone when its `with` block, or the interpreter, ends. Not
promised: isolation from other users of the machine. A free port is only free until somebody else takes it.
"""
