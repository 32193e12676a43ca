"""The consumer group protocol (KIP-848): the coordinator assigns, members reconcile one by one. Pure.

The one path through it: `heartbeat.py` takes a member's ConsumerGroupHeartbeat, notes what has changed about it
(`subscribe.py`), has a new target computed where the group's epoch has moved on (`assign.py`, `assignors/`), and moves the
member one step towards its target (`reconcile.py`). Each step is written into a `draft.Draft`: a record for the log, and
the same change on a copy of the group, so that the next step sees it. `records.py` has the records, `state.py` the group.

    group epoch        what the members want, or the topics, have changed
    assignment epoch   the group epoch that the target assignment was computed for
    member epoch       the assignment epoch that the member has reconciled itself to

`classic_members.py` serves members that still speak the classic protocol, `convert.py` changes whole groups from one
protocol to the other while they are in use.

Promises: no partition is given to a member before the one who had it has let go of it, or has left; all that is known of
a group is in the log. Non-promises: members learn of an assignment with their next heartbeat, not before; racks are
recorded, but no assignor looks at them.
"""
