"""Whole clusters in one process, under a seed: brokers, a metadata store, clients, and everything that can go wrong with them.

The brokers are the real ones; what is simulated is the world they run in. `loop` has time and order, `network` the
connections with their `sockets`, `machine` the disk and the process of a broker, `store` the sessions with ZooKeeper.
`scenario` is one run: clients at work (`producers`, `transactions`, `consumers`, `members`, `admins`) and `faults` among
them; then all is healed, `history` tells what the clients were told and saw, and `invariants` compares it with what is there.

    python -m simulation.seeds --seeds 1000
    python -m simulation.seeds --seed 17 --trace

Promised: the same seed and code give the same run, in every process. Not promised: that a seed means the same after a change
of the code; that time taken by computing is counted, since only waiting takes time here.
"""
