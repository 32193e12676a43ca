"""What a row of the table is made of: steps, who asks, and what a step says."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.schema import Struct

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithAuthorizer, WithConfig, WithImage
    from penstock.broker.requests.call import Call

    class Needed(WithAuthorizer, WithConfig, WithImage, Protocol): ...


T = TypeVar("T")

REFUSALS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Asker(NamedTuple):
    """Who sent a request, with what the question needs to be put."""

    node: "Needed"
    call: "Call"

    def may(
        self, operation: Operation, resource_type: ResourceType, name: str, *, tells: bool = True
    ) -> bool:
        return self.node.authorizer.allows(self.call, operation, resource_type, name, tells=tells)

    def may_in_cluster(self, operation: Operation, *, tells: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, tells=tells)

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether to some resource of the type."""
        return self.node.authorizer.allows_any(self.call, operation, resource_type)

    def need_in_cluster(self, operation: Operation) -> None:
        self.need(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def need(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        if not self.may(operation, resource_type, name):
            raise ApiError(REFUSALS[resource_type])

    def topic_name(self, topic: Any) -> str | None:
        """Of a struct that names a topic, or says its id; None where no topic has the id: that is no secret."""
        topic_id = getattr(topic, "topic_id", NO_ID)
        if topic_id == NO_ID:
            return str(topic.name or "")
        known = self.node.image.topic_with_id(topic_id)
        return None if known is None else known.name

    def may_topic(self, operation: Operation, topic: Any, *, tells: bool = True) -> bool:
        name = self.topic_name(topic)
        return name is None or self.may(operation, ResourceType.TOPIC, name, tells=tells)


class Passage(NamedTuple):
    """A request that is let through in part, or whose answer is looked through."""

    request: Any
    """What the handler gets. None: there is nothing left for it, and it is not asked."""
    finish: Callable[[Any], None]
    """Puts the refusals into the answer, and takes out what is hidden."""


Step = Callable[[Asker, Any, "type[Any]"], "Passage | None"]
"""(who asks, the request, the type of the response). None: nothing to do. ApiError: all of the request is refused."""


class Needs:
    """The whole request, on the resource that a field of it names; without a field, on the cluster. One of several
    operations is enough."""

    def __init__(
        self, *operations: Operation, on: ResourceType = ResourceType.CLUSTER, named: str | None = None
    ) -> None:
        self.operations = operations
        self.resource_type = on
        self.named = named

    def __call__(self, asker: Asker, request: Any, response: "type[Any]") -> None:
        name = CLUSTER_NAME if self.named is None else getattr(request, self.named) or ""
        *others, last = self.operations
        if not any(asker.may(operation, self.resource_type, name, tells=False) for operation in others):
            asker.need(last, self.resource_type, name)


class Each:
    """Each item of a list in the request. The answer to one that is refused repeats what it names, with the error in it or in
    each of its parts."""

    def __init__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        asked: str,
        answered: str,
        *,
        name: str = "name",
        unless: Operation | None = None,
        also: "dict[str, Any] | None" = None,
    ) -> None:
        """`name`: the field that names it, in the response at least. `unless`: an operation on the cluster that allows all.
        `also`: fields of a refusal whose value says that there is none."""
        self.operation = operation
        self.resource_type = resource_type
        self.asked, self.answered, self.name = asked, answered, name
        self.unless = unless
        self.also = also or {}

    def __call__(self, asker: Asker, request: Any, response: "type[Any]") -> Passage | None:
        if self.unless is not None and asker.may_in_cluster(self.unless, tells=False):
            return None
        kind = struct_of(response, self.answered)
        code = REFUSALS[self.resource_type]

        def refuse(item: Any) -> Struct | None:
            if self.resource_type is ResourceType.TOPIC and self.name == "name":
                is_allowed = asker.may_topic(self.operation, item)
            else:
                name = item if isinstance(item, str) else getattr(item, self.name)
                is_allowed = asker.may(self.operation, self.resource_type, name)
            return None if is_allowed else refusal_of(kind, item, code, name=self.name, also=self.also)

        return take_out(request, self.asked, self.answered, refuse)


class Hides:
    """Each item of a list in the answer: what may not be seen is left out."""

    def __init__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        *answered: str,
        name: str,
        unless: Operation | None = None,
    ) -> None:
        """`answered`: fields of the response, from the outer list to the innermost."""
        self.operation = operation
        self.resource_type = resource_type
        self.answered = answered
        self.name = name
        self.unless = unless

    def __call__(self, asker: Asker, request: Any, response: "type[Any]") -> Passage | None:
        if self.unless is not None and asker.may_in_cluster(self.unless, tells=False):
            return None

        def is_seen(item: Any) -> bool:
            return asker.may(self.operation, self.resource_type, getattr(item, self.name), tells=False)

        def finish(answer: Any) -> None:
            *outer, inner = self.answered
            holders = [answer]
            for field in outer:
                holders = [item for holder in holders for item in getattr(holder, field)]
            for holder in holders:
                setattr(holder, inner, [item for item in getattr(holder, inner) if is_seen(item)])

        return Passage(request, finish)


# --- taking out of a request, and putting into an answer


def take_out(
    request: Any, asked: str, answered: str, refuse: Callable[[Any], Struct | None]
) -> Passage | None:
    """Without the items for which `refuse` has an answer: it stands where the handler's would stand."""
    items = getattr(request, asked) or ()
    refusals = [refuse(item) for item in items]
    if not any(refusals):
        return None
    allowed = [item for item, refusal in zip(items, refusals, strict=True) if refusal is None]
    return Passage(
        changed(request, **{asked: allowed}) if allowed else None,
        lambda answer: setattr(answer, answered, merged(getattr(answer, answered) or (), refusals)),
    )


def merged(answers: Iterable[Any], refusals: Sequence[Struct | None]) -> list[Any]:
    """`refusals` has None where the handler has an answer. One that does not answer item by item gets them behind its own."""
    given = list(answers)
    if len(given) != sum(refusal is None for refusal in refusals):
        return given + [refusal for refusal in refusals if refusal is not None]
    rest = iter(given)
    return [next(rest) if refusal is None else refusal for refusal in refusals]


def changed(struct: T, **fields: Any) -> T:
    other = copy(struct)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def struct_of(kind: "type[Struct]", field: str) -> "type[Struct]":
    """Of the items of a list."""
    return next(nested for name, *_, nested in kind.FIELDS if name == field and nested is not None)


_ERRORS: Final = ("error_code", "partition_error_code")
_NAMES: Final = (
    "name", "topic", "topic_name", "topic_id", "partition_index", "partition", "group_id", "resource_type", "resource_name",
)  # fmt: skip


def refusal_of(
    kind: "type[Struct]",
    item: Any,
    code: ErrorCode,
    *,
    name: str = "name",
    also: "dict[str, Any] | None" = None,
) -> Struct:
    """The answer of a type to an item that is refused: the same names and numbers, and the error where the type has a place
    for it."""
    result: Any = kind()
    is_plain = not isinstance(item, Struct)
    has_error = False
    for field, _, _, nullable, _, _, nested in kind.FIELDS:
        if field in _ERRORS:
            setattr(result, field, int(code))
            has_error = True
        elif also and field in also:
            setattr(result, field, also[field])
        elif field == "error_message" and nullable is not None:
            result.error_message = None
        elif is_plain and field in (name, "partition_index", "partition"):
            setattr(result, field, item)
        elif not is_plain and field in _NAMES and field in item.__slots__:
            setattr(result, field, getattr(item, field))
        elif nested is not None and not is_plain and not has_error and _has_error(nested):
            parts = next(
                value for each in item.__slots__ if isinstance(value := getattr(item, each), (list, tuple))
            )
            setattr(result, field, [refusal_of(nested, part, code, also=also) for part in parts])
    return result  # type: ignore[no-any-return]


def _has_error(kind: "type[Struct]") -> bool:
    return any(field in _ERRORS for field, *_ in kind.FIELDS)
