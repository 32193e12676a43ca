"""The partitions that this broker holds, as clients know them.

`held_partitions` finds them by name or id and opens and removes their logs; `partition` appends and reads; `waits` are
requests that wait for one to grow or to be committed; `fetch_sessions` remembers what a fetching client asked for;
`cold_reads` tells whether a slice can be sent without waiting for the disk; `checkpointing` gathers what is written down of them;
`damage` has somebody hear of a log that cannot be read.
"""
