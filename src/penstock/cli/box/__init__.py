"""A cluster in a box: ZooKeeper and brokers of one machine as separate processes, for `penstock up`, `down` and `status`.

A directory is the box. `box.json` in it says what belongs to it (`composition`); each member has its data in a folder
of its name, its log in `<name>.log` and, while it runs, its process id in `<name>.pid` (`processes`). `starting` and
`stopping` bring members up and down, in order; `restarting` does both, broker by broker.

Promised: nothing is started, restarted or stopped but what a command says; every wait has an end; a command that was
interrupted can be run again. Not promised: that a member is there tomorrow. A box is for one machine and one user;
machines of their own run `penstock broker --zookeeper`.
"""
