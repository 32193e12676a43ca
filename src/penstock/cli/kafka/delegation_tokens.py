"""kafka-delegation-tokens: delegation tokens are made, renewed, ended and listed."""

from collections.abc import Sequence
from datetime import datetime

from penstock.admin.tokens import Token, create_token, expire_token, parse_principal, renew_token, tokens
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import COMMAND_CONFIG, Option, Options, OptionTable, UsageError
from penstock.client.errors import Refused
from penstock.security.principals import Principal

ACTIONS = ("create", "renew", "expire", "describe")
NEEDED = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
UNFIT = {
    "create": ["hmac", "renew-time-period", "expiry-time-period"],
    "renew": ["renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"],
    "expire": ["renew", "max-life-time-period", "renew-time-period", "owner-principal"],
    "describe": ["renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"],
}
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
HEADERS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def _optional(name: str, doc: str, value: str) -> Option:
    return Option(name, doc, value, value_is_optional=True)


TABLE = OptionTable(
    "kafka-delegation-tokens",
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    [
        COMMAND_CONFIG._replace(
            doc="REQUIRED: a properties file for the client. Tokens are only for clients that prove who they are, so it says how."
        ),
        Option("create", "Make a token; --renewer-principal names others that may renew it."),
        Option("renew", "Let a token be good for longer."),
        Option("expire", "Let a token be good until another time, or no more."),
        Option("describe", "Print the tokens that you own, may renew, or are allowed to see."),
        _optional(
            "owner-principal",
            "With --create: whose token it is, if not yours. With --describe: only tokens of this one; may be repeated.",
            "TYPE:NAME",
        ),
        _optional("renewer-principal", "Who may renew the token, too; may be repeated.", "TYPE:NAME"),
        _optional(
            "max-life-time-period",
            "How many milliseconds the token may be good at most; -1 means delegation.token.max.lifetime.ms.",
            "MS",
        ),
        _optional(
            "renew-time-period",
            "For how many milliseconds from now; -1 means delegation.token.expiry.time.ms.",
            "MS",
        ),
        _optional("expiry-time-period", "In how many milliseconds the token ends; -1 means now.", "MS"),
        _optional("hmac", "The token's HMAC, as it was printed.", "HMAC"),
    ],
    examples=[
        "kafka-delegation-tokens --bootstrap-server localhost:9093 --command-config ana.properties --create "
        "--max-life-time-period -1 --renewer-principal User:scheduler",
        "kafka-delegation-tokens --bootstrap-server localhost:9093 --command-config ana.properties --describe",
    ],
)


def execute(given: Options) -> int:
    actions = [action for action in ACTIONS if given.has(action)]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    given.require("bootstrap-server", "command-config", *NEEDED[actions[0]])
    given.refuse_with(actions[0], UNFIT[actions[0]])
    try:
        {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[actions[0]](given)
    except Refused as error:
        tool.complain(f"{error.exception_name}: {error}" if error.exception_name else str(error))
        return 1
    return 0


def _create(given: Options) -> None:
    renewers, owners = _principals(given, "renewer-principal"), _principals(given, "owner-principal")
    lifetime_ms = given.required_integer("max-life-time-period")
    with cluster_client(given) as client:
        print(
            f"Calling create token operation with renewers :{_listed(renewers)} , max-life-time-period :{lifetime_ms}",
            flush=True,
        )
        token = create_token(
            client, owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=lifetime_ms
        )
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


def _renew(given: Options) -> None:
    hmac, period_ms = given.value("hmac") or "", given.required_integer("renew-time-period")
    with cluster_client(given) as client:
        print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}", flush=True)
        expires_ms = renew_token(client, hmac, period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires_ms)}", end="")


def _expire(given: Options) -> None:
    hmac, period_ms = given.value("hmac") or "", given.required_integer("expiry-time-period")
    with cluster_client(given) as client:
        print(
            f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}", flush=True
        )
        expires_ms = expire_token(client, hmac, period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires_ms)}", end="")


def _describe(given: Options) -> None:
    owners = _principals(given, "owner-principal")
    whose = f"owners: {_listed(owners)}" if owners else "current user."
    with cluster_client(given) as client:
        print(f"Calling describe token operation for {whose}", flush=True)
        found = tokens(client, owners)
    print(f"Total number of tokens : {len(found)}", end="")
    _print(found)


def _principals(given: Options, option: str) -> list[Principal]:
    return [parse_principal(text) for text in given.values(option)]


def _print(found: Sequence[Token]) -> None:
    _print_row(HEADERS)
    for token in found:
        dates = map(_date, (token.issued_ms, token.expires_ms, token.max_ms))
        _print_row(
            (
                token.token_id,
                token.hmac,
                str(token.owner),
                str(token.requester),
                _listed(token.renewers),
                *dates,
            )
        )


def _print_row(cells: Sequence[str]) -> None:
    """With a line end on either side, as Kafka's tool prints it."""
    print("\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)))


def _listed(principals: Sequence[Principal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _date(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")
