"""Background work on the logs of a broker.

`maintenance` runs periodically: retention, rolling, checkpoints. `flushes` flushes logs to disk; `cleaner` compacts them in
processes of their own (`compaction_worker`) and says how it goes (`cleaner_status`); `log_directories` knows which log is
where and what failed; `log_moves` moves a log to another directory; `strays` keeps logs that do not belong here, and uses them
again when they do.
"""
