"""What a program over topics means, as pure and typed data.

`types` are the types of columns, `expressions` what is computed from columns, `schema` the columns of a stream or table,
`sources` a topic with its formats, `nodes` the steps from sources to sinks. Whoever builds a node has checked it: nodes
hold resolved names and types, and the kernel believes them.

Values in rows are plain Python: BOOLEAN bool, INTEGER and BIGINT int, DOUBLE float, DECIMAL Decimal (with all its decimals),
STRING str, BYTES bytes, DATE int (days since 1970), TIME int (milliseconds of the day), TIMESTAMP int (milliseconds since
1970), ARRAY list, MAP dict, STRUCT dict with every declared field in its order. NULL is None.
"""
