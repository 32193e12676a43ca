"""`make demo`: a working day of a company that measures the bio-impedance of its workers, from upload to summary.

    population → workers            ┐                        ┌ bioimpedancia.metrica.dlq  (refused, with the cause)
    day → measurements in uploads   ┴ feed → topics → Spark ─┤
                                                             └ bioimpedancia.resumo → a Parquet table

`__main__` is the order of events. `pipeline` is the part to read first: two streaming queries, with `checks` (what is
refused), `dead_letters` (in which form) and `formula` (what is computed of the rest). `population` and `day` invent the
data, `verify` computes the same summary once more without Spark, `show` is all that is printed.
"""
