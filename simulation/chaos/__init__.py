"""Real kills: `python -m simulation.chaos --minutes 10 [--seed N] [--peer mixed]`, which `make chaos` runs.

Three brokers and a ZooKeeper ensemble of three, each a process of its own; idempotent producers and a group of consumers
(`load`) as fast as the machine bears, while a seeded plan (`plan`) kills, pauses and restarts one of them after the other
(`inject`). Then all is healed, everything is read back from the start, and `ledger` says what is wrong: acknowledged records
that are lost, records that are there twice or in another order, what consumers saw that is not there, and consumers that were
thrown back (`reading`). `loop_lag` says how late the brokers' event loops came.

The seed fixes the faults and their times, not what comes of them: real processes do not run twice in the same way. What
happened when is in `chaos.log` of the directory, which is kept if anything was wrong.
"""
