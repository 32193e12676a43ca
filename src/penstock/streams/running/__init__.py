"""A plan at work on topics: long tasks on Spark, each with the partitions that are its own.

`query.RunningQuery` starts the tasks of a plan, tells their state and stops them. In a task `worker` reads the records
of its partitions,
gives them to `kernel.task`, writes outputs and changelogs, and commits, in transactions when it is to be exactly once.
"""
