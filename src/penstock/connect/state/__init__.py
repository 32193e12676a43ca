"""What the three internal topics say, in Kafka Connect's record formats: keys, values, and the state that records lead to. Pure.

    configs   connector-NAME, task-NAME-i, commit-NAME, target-state-NAME, restart-connector-NAME, tasks-fencing-NAME,
              session-key, logger-cluster-NAMESPACE        (`configs`)
    status    status-connector-NAME, status-task-NAME-i, status-topic-TOPIC:connector-NAME        (`statuses`)
    offsets   ["NAME",{…source partition…}] → {…source offset…}        (`tasks.offsets`, which reads and writes them)

Values are JSON without schemas. Records are replayed in the order of their topic; the last one of a key counts, but tasks count
only behind their commit. What nobody knows is kept and told, not refused: a later version may have written it.
"""
