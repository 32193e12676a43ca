"""Where the other members find the schema registry of the stack. Brokers need it, too, and the registry's own row needs them."""

from __future__ import annotations

from penstock.model.endpoints import bracketed
from penstock.stack import secured
from penstock.stack.stack import Stack

NAME = "registry"


def url_of(stack: Stack) -> str | None:
    """None: the stack has none."""
    members = stack.members_of(NAME)
    if not members:
        return None
    host, port = stack.address_of(members[0])
    return f"{'https' if stack.is_secure else 'http'}://{bracketed(host)}:{port}"


def broker_settings(stack: Stack) -> dict[str, str]:
    """What tells brokers of it, for topics with schema validation. They are as trusted as the admin, and log in as it."""
    url = url_of(stack)
    if url is None:
        return {}
    settings = {"confluent.schema.registry.url": url}
    if stack.is_secure:
        user, password = secured.admin_login(stack)
        settings |= {
            "confluent.basic.auth.user.info": f"{user}:{password}",
            "confluent.ssl.truststore.location": str(secured.authority_file(stack)),
        }
    return settings
