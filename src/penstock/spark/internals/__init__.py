"""What Penstock uses of Spark that Spark promises to nobody. No other part of `penstock.spark` touches a private part.

    arrow_types       pyspark.sql.pandas.types                    a source must yield the very Arrow types that Spark expects
    daemon            pyspark.daemon, the modules of workers      what our tasks import is imported once, before it forks
    file_systems      Hadoop's configuration of a session         a checkpoint may be in any file system that Spark knows
    gateway           the process of Spark's JVM                  Ctrl-C while it starts must end it; it writes class archives
    interpreter       a zip on the path of Python workers         Python compiles what is in a zip anew in each process
    interrupts        Spark's handler of Ctrl-C, py4j's log       Ctrl-C would be screens of stack traces
    jvm               Utils.classIsLoadable, the slots            whether the connector is there and all tasks can run at once
    local_properties  names of a task's local properties          exactly-once writes are named by query, run and batch
    pickling          pyspark.cloudpickle                         long tasks without Spark are sent the same programs
    plan_json         the analysed plan as JSON                   whether real-time mode takes a query is said before it starts
    registering       the environment of a Python source          queries that start at once would break each other's tasks
    saving            how Spark knows a stop from a failure       a query that is stopped in foreachBatch would end as failed
    sessions          the active context, whether it is stopped   Spark does not say, and neither whether a session is remote
    settings          internal settings, the checkpoint manager   each of them saves time for every batch
    stopping          names of loggers, the group of jobs         a real-time query that is stopped would log stack traces
    threads           `format` of writers, the active session     a sink is looked for in the session of the calling thread only

Each has one canary (tests/spark/internals) that fails by its name when Spark changes that part.
Of `penstock.spark` only `workers` is imported here.
"""
