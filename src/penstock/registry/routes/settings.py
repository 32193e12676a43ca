"""/config and /mode: of everything, of a context, of a subject."""

from __future__ import annotations

from typing import Any

from penstock.model.acl import Operation
from penstock.registry.decisions.settings import delete_config, delete_mode, set_config, set_mode
from penstock.registry.names import GLOBAL_SUBJECT
from penstock.registry.refusals import no_own_compatibility, no_own_mode, not_permitted
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import Paths, settings_scope
from penstock.registry.scope import LEVEL, READWRITE, mode_in_scope
from penstock.web.call import Answer, Call

CONFIG_BODY = "compatibility, and other fields of the config"
OWN = {"defaultToGlobal": "what counts, where it has none of its own"}


def add_to(paths: Paths, registry: Registry) -> None:
    def scope_for(call: Call, operation: Operation) -> str | None:
        is_change = operation == Operation.ALTER_CONFIGS
        scope = settings_scope(call, is_valid=is_change)
        registry.access.check(call, operation, scope)
        return scope

    async def config(call: Call) -> dict[str, Any]:
        scope = scope_for(call, Operation.DESCRIBE_CONFIGS)
        if call.flag("defaultToGlobal"):
            return registry.config(scope)
        own = registry.state.configs.get(scope)
        if own is None and scope not in (None, GLOBAL_SUBJECT):
            raise no_own_compatibility(str(scope))
        return {**(own or {}), LEVEL: (own or {}).get(LEVEL) or registry.config(scope)[LEVEL]}

    async def change_config(call: Call) -> Answer:
        scope = scope_for(call, Operation.ALTER_CONFIGS)
        data = await call.body()
        body = call.parsed_json(data)
        return await registry.write(call, lambda state: set_config(state, scope, body), data)

    async def remove_config(call: Call) -> Answer:
        scope = scope_for(call, Operation.ALTER_CONFIGS)
        level = registry.options.level
        return await registry.write(call, lambda state: delete_config(state, scope, level))

    async def mode(call: Call) -> dict[str, str]:
        scope = scope_for(call, Operation.DESCRIBE_CONFIGS)
        if call.flag("defaultToGlobal"):
            return {"mode": mode_in_scope(registry.state, scope)}
        own = registry.state.modes.get(scope)
        if own is None and scope not in (None, GLOBAL_SUBJECT):
            raise no_own_mode(str(scope))
        return {"mode": own or READWRITE}

    async def change_mode(call: Call) -> Answer:
        scope = scope_for(call, Operation.ALTER_CONFIGS)
        data = await call.body()
        body, force = call.parsed_json(data), call.flag("force")
        check_mutable()
        return await registry.write(call, lambda state: set_mode(state, scope, body, force=force), data)

    async def remove_mode(call: Call) -> Answer:
        scope = scope_for(call, Operation.ALTER_CONFIGS)
        recursive = call.flag("recursive")
        check_mutable()
        return await registry.write(call, lambda state: delete_mode(state, scope, recursive=recursive))

    def check_mutable() -> None:
        if not registry.options["mode.mutability"]:
            raise not_permitted("Mode changes are not allowed")

    for suffix, of in (("", "of everything"), ("/{subject}", "of a subject, or of a context")):
        paths.on("GET", f"/config{suffix}", f"The config {of}.", query=OWN)(config)
        paths.on("PUT", f"/config{suffix}", f"Changes the config {of}.", body=CONFIG_BODY)(change_config)
        paths.on("DELETE", f"/config{suffix}", f"Takes away the config {of}.")(remove_config)
        paths.on("GET", f"/mode{suffix}", f"The mode {of}.", query=OWN)(mode)
        paths.on(
            "PUT",
            f"/mode{suffix}",
            f"Changes the mode {of}.",
            query={"force": "IMPORT although there are schemas"},
            body="mode",
        )(change_mode)
        paths.on(
            "DELETE",
            f"/mode{suffix}",
            f"Takes away the mode {of}.",
            query={"recursive": "also those of the context's subjects"},
        )(remove_mode)
