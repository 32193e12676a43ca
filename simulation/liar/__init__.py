"""A broker that lies, and clients that must not be fooled by it.

`broker.LyingBroker` is a proxy that speaks the Kafka protocol, to be put between any client and a real broker. It shows several
nodes (`stage`), and by a seed (`lies`) it cuts, delays, refuses (`refusals`), holds records back and cuts them (`partitions`),
moves leaders and coordinators, forgets topics, and answers from outdated metadata (`pretending`). Whatever it does a correct
cluster may do.

    with PenstockBroker(directory) as broker, LyingBroker(broker.port) as liar:
        liar.begin(Plan.drawn(17))
        penstock.arrow.read("orders", bootstrap=liar.bootstrap)

A seed (`seeds.perform`) draws one of the `scenarios` and its lies. The oracle is always the same: whatever it is told, a client's
result is right or an error, within a deadline, and never silently wrong. `truth` asks the broker itself; `world` is what the
seeds of a process share.

    python -m simulation.liar --seeds 200
    python -m simulation.liar --seed 17 --trace

Promised: the same seed draws the same scenario and gives the nth request of each API the same lies. Not promised: the same run
twice, since the clients' threads and the broker run in real time.
"""
