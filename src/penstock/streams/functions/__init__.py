"""The functions of SQL, for both front doors, and the types of what is computed with them.

typing          the type of an expression, or a refusal in ksqlDB's words; `coercion` and `casts` say what becomes what
catalog         scalar functions by name, `aggregates` and `tables` the others; `library` declares them all
descriptions    what SHOW FUNCTIONS and DESCRIBE FUNCTION tell
date_patterns   Java's patterns of dates, with `date_formatting` and `date_parsing`; `java_regex` its regular expressions

A function is a Python function with signatures (`registry`). What it does with NULL is part of its declaration. What cannot be
computed raises, and is NULL in its column. `kernel.compiling` puts calls into the code that runs for rows.
"""
