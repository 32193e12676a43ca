"""A processor as a process of its own, to be killed by tests: copies a topic, and fails for each value that ends in 7."""

from __future__ import annotations

import argparse
import json
import logging

from penstock.consumer import Output, Poison, Processor, Record


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--instance", required=True)
    parser.add_argument("--guarantee", default="exactly-once")
    parser.add_argument("--outputs", type=int, default=1, help="how many for each record")
    parser.add_argument("--consumer-settings", type=json.loads, default={})
    words = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    def copy(record: Record) -> list[Output]:
        if record.value.endswith(b"7"):
            raise Poison("ends in 7")
        return [Output(words.target, record.value)] * words.outputs

    counters = Processor(
        words.source,
        group=f"group-of-{words.source}",
        handler=copy,
        bootstrap=words.bootstrap,
        guarantee=words.guarantee,
        batch_size=200,
        instance=words.instance,
        consumer_settings=words.consumer_settings,
    ).run()
    print(f"ended cleanly: {counters}")


if __name__ == "__main__":
    main()
