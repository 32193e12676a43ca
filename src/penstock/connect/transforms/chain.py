"""The transforms of a configuration, in their order, each with its predicate.

`load` makes a class of a name: penstock.connect.plugins knows which. What is wrong is told in Kafka's words: the first mistake by
`Chain.from_config`, all of them, by the names of their settings, by `mistakes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from penstock.connect.common_settings import CONDITION_SETTINGS
from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import Configured, Predicate, Transformation
from penstock.connect.settings import Setting

TRANSFORMS, PREDICATES = "transforms", "predicates"
TYPE, PREDICATE, NEGATE = "type", "predicate", "negate"
Load = Callable[[str], type[Configured]]
"""The class of a name. InvalidConfig or LookupError when there is none."""
_KINDS: Final[Mapping[str, tuple[str, type[Configured]]]] = {
    TRANSFORMS: ("Transformation", Transformation),
    PREDICATES: ("Predicate", Predicate),
}


class Stage(NamedTuple):
    alias: str
    transformation: Transformation
    predicate: Predicate | None
    is_negated: bool


class Chain:
    def __init__(self, stages: tuple[Stage, ...] = ()) -> None:
        self.stages = stages
        # What `apply` needs, without a name to look up.
        self._steps = tuple(
            (
                stage.transformation.apply,
                None if stage.predicate is None else stage.predicate.test,
                not stage.is_negated,
            )
            for stage in stages
        )

    @classmethod
    def from_config(cls, config: Mapping[str, str], load: Load) -> Chain:
        """InvalidConfig for the first mistake; what was made until then is closed."""
        for said in mistakes(config, load).values():
            raise InvalidConfig(said[0])
        stages: list[Stage] = []
        try:
            for alias in aliases(config, TRANSFORMS):
                stages.append(_stage(config, alias, load))
        except BaseException:
            cls(tuple(stages)).close()
            raise
        return cls(tuple(stages))

    def apply(self, record: Any) -> Any:
        """None: it is left out, and later transforms do not see it."""
        for apply, test, wanted in self._steps:
            if test is None or test(record) is wanted:
                record = apply(record)
                if record is None:
                    return None
        return record

    def close(self) -> None:
        """All of them, whatever one of them raises; the first error comes at the end."""
        first: Exception | None = None
        for stage in self.stages:
            for each in (stage.transformation, stage.predicate):
                try:
                    if each is not None:
                        each.close()
                except Exception as error:
                    first = first or error
        if first is not None:
            raise first

    def __len__(self) -> int:
        return len(self.stages)


def aliases(config: Mapping[str, str], kind: str) -> list[str]:
    """InvalidConfig for the same one twice."""
    text = (config.get(kind) or "").strip()
    names = [name.strip() for name in text.split(",")] if text else []
    if len(set(names)) < len(names):
        raise InvalidConfig(
            f"Invalid value [{', '.join(names)}] for configuration {kind}: Duplicate alias provided."
        )
    return names


def with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in config.items() if name.startswith(prefix)}


def _stage(config: Mapping[str, str], alias: str, load: Load) -> Stage:
    prefix = f"{TRANSFORMS}.{alias}."
    given = with_prefix(config, prefix)
    transformation = _loaded(config, prefix, TRANSFORMS, load)()
    assert isinstance(transformation, Transformation)
    predicate = _predicate(config, given[PREDICATE].strip(), load) if PREDICATE in given else None
    transformation.configure(_own(given))
    negate = CONDITION_SETTINGS[NEGATE].parse(given.get(NEGATE))
    return Stage(alias, transformation, predicate, negate)


def _predicate(config: Mapping[str, str], alias: str, load: Load) -> Predicate:
    inside = f"{PREDICATES}.{alias}."
    predicate = _loaded(config, inside, PREDICATES, load)()
    assert isinstance(predicate, Predicate)
    predicate.configure(_own(with_prefix(config, inside)))
    return predicate


def _check_negate(prefix: str, given: Mapping[str, str]) -> None:
    if NEGATE in given and PREDICATE not in given:
        raise InvalidConfig(
            f"Config '{prefix}{NEGATE}' was provided but there is no config '{prefix}{PREDICATE}' defining a predicate to be "
            "negated."
        )


def _check_predicate(config: Mapping[str, str], prefix: str, alias: str) -> None:
    if alias.strip() not in aliases(config, PREDICATES):
        raise InvalidConfig(
            f"Invalid value {alias} for configuration {prefix}{PREDICATE}: '{PREDICATES}' names no predicate {alias}"
        )


def _loaded(config: Mapping[str, str], prefix: str, kind: str, load: Load) -> type[Configured]:
    name = config.get(prefix + TYPE)
    if name is None:
        raise InvalidConfig(f'Missing required configuration "{prefix}{TYPE}" which has no default value.')
    called, wanted = _KINDS[kind]
    try:
        found = load(name.strip())
    except (InvalidConfig, LookupError) as error:
        why = str(error) if isinstance(error, InvalidConfig) else f"Class {name} could not be found."
        raise InvalidConfig(f"Invalid value {name} for configuration {prefix}{TYPE}: {why}") from None
    if not issubclass(found, wanted):
        raise InvalidConfig(f"Class class {name} does not implement the {called} interface")
    return found


def mistakes(config: Mapping[str, str], load: Load) -> dict[str, list[str]]:
    """By the names of settings. Nothing: `Chain.from_config` takes it."""
    found = _Mistakes()
    for kind in (TRANSFORMS, PREDICATES):
        if not found.check(kind, partial(aliases, config, kind)):
            continue
        for alias in aliases(config, kind):
            prefix = f"{kind}.{alias}."
            if found.check(prefix + TYPE, partial(_loaded, config, prefix, kind, load)):
                _check_one(config, prefix, _loaded(config, prefix, kind, load), found)
    return found.by_name


class _Mistakes:
    def __init__(self) -> None:
        self.by_name: dict[str, list[str]] = {}

    def check(self, name: str, ask: Callable[[], object]) -> bool:
        try:
            ask()
        except InvalidConfig as error:
            self.by_name.setdefault(name, []).append(str(error))
            return False
        return True


def _check_value(setting: Setting, prefix: str, text: str | None) -> None:
    """What Kafka says of the type has the whole name of the setting; what it says of the value has its name alone."""
    value = replace(setting, name=prefix + setting.name, check=None).parse(text)
    if text is not None and setting.check is not None:
        refusal = setting.check.refusal(setting.name, value)
        if refusal is not None:
            raise InvalidConfig(str(refusal))


def _check_one(config: Mapping[str, str], prefix: str, of_class: type[Configured], found: _Mistakes) -> None:
    given = with_prefix(config, prefix)
    settings = [setting for setting in of_class.settings if setting.name not in (PREDICATE, NEGATE)]
    if issubclass(of_class, Transformation):
        settings.append(CONDITION_SETTINGS[NEGATE])
        found.check(prefix + TYPE, partial(_check_negate, prefix, given))
        named = given.get(PREDICATE)
        if named is not None:
            found.check(prefix + PREDICATE, partial(_check_predicate, config, prefix, named))
    # All of them, and not only until the first that is wrong.
    answers = [
        found.check(prefix + setting.name, partial(_check_value, setting, prefix, given.get(setting.name)))
        for setting in settings
    ]
    if all(answers):
        # What the table cannot tell: as the whole is wrong, it is told at its type.
        found.check(prefix + TYPE, partial(of_class().configure, _own(given)))


def _own(given: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in given.items() if name not in (TYPE, PREDICATE, NEGATE)}
