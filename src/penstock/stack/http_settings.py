"""Settings of the HTTP services: a name or value that a service would refuse is told before it is started."""

from __future__ import annotations

from collections.abc import Callable, Collection

from penstock.client.errors import BadOption
from penstock.stack.stack import Service, Stack

Load = Callable[[dict[str, str]], list[str]]
"""Reads properties as the service does: warnings, or BadOption. ModuleNotFoundError where its packages are not there: then it
is left to the service to say so."""


def checked_by(load: Load, *, own: Collection[str]) -> Callable[[str, str], str | None]:
    """For `Service.setting_problem`. `own` are properties that the stack itself says."""

    def problem(name: str, value: str) -> str | None:
        if name in own:
            return f"`{name}` is not for you to set: the stack says it"
        try:
            warnings = load({name: value})
        except ModuleNotFoundError:
            return None
        except BadOption as error:
            return str(error)
        return warnings[0] if warnings else None

    return problem


def settings_of(stack: Stack, service: str) -> dict[str, str]:
    """NAME=VALUE of the stack as properties."""
    given = (setting.partition("=") for setting in stack.settings_of(service))
    return {name.strip(): value.strip() for name, _, value in given}


def check_settings(name: str) -> Callable[[Stack], None]:
    """For `Service.check_settings`: each by itself."""

    def check(stack: Stack) -> None:
        from penstock.client.errors import UserError
        from penstock.stack.stack import service_named

        service: Service = service_named(stack.services, name)
        for setting, value in settings_of(stack, name).items():
            problem = service.setting_problem(setting, value) if service.setting_problem is not None else None
            if problem is not None:
                raise UserError(f"{name}: {problem}")

    return check
