"""Connectors at work, and what the REST API and the command line ask of them.

    herder     the calls: create, change, pause, restart, offsets… They block, and answer or raise `refusals.Refusal`
    leading    which worker of a group leads: it writes configs, has the connectors' instances, and starts their tasks
    crew       a `keeper` for each connector: a thread that makes it what the book says (`topics.book`)
    job        the tasks of a connector: one long job (`spark.tasks`), on Spark, in processes or in threads
    options    the worker's properties; `launchers` where tasks run; `offsets` how far connectors are; `loggers` levels of logs

A keeper never waits for a connector's own code without end: what hangs is left behind when something else is asked of it.
"""
