"""The stack: what `penstock up` starts on one machine, as separate processes.

`description` reads `penstock.yaml`, a whole stack in one file; `contents` makes what shall be in a stack: topics, schemas,
statements, connectors; `containers` writes the same for containers, and `start_of_all` is one `penstock up`.

`services` is the table: a new service is a row (`stack.Service`) with its command, ports, health check, needs, count and
restart policy. `composition` decides from it which members there shall be, as plain data; `stack_file` keeps that in
`box.json`. `starting` and `stopping` bring members up and down, in the order of their needs; `restarting` does both,
member by member; `watching` starts again what dies. Each member has its data in a folder of its name, its log in
`<name>.log` and, while it runs, its process id in `<name>.pid` (`processes`).

Promised: no process is stopped that the stack did not start; in the background nothing is restarted but what a
command says; every wait has an end; a command that was interrupted can be run again. Not promised: that a member is
there tomorrow. A stack is for one machine and one user; machines of their own run `penstock broker --zookeeper`.
"""
