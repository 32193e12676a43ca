"""Functions in Python that a statement brings along (CREATE FUNCTION … LANGUAGE PYTHON).

definition   what the statement says, and how it is called from SQL
programs     the text of a program, looked at without running it
hosts        processes that programs run in: a call has a time limit, and one that does not end costs its process
child        what runs in such a process; it uses nothing of Penstock
results      what a program gives, as a value of the SQL type that was declared

A program runs with the rights of the server, or of Spark's workers. So they are off unless `penstock.sql.functions.enabled` says
otherwise. Its process keeps a fault (a loop without end, exhausted memory, `os._exit`) away from the others; it is no sandbox.
"""
