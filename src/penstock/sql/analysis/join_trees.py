"""Which sources are joined in which order, and which columns of theirs equal the key of the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.scopes import Aliased, Scope, check_join_columns
from penstock.sql.parsing.statements import Join, Select, Within
from penstock.streams.plan.expressions import ColumnRef, Comparison, Expression, Logical
from penstock.streams.plan.nodes import JoinKind
from penstock.streams.plan.sources import SourceKind, WindowKind

SHOWN_KINDS = {
    JoinKind.INNER: "[INNER] JOIN",
    JoinKind.LEFT: "LEFT [OUTER] JOIN",
    JoinKind.RIGHT: "RIGHT [OUTER] JOIN",
    JoinKind.FULL: "[FULL] OUTER JOIN",
}


@dataclass(frozen=True, slots=True)
class JoinOn:
    """`left` and `right` are the sources of the two sides of the condition, turned so that the new source is right. `is_flipped`:
    the text has them the other way round."""

    left: Aliased
    left_expression: Expression
    right: Aliased
    right_expression: Expression
    kind: JoinKind
    within: Within | None
    is_flipped: bool = False

    def flipped(self) -> JoinOn:
        return replace(
            self,
            left=self.right,
            left_expression=self.right_expression,
            right=self.left,
            right_expression=self.left_expression,
            is_flipped=True,
        )

    @property
    def as_written(self) -> tuple[Expression, Expression]:
        pair = (self.left_expression, self.right_expression)
        return (pair[1], pair[0]) if self.is_flipped else pair


@dataclass(frozen=True, slots=True)
class Leaf:
    source: Aliased

    @property
    def sources(self) -> tuple[Aliased, ...]:
        return (self.source,)

    @property
    def equal_to_key(self) -> tuple[Expression, ...]:
        return ()

    @property
    def key_columns(self) -> tuple[ColumnRef, ...]:
        return ()

    @property
    def kind(self) -> SourceKind:
        return self.source.source.kind


@dataclass(frozen=True, slots=True)
class Tree:
    left: Tree | Leaf
    right: Leaf
    on: JoinOn

    @property
    def sources(self) -> tuple[Aliased, ...]:
        return (*self.left.sources, *self.right.sources)

    @property
    def kind(self) -> SourceKind:
        both = self.left.kind is SourceKind.TABLE and self.right.kind is SourceKind.TABLE
        return SourceKind.TABLE if both else SourceKind.STREAM

    @property
    def equal_to_key(self) -> tuple[Expression, ...]:
        """Expressions that equal the result's key. None of a FULL join: either side may be NULL."""
        if self.on.kind is JoinKind.FULL:
            return ()
        own = (self.on.left_expression, self.on.right_expression)
        below = self.left.equal_to_key
        return _distinct((*own, *below)) if any(each in below for each in own) else _distinct(own)

    @property
    def key_columns(self) -> tuple[ColumnRef, ...]:
        """Columns of sources that may give the key its name."""
        if self.on.kind is JoinKind.FULL:
            return ()
        equal = self.equal_to_key
        candidates = (*self.left.key_columns, self.on.left_expression, self.on.right_expression)
        return tuple(
            each
            for each in _distinct(candidates)
            if isinstance(each, ColumnRef) and each.source and each in equal
        )


def _distinct(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(dict.fromkeys(expressions))


def joins_of(select: Select, scope: Scope) -> Tree:
    _check_sources(scope)
    found: Tree | Leaf = Leaf(scope.first)
    for join, source in zip(select.joins, scope.sources[1:], strict=True):
        on = _join_on(join, source, scope)
        aliases = {each.alias for each in found.sources}
        if on.left.alias in aliases and on.right.alias in aliases:
            raise StatementRefused(
                f"Cannot perform circular join - both `{on.right.alias}` and {on.left_expression} are already included in "
                "the current join tree."
            )
        if on.left.alias in aliases:
            found = Tree(found, Leaf(on.right), on)
        elif on.right.alias in aliases:
            turned = on.flipped()
            found = Tree(found, Leaf(turned.right), turned)
        else:
            raise StatementRefused(
                "Cannot build JOIN tree; neither source in the join is the FROM source or included in a previous JOIN."
            )
    assert isinstance(found, Tree)
    return found


def _check_sources(scope: Scope) -> None:
    seen: dict[str, Aliased] = {}
    for count, each in enumerate(scope.sources):
        name = each.source.name
        if name in seen:
            if count > 1:
                message = (
                    f"N-way joins do not support multiple occurrences of the same source. Source: '{name}'."
                )
            else:
                message = f"Can not join '{name}' to '{name}': self joins are not yet supported."
            raise StatementRefused(message, each.place)
        seen[name] = each


def _join_on(join: Join, source: Aliased, scope: Scope) -> JoinOn:
    condition = join.on
    if not isinstance(condition, Comparison):
        if isinstance(condition, Logical) and _is_equality(condition.left) and _is_equality(condition.right):
            raise StatementRefused(
                f"Invalid join condition: joins on multiple conditions are not yet supported. Got {condition}.",
                condition.place,
            )
        raise StatementRefused(f"Unsupported join expression: {condition}", condition.place)
    if not _is_equality(condition):
        raise StatementRefused("Only equality join criteria is supported.", condition.place)
    left = _only_source(condition.left, condition, scope)
    right = _only_source(condition.right, condition, scope)
    if left is right:
        raise StatementRefused(
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references `{left.alias}` and right references `{right.alias}`",
            condition.place,
        )
    _check_windows(left, right)
    if source.alias not in (left.alias, right.alias):
        raise StatementRefused(
            f"A join criteria is expected to reference the source (`{source.alias}`) in the FROM clause, instead the right "
            f"source references `{right.alias}` and the left source references `{left.alias}`",
            condition.place,
        )
    on = JoinOn(left, condition.left, right, condition.right, join.kind, join.within)
    return on.flipped() if right.alias == scope.first.alias else on


def _is_equality(expression: Expression) -> bool:
    return isinstance(expression, Comparison) and expression.operator == "="


def _only_source(side: Expression, condition: Expression, scope: Scope) -> Aliased:
    used = check_join_columns(side, scope)
    found = scope.aliased(next(iter(used))) if len(used) == 1 else None
    if found is None:
        raise StatementRefused(
            f"Invalid comparison expression '{side}' in join '{condition}'. Each side of the join comparision must contain "
            "references from exactly one source.",
            side.place,
        )
    return found


def _check_windows(left: Aliased, right: Aliased) -> None:
    kinds = [each.source.window.kind if each.source.window else None for each in (left, right)]
    if (kinds[0] is None) != (kinds[1] is None):
        shown = [f"`{a.alias}` is {k or 'not'} windowed" for a, k in zip((left, right), kinds, strict=True)]
        raise StatementRefused("Can not join windowed source to non-windowed source.\n" + "\n".join(shown))
    if kinds[0] is not None and (kinds[0] is WindowKind.SESSION) != (kinds[1] is WindowKind.SESSION):
        raise StatementRefused(
            f"Incompatible windowed sources.\nLeft source: {kinds[0]}\nRight source: {kinds[1]}\n"
            "Session windowed sources can only be joined to other session windowed sources, and may still not result in "
            "expected behaviour as session bounds must be an exact match for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling windowed sources"
        )


def trees(tree: Tree | Leaf) -> Iterator[Tree]:
    if isinstance(tree, Tree):
        yield from trees(tree.left)
        yield tree
