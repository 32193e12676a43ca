"""Which measurements are refused, and why: a table of rules as Spark columns. The first that applies is the cause."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as f

from examples.demo.rules import FIELDS, RANGES

# The form of a value. What is not JSON of this form is in the last column, which Spark knows by its name.
FORM = "worker string, at timestamp, frequency_khz double, resistance_ohm double, reactance_ohm double"
NOT_OF_THE_FORM = "_corrupt_record"


def decoded(value: Column) -> Column:
    return f.from_json(value.cast("string"), f"{FORM}, {NOT_OF_THE_FORM} string")


def refusal(measurement: str, *, is_known: Column) -> Column:
    """A struct of `cause` and `message` for what is refused, null for the others.

    `measurement` is the decoded column's name, `is_known` says whether its worker is known.
    """
    field = {name: f.col(f"{measurement}.{name}") for name in (*FIELDS, NOT_OF_THE_FORM)}
    rules: list[tuple[Column, str, Column]] = [
        (field[NOT_OF_THE_FORM].isNotNull(), "NotJson", f.lit(f"the value is not JSON of the form {FORM}"))
    ]
    for name in FIELDS:
        rules.append((field[name].isNull(), "MissingField", f.lit(f"{name} is missing")))
    for name, (least, most) in RANGES.items():
        text = f.format_string(f"{name} is %s, and can only be {least} to {most}", field[name])
        rules.append((~field[name].between(least, most), "OutOfRange", text))
    unknown = f.format_string("no worker has the number %s", field["worker"])
    rules.append((~is_known, "UnknownWorker", unknown))
    nothing = f.lit(None).cast("struct<cause: string, message: string>")
    return reduce(
        lambda others, rule: f.when(rule[0], _reason(rule[1], rule[2])).otherwise(others),
        reversed(rules),
        nothing,
    )


def _reason(cause: str, message: Column) -> Column:
    return f.struct(f.lit(cause).alias("cause"), message.alias("message"))
