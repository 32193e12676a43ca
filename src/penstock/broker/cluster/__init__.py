"""This broker as a member of a cluster.

`membership` keeps the session with the metadata store: it registers the broker, notices who the controller is, and becomes it
when the place is free. `own_sessions` knows which nodes are our own; `continuity` whether the logs have lost nothing since
the last registration; `shutdown` hands leaderships over before a stop. `addresses` says where brokers are reached,
`current_leaders` tells it to a client that asked the wrong one. `shared_configs` and `shared_acls` are what each broker reads for
itself (`followed_nodes`). `members` knows what all brokers have registered, and so what the cluster can do; `spoken` is the page
that says which request goes to whom in which version. Members may be brokers of Apache Kafka.

`controlling` is what the one broker does that is the controller: it watches the others come and go, and decides with
`penstock.controller`. `controller_requests` is what it is asked. `channels` carry its decisions to every broker, itself
included. It also continues `reassignments`, returns leadership to preferred replicas (`balancing`), completes unfinished
changes (`completing`), elects other leaders for replicas on a failed disk (`failed_directories`), and removes old
`notifications`.

Promised: a controller that was replaced changes nothing more (each write checks its epoch), and a broker follows only the
newest controller it has heard of. Not promised: that two brokers know the same at the same moment.
"""
