"""Penstock beside Apache Kafka, and Spark with ours beside Spark with its own connector: `python -m bench --help`.

The path: `__main__` reads the options; `runner` starts the servers (`servers`) fresh for each round and gives
each workload (`workloads/`) to one server after the other; a workload runs a client process (`clients/`, or
Apache's Java tools) and returns a `measure.Sample`; `report` turns the samples into RESULTS.md and
results.json. Of the servers some are none: those of `spark` are clients of one Penstock broker, which they share.

Promised: both servers see the same client with the same options, in turns, and only one is under load at a
time. Not promised: figures that hold on another machine; only ratios within one run are held against targets.
"""
