"""A statement and the sources that there are become a plan, or a refusal in ksqlDB's words.

    creating.create_source    CREATE STREAM|TABLE of a topic          → Source
    queries.plan_query        CREATE … AS SELECT, INSERT INTO SELECT  → PlannedQuery
    queries.plan_push         SELECT … EMIT CHANGES                   → PlannedPush
    pulling.analyze_pull      SELECT                                  → PlannedPull
    inserting.insert_values   INSERT INTO … VALUES                    → InsertedRow
    replacing.altered         ALTER STREAM|TABLE                      → Source

The one path through a SELECT: `scopes` gives names their sources and aliases; `planning` makes the nodes step by step, with
`joining` and `grouping`; a `flows.Flow` says where each named column is; `results` tells the key from the values. Nothing here
changes anything, and every call may be made again.
"""
