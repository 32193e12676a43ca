"""Series over time, kept by the console itself: throughput, lag, sizes.

The one path through it: each look at a cluster is handed to `History.take`, which only puts it into a short queue; a thread
chooses what is kept of it (`series` ◇) and writes it into SQLite (`store`). Pages read a series with `History.read`, which
blocks: in a thread.

Bounded in rows and in age, and thinner with age: as taken for an hour, one a minute for a day, one in ten minutes until the
end. A value that does not change costs a row every ten minutes. Promised: nothing here holds up a look or a page. Not
promised: that each look is kept. When the disk is too slow, or full, looks are left out and the log says so.
"""

from penstock.console.history.recording import History

__all__ = ["History"]
