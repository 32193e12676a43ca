"""penstock takeover: broker by broker, what one keeps goes to another, and is compared before the first is released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.cluster import moving
from penstock.cli.verbs.common_options import connected, output_option

if TYPE_CHECKING:
    from penstock.admin.takeover import Pair
    from penstock.client.clients import Connection


@click.command()
@click.argument("pairs", metavar="OLD:NEW...", nargs=-1, required=True)
@click.option("--plan", "only_plans", is_flag=True, help="Only say what would move.")
@click.option("--copy-only", is_flag=True, help="Stop before the first broker is released: copy and compare.")
@moving
@output_option
@connected
def takeover(
    connection: Connection,
    pairs: tuple[str, ...],
    only_plans: bool,
    copy_only: bool,
    throttle: int | None,
    at_once: int,
    output: str,
) -> int:
    """Give all that broker OLD keeps to broker NEW, for each pair, one after the other, while the cluster serves.

    NEW gets copies beside those of OLD; the records of both are compared; then NEW takes OLD's place, and OLD can be
    stopped. Ctrl-C is a pause: the same command again goes on. The way back is the same with NEW:OLD, while OLD runs.

    \b
    Example:
      penstock takeover 1:4 2:5 3:6 --plan
      penstock takeover 1:4 --throttle 50000000
      penstock takeover 4:1
    """
    from penstock.admin import takeover as steps
    from penstock.cli.verbs.moving import moved
    from penstock.cli.verbs.output import say, show_json
    from penstock.cli.verbs.progress import narration
    from penstock.client.errors import UserError

    wanted = [steps.parse_pair(each) for each in pairs]
    steps.check_pairs(wanted, steps.live_brokers(connection))
    if only_plans:
        _plan(connection, wanted, output)
        return 0
    done = []
    for pair in wanted:
        moved(
            lambda show, pair=pair: steps.copy(
                connection, pair, throttle=throttle, at_once=at_once, show=show
            ),  # type: ignore[misc]
            f"broker {pair.new} has a copy of all that broker {pair.old} keeps",
        )
        with narration() as (tell, waiting):
            tell(f"comparing brokers {pair.old} and {pair.new}")
            compared = steps.compare(connection, pair, tell=waiting)
        if compared.not_compared:
            say(f"compacted, so only in sync and not compared: {', '.join(compared.not_compared)}")
        say(f"{compared.records} records of {compared.partitions} partitions are the same")
        left = steps.kept(connection, pair.old)
        if not copy_only:
            moved(
                lambda show, pair=pair: steps.hand_over(connection, pair, at_once=at_once, show=show),  # type: ignore[misc]
                f"broker {pair.new} is in the place of broker {pair.old}",
            )
            left = steps.kept(connection, pair.old)
            if left:
                raise UserError(
                    f"broker {pair.old} still keeps {left} partitions, which are newer than the copy: run this again"
                )
            say(f"broker {pair.old} keeps nothing any more, and can be stopped")
        done.append(
            {"old": pair.old, "new": pair.new, "partitions": compared.partitions, "records": compared.records,
             "not_compared": compared.not_compared, "left": left}
        )  # fmt: skip
    if output == "json":
        show_json(done)
    return 0


def _plan(connection: Connection, pairs: list[Pair], output: str) -> None:
    from penstock.admin import takeover as steps
    from penstock.cli.verbs.output import show, show_table

    rows = [[pair.old, pair.new, steps.kept(connection, pair.old)] for pair in pairs]
    names = ("old", "new", "partitions")
    show(
        output,
        lambda: [dict(zip(names, row, strict=True)) for row in rows],
        lambda: show_table(names, rows),
    )
