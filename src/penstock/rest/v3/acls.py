"""/acls: access rules, searched, added and removed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from penstock.admin import acls
from penstock.admin.acls import Binding
from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.rest import bodies
from penstock.rest.v3.shapes import CLUSTER, CONTENT, Links, Shape, Views
from penstock.security.acl_filters import AclFilter
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.routes import Routes

Code = TypeVar("Code", bound=IntEnum)

FIELDS: Final = (
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission",
)  # fmt: skip
MAX_BATCH: Final = 1000
_QUERY: Final = dict.fromkeys(FIELDS, "of the rules")


class AclsResource:
    def __init__(self, views: Views) -> None:
        self._views = views

    def add_to(self, routes: Routes) -> None:
        at = f"{CLUSTER}/acls"
        routes.add("GET", at, self.search, "The access rules.", query=_QUERY, content=CONTENT)
        routes.add("POST", at, self.create, "Add a rule.", body="the rule", content=CONTENT)
        routes.add("DELETE", at, self.delete, "Remove the rules that are so.", query=_QUERY, content=CONTENT)
        routes.add("POST", f"{at}:batch", self.create_all, "Add rules.", body="the rules", content=CONTENT)

    async def search(self, call: Call) -> object:
        view = await self._views.of(call)
        wanted = _filter(call)
        found = await view.access.ask(
            lambda cluster: cluster.ask(lambda client: acls.described(client, wanted))
        )
        given = {name: value for name in FIELDS if (value := call.query(name)) is not None}
        address = view.links.to("acls") + (f"?{urlencode(given)}" if given else "")
        return {
            "kind": "KafkaAclList",
            "metadata": {"self": address, "next": None},
            "data": [shape(view.links, one) for one in sorted(found)],
        }

    async def create(self, call: Call) -> object:
        view = await self._views.of(call)
        binding = _binding(await bodies.json_object(call, FIELDS))
        await view.access.ask(lambda cluster: cluster.change(lambda client: acls.create(client, [binding])))
        return Answer(status=201, headers={"Location": shape(view.links, binding)["metadata"]["self"]})

    async def create_all(self, call: Call) -> object:
        view = await self._views.of(call)
        given = bodies.items(await bodies.json_object(call, {"data"}), "data")
        if not 0 < len(given) <= MAX_BATCH:
            raise HttpError(422, f"data must have between 1 and {MAX_BATCH} rules")
        bindings = [_binding(one) for one in bodies.objects(given, FIELDS)]
        await view.access.ask(lambda cluster: cluster.change(lambda client: acls.create(client, bindings)))
        return Answer(status=201)

    async def delete(self, call: Call) -> object:
        view = await self._views.of(call)
        for name in ("resource_type", "pattern_type", "operation", "permission"):
            if (call.query(name) or "UNKNOWN").upper() in ("UNKNOWN", "UNSPECIFIED"):
                raise HttpError(400, f"{name} cannot be unspecified or UNKNOWN")
        wanted = _filter(call)
        gone = await view.access.ask(
            lambda cluster: cluster.change(lambda client: acls.delete(client, [wanted]))
        )
        return {"data": [shape(view.links, one) for one in gone]}


def _filter(call: Call) -> AclFilter:
    return AclFilter(
        _code(ResourceType, "resource_type", call.query("resource_type"), ResourceType.ANY),
        call.query("resource_name") or None,
        _code(PatternType, "pattern_type", call.query("pattern_type"), PatternType.ANY),
        call.query("principal") or None,
        call.query("host") or None,
        _code(Operation, "operation", call.query("operation"), Operation.ANY),
        _code(Permission, "permission", call.query("permission"), Permission.ANY),
    )


def _binding(given: Mapping[str, Any]) -> Binding:
    words = {name: bodies.text(dict(given), name) for name in FIELDS}
    pattern = Pattern(
        _code(ResourceType, "resource_type", words["resource_type"]),
        words["resource_name"],
        _code(PatternType, "pattern_type", words["pattern_type"]),
    )
    rule = Rule(
        acls.checked_principal(words["principal"]),
        words["host"],
        _code(Operation, "operation", words["operation"]),
        _code(Permission, "permission", words["permission"]),
    )
    return Binding(pattern, rule)


def _code(codes: type[Code], name: str, word: str | None, default: Code | None = None) -> Code:
    if not word and default is not None:
        return default
    try:
        return codes[(word or "").upper()]
    except KeyError:
        known = ", ".join(one.name for one in codes if one.value)
        raise HttpError(400, f"{name} must be one of {known}, not '{(word or '')[:50]}'") from None


def shape(links: Links, binding: Binding) -> Shape:
    pattern, rule = binding
    fields = {
        "resource_type": pattern.resource_type.name,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name,
        "permission": rule.permission.name,
    }
    found = links.resource("KafkaAcl", ("acls",), "", **fields)
    found["metadata"] = {"self": f"{links.to('acls')}?{urlencode(fields)}"}
    return found
