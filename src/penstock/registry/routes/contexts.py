"""/contexts: which there are; one that is empty can be deleted."""

from __future__ import annotations

from penstock.model.acl import Operation
from penstock.registry.decisions.delete import delete_context
from penstock.registry.names import DEFAULT_CONTEXT, joined
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import LIST_QUERY, Paths, context_in, portion
from penstock.web.call import Answer, Call


def add_to(paths: Paths, registry: Registry) -> None:
    async def contexts(call: Call) -> list[str]:
        prefix = call.query("contextPrefix") or ""
        found = [DEFAULT_CONTEXT, *sorted(registry.state.contexts)]
        return portion(call, [name for name in found if name.startswith(prefix)])

    async def delete(call: Call) -> Answer:
        context = context_in(call) or DEFAULT_CONTEXT
        registry.access.check(call, Operation.DELETE, joined(context, ""))
        await registry.write(call, lambda state: delete_context(state, context))
        return Answer(status=204)

    query = {"contextPrefix": "only contexts that begin so", **LIST_QUERY}
    paths.routes.add("GET", "/contexts", contexts, "The names of all contexts.", query=query)
    paths.routes.add("DELETE", "/contexts/{context}", delete, "Deletes a context without subjects.")
