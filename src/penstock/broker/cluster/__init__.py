"""This broker as a member of a cluster.

`membership` keeps the session with the metadata store: it registers the broker, notices who the controller is, and becomes it
when the place is free. `controlling` is what the one broker does that is the controller: it watches the others come and go, and
decides with `penstock.controller`. `controller_requests` is what it is asked. `channels` carry its decisions to every broker,
itself included. `shared_configs` is what each broker reads for itself.

Promised: a controller that was replaced changes nothing more (each write checks its epoch), and a broker follows only the
newest controller it has heard of. Not promised: that two brokers know the same at the same moment.
"""
