"""IncrementalAlterConfigs' operations on one resource's own values, as a pure function."""

from collections.abc import Callable, Iterable, Mapping

from penstock.config.option import LIST, Option
from penstock.model.errors import ApiError, ErrorCode

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3

_WORDS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def alter(
    current: Mapping[str, str],
    operations: Iterable[tuple[str, int, str | None]],
    *,
    option_of: Callable[[str], Option | None],
) -> dict[str, str]:
    """The values after `operations` (name, operation, value).

    An APPEND to a list that is not set starts from the option's default. The outcome is not checked here.
    """
    operations = list(operations)
    names = [name for name, _, _ in operations]
    if len(set(names)) != len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [name for name, operation, value in operations if value is None and operation != DELETE]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    altered = dict(current)
    for name, operation, value in operations:
        if operation == DELETE:
            altered.pop(name, None)
        elif operation == SET:
            altered[name] = value or ""
        elif operation in _WORDS:
            altered[name] = _changed_list(altered.get(name), name, operation, value or "", option_of(name))
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return altered


def _changed_list(current: str | None, name: str, operation: int, value: str, option: Option | None) -> str:
    if option is None or option.kind is not LIST:
        text = f"Can't {_WORDS[operation]} to key {name} because its type is not LIST."
        raise ApiError(ErrorCode.INVALID_CONFIG, text)
    if current is None:
        current = option.default_text or ""
    items = [item for item in current.split(",") if item]
    for item in value.split(","):
        if operation == APPEND:
            if item not in items:
                items.append(item)
        elif item in items:
            items.remove(item)
    return ",".join(items)
