"""Fills a topic with rows as JSON beside their schema, as JsonConverter reads them: {"schema": …, "payload": {"id": 7, …}}."""

from bench.clients.filling import fill

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
    fill(lambda numbers: map(row, numbers))


if __name__ == "__main__":
    main()
