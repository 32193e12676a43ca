"""Runs a plan record by record: what it does is what the plan means.

Streams advance record by record: stream time is a partition's largest timestamp so far. Every change of a table goes out. The
old row is taken back before the new one counts. State is behind `stores.Store`, so tests run in memory and long tasks keep a
changelog.

`topology.cut(plan)` cuts a plan at its repartitions into subtopologies, each with its topics and stores. A
`plan_task.PlanTask` runs one of them for one partition: its `operators` call one another, from the topics to the sinks.
`needs` says which rows are kept at all. `driver.Driver` runs a whole plan in one process, for tests of programs: records in,
records out, in milliseconds.

What is only in a task's memory is written to its stores by `flush`; so a task that comes back with its stores and offsets
goes on as if it had never ended.
"""
