"""What the leader and the followers of a partition decide. Pure.

The path through it: something happens to a replica (`replica.Replica`: a batch was appended, a follower fetched, the role
changed), and its `Progress` says what follows; the broker makes it known. A follower's fetch says up to where it has the log;
the leader notes it (`leader.Leadership.fetched`) and says how far the high watermark may go; whoever lags is proposed to leave
the set of in-sync replicas, whoever caught up to join it. A follower whose log differs is told where the common part ends, and
cuts its own (`follower.truncation_offset`).

Promised: the high watermark never passes what every member of the in-sync set has, including members that the controller
may already have accepted while its answer is on the way. Not promised: that the controller accepts a proposal.
"""
