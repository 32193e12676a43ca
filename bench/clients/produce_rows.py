"""Fills a topic with rows as JSON beside their schema, as JsonConverter reads them: {"schema": …, "payload": {"id": 7, …}}."""

from confluent_kafka import Producer

from bench.clients.options import print_result, read_options

FLUSH_TIMEOUT_S = 120
SCHEMA = (
    '{"type":"struct","name":"order","optional":false,"fields":['
    '{"field":"id","type":"int64","optional":false},{"field":"item","type":"string","optional":true},'
    '{"field":"price","type":"double","optional":true},{"field":"paid","type":"boolean","optional":true}]}'
)


def row(number: int) -> bytes:
    paid = "true" if number % 2 == 0 else "false"
    payload = (
        f'{{"id":{number},"item":"bio-impedance meter {number:07}","price":{number % 1000}.25,"paid":{paid}}}'
    )
    return f'{{"schema":{SCHEMA},"payload":{payload}}}'.encode()


def main() -> None:
    options = read_options()
    producer = Producer(
        {"bootstrap.servers": options["bootstrap"], "acks": "all", "queue.buffering.max.messages": 500_000}
    )
    failed = 0
    for start in range(0, options["record_count"], 50_000):
        messages = [
            {"value": row(number)} for number in range(start, min(start + 50_000, options["record_count"]))
        ]
        for partition in range(options["partition_count"]):
            own = messages[partition :: options["partition_count"]]
            failed += len(own) - producer.produce_batch(options["topic"], own, partition=partition)
        failed += producer.flush(FLUSH_TIMEOUT_S)
    if failed:
        raise SystemExit(f"{failed} records were not acknowledged")
    print_result(record_count=options["record_count"])


if __name__ == "__main__":
    main()
