"""Roles of those who come with groups of another system."""

from collections.abc import Mapping

from penstock.console.access.doors import Access
from penstock.console.access.roles import ADMIN, OPERATOR, VIEWER
from penstock.console.settings.model import ClusterSettings, ConsoleSettings, LoginSettings


def access(roles_of: Mapping[str, tuple[str, ...]]) -> Access:
    return Access(
        ConsoleSettings(
            clusters=(ClusterSettings(name="local", bootstrap="127.0.0.1:9"),),
            login=LoginSettings(method="oidc", roles_of=roles_of),
            roles={role.name: role for role in (ADMIN, OPERATOR, VIEWER)},
        )
    )


def test_a_group_called_admin_is_no_admin_where_the_settings_name_groups() -> None:
    doors = access({"group:kafka": ("operator",), "*": ("viewer",)})
    assert doors.roles_of("ana", ("admin", "kafka")) == ("viewer", "operator")


def test_where_the_settings_name_no_group_a_group_with_the_name_of_a_role_has_it() -> None:
    assert access({"*": ("viewer",)}).roles_of("ana", ("operator", "staff")) == ("viewer", "operator")


def test_nobody_calls_himself_a_group() -> None:
    assert access({"group:kafka": ("operator",)}).roles_of("group:kafka") == ()
