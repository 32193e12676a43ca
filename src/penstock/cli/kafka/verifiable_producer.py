"""kafka-verifiable-producer: sends numbers that count up, and prints of each whether it was acknowledged."""

from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.cli.kafka.tool import complain, print_event
from penstock.client.clients import Connection
from penstock.load.counting import CountingProducer, ProducerPlan

ACKS = ("0", "1", "-1")

TABLE = OptionTable(
    "kafka-verifiable-producer",
    "Writes numbers, each one higher than the last, and prints what became of them as lines of JSON.",
    [
        Option("topic", "REQUIRED: the topic to write to.", "NAME"),
        Option("max-messages", "End after so many; -1 goes on until it is ended.", "N", "-1"),
        Option("throughput", "How many records per second at most; -1 for no limit.", "RATE", "-1"),
        Option("acks", f"Which replicas must have a record: {', '.join(ACKS)} (all).", "ACKS", "-1"),
        Option(
            "message-create-time",
            "The timestamp of the first record, in ms; time goes on from there. -1 for now.",
            "MS",
            "-1",
        ),
        Option("value-prefix", "A number that stands before each value, with a dot.", "N"),
        Option("repeating-keys", "Keys from 0 up to this number, not included, again and again.", "N"),
    ],
    old_spellings={"producer.config": "command-config"},
    examples=[
        "kafka-verifiable-producer --bootstrap-server localhost:9092 --topic orders --max-messages 100",
        "kafka-verifiable-producer --bootstrap-server localhost:9092 --topic orders --throughput 10 --repeating-keys 5",
    ],
)


def execute(given: Options) -> int:
    given.require("topic", "bootstrap-server")
    given.modernise()
    plan = _plan(given)
    acks = given.value("acks") or ""
    if acks not in ACKS:
        raise OptionError(f"argument --acks: invalid choice: '{acks}' (choose from {{{','.join(ACKS)}}})")
    # Nothing is sent twice, so that each answer is the answer to one record; a file may say otherwise.
    properties = {
        "acks": acks,
        "retries": "0",
        "client.id": "verifiable-producer",
        **client_properties(given),
    }
    stop = StopSignal()
    connection = Connection(given.value("bootstrap-server") or "", properties)
    unanswered = CountingProducer(
        connection, plan, tell=print_event, complain=complain, is_over=stop.is_given
    ).run()
    if stop.is_given():
        return stop.exit_code
    return 1 if unanswered else 0


def _plan(given: Options) -> ProducerPlan:
    throughput = given.number("throughput")
    assert throughput is not None
    repeating_keys = given.integer("repeating-keys")
    if repeating_keys is not None and repeating_keys <= 0:
        raise OptionError("--repeating-keys must be greater than 0.")
    create_time_ms = given.required_integer("message-create-time")
    return ProducerPlan(
        topic=given.value("topic") or "",
        max_messages=given.required_integer("max-messages"),
        throughput=throughput,
        create_time_ms=None if create_time_ms < 0 else create_time_ms,
        prefix=given.integer("value-prefix"),
        repeating_keys=repeating_keys,
    )
