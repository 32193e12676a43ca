"""Bills orders, exactly once, and puts aside the ones that cannot be billed.

`python -m examples.billing` works until Ctrl-C; with --stop-at-end until there is nothing left to do.
"""

import argparse
import json
import logging
import os

from penstock.consumer import Output, Poison, Processor, Record

PRICES = {"valve": 40, "gasket": 2, "turbine": 90_000}


def bill(record: Record) -> Output:
    order = record.value
    if order["count"] < 1:
        raise Poison(f"{order['count']} is not a number of things to order")  # no use in trying again
    amount = PRICES[order["item"]] * order["count"]  # a KeyError is tried again: the price may come
    return Output("invoices", key=record.key, value=json.dumps({"order": order["id"], "amount": amount}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.billing", description=__doc__)
    parser.add_argument("--stop-at-end", action="store_true", help="end when everything is billed")
    words = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    counters = Processor(
        "orders",
        group="billing",
        handler=bill,
        bootstrap=os.environ.get("PENSTOCK_BOOTSTRAP", "localhost:9092"),
        guarantee="exactly-once",
        value_deserializer=json.loads,
        retries=2,
        stop_at_end=words.stop_at_end,
    ).run()
    billed = counters.handled - counters.dead_letters
    print(f"{billed} orders billed, {counters.dead_letters} put aside")


if __name__ == "__main__":
    main()
