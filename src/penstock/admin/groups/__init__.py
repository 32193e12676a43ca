"""Consumer groups: who is in them, how far they are, and where they are sent next.

The one path through it: `requests.open_groups(connection)` gives a `GroupRequests`; `lag.py` joins committed offsets with the
ends of the logs, `reset.py` plans new offsets.

Promised: nothing here writes before `commit`, `delete` or `delete_offsets` is called; one group's failure does not hide
another group's answer. Not promised: a picture of one instant. Members, offsets and ends are asked one after the other.
"""
