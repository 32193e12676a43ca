"""penstock cluster: the cluster and its brokers."""

import click

from penstock.cli.clients import Connection, result
from penstock.cli.verbs.common_options import connected, output_option


@click.command()
@output_option
@connected
def cluster(connection: Connection, output: str) -> None:
    """Show the cluster's id, its controller and its brokers.

    \b
    Example:
      penstock cluster -o json
    """
    from penstock.cli.verbs.output import console, show_json, show_table

    admin = connection.admin()
    described = result(admin.describe_cluster())
    controller = described.controller.id if described.controller is not None else None
    brokers = sorted(described.nodes, key=lambda node: node.id)
    if output == "json":
        show_json(
            {
                "cluster_id": described.cluster_id,
                "controller": controller,
                "brokers": [
                    {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
                    for node in brokers
                ],
            }
        )
        return
    console().print(f"cluster [bold]{described.cluster_id}[/bold]")
    rows = [
        (
            str(node.id),
            f"{node.host}:{node.port}",
            node.rack or "",
            "controller" if node.id == controller else "",
        )
        for node in brokers
    ]
    show_table(["broker", "address", "rack", ""], rows)
