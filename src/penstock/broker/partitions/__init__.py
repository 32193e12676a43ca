"""The partitions that this broker holds, as clients know them.

`held_partitions` finds them by name or id (`held_topic`) and opens and removes their logs; `partition` appends and reads.
`client_batch` checks what a client sends, and `openings` does so in steps where a batch must be opened and is large; `waits` are
requests that wait for one to grow or to be committed; `fetch_sessions` remembers what a fetching client asked for; `cold_reads`
has a thread read what is not in memory; `checkpointing` collects what the checkpoints say; `damage` reports logs that cannot be
read.
"""
