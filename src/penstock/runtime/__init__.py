"""Ports to the world: clock, files, threads, logs. What is pure takes their values as arguments; what is not takes the port.

Nothing blocks the event loop: `pools` have the threads that wait, `page_cache` reads only what is in memory, `locks` are not for
the loop, and `loop_lag` measures how late it comes. `boot` says which run of the machine it is.
"""
