"""penstock join: look whether a broker can become a member of a cluster of Apache Kafka, and start it there."""

from __future__ import annotations

import sys

import click

from penstock.cli.verbs.common_options import output_option


@click.command()
@click.option(
    "--config", required=True, metavar="FILE", help="A server.properties, as Kafka's brokers have one."
)
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="One option; may be repeated.")
@click.option("--check", "only_checks", is_flag=True, help="Only look: say what stands in the way, and end.")
@output_option
def join(config: str, sets: tuple[str, ...], only_checks: bool, output: str) -> int:
    """Make a broker a member of a running cluster of Apache Kafka 3.5 to 3.9 in ZooKeeper mode.

    First the cluster is looked at: where it is, whether the id is free, what its brokers speak, their features, record
    formats and security, and whether a migration to KRaft was begun. Nothing is written before that. Ends with 1 and one
    line when something stands in the way. Else it goes on as `penstock broker --config FILE` does, until SIGTERM.

    \b
    Example:
      penstock join --config server.properties --check
      penstock join --config server.properties
    """
    import argparse

    from penstock.broker.adoption.joining import first_line
    from penstock.broker.adoption.look import look
    from penstock.broker.serving import StartError
    from penstock.cli import broker
    from penstock.cli.verbs.output import show_json
    from penstock.client.errors import UserError

    args = broker.parser().parse_args(["--config", config, *(f"--set={each}" for each in sets)])
    assert isinstance(args, argparse.Namespace)
    try:
        properties = broker.read_properties(args.config)
        found = look(properties, broker.read_sets(args, properties))
    except StartError as error:
        raise UserError(str(error)) from None
    if output == "json":
        show_json([{"check": each.check, "stops": each.stops, "text": each.text} for each in found])
    else:
        for each in found:
            click.echo(f"{'stands in the way' if each.stops else 'note'} ({each.check}): {each.text}")
        if not any(each.stops for each in found):
            click.echo("nothing stands in the way")
    if first_line(found) is not None:
        return 1
    if only_checks:
        return 0
    sys.stdout.flush()
    return broker.start(args)
