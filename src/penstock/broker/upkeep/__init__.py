"""What a broker does for its logs without being asked.

`maintenance` goes round: retention, rolling, checkpoints. `flushes` brings logs to the device; `cleaner` compacts them in
processes of their own (`compaction_worker`) and says how it goes (`cleaner_status`); `log_directories` knows which log is
where and what failed; `log_moves` carries a log to another directory; `strays` keeps logs that the cluster does not place
here, and takes them back.
"""
