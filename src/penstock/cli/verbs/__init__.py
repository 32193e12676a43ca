"""`penstock` for people: verbs with tables and colours on a terminal, `-o json` for programs, and exit codes that
mean something.

The one path: `app.run` → click → the verb's module, loaded when it is called → `penstock.admin`,
`inspection`, `stack` or `arrow`, which do the work; `output` shows rows as a table or as JSON.
Exit codes: 0 done, 1 refused or unreachable, 2 the command line is wrong, 130 interrupted.
"""
