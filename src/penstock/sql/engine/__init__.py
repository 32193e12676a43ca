"""What the server remembers and runs: sources, types, the log of commands, queries, and views that answer pull queries.

views         a table's newest rows, kept by following its topic: `following` (a consumer without a group), `view_store`
              (SQLite), `key_order` (keys as bytes in their order)
pull          the rows of a pull query: by key or range from a view (`key_lookup`), or by the kernel over topics up to their
              ends (`topic_reading`)
"""
