"""Ports to the world: clock, files, threads, logs. What is pure takes their values as arguments; what is not takes the port."""
