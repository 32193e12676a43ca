"""What changes about a member: it is recorded, and moves the group's epoch on where the assignment may depend on it.

That is so when what it subscribes to changes, when a regular expression matches other topics than before, and when one of
the group's topics has come, gone or grown (seen by their hash). Topics are looked at when they have changed, not with
every heartbeat.
"""

from collections.abc import Iterable

from penstock.groups.consumer.draft import Draft
from penstock.groups.consumer.regex import matching
from penstock.groups.consumer.scene import Scene
from penstock.groups.consumer.state import Member, ResolvedRegex
from penstock.groups.consumer.topic_hash import metadata_hash


def update_member(scene: Scene, draft: Draft, before: Member, after: Member, *, is_checked: bool) -> bool:
    """Record the member; whether what it subscribes to has changed. `is_checked`: nothing has happened to the topics since
    the group was last looked at."""
    if after != before:
        draft.set_metadata(after)
    names_changed = after.subscribed_topic_names != before.subscribed_topic_names
    regex_changed = after.subscribed_topic_regex != before.subscribed_topic_regex
    matches_changed = _resolve(scene, draft, is_regex_changed=regex_changed)
    must_bump = names_changed or regex_changed or matches_changed or draft.group.group_epoch == 0
    if must_bump or not is_checked:
        _update_epoch(scene, draft, must_bump=must_bump)
    return names_changed or regex_changed


def _resolve(scene: Scene, draft: Draft, *, is_regex_changed: bool) -> bool:
    """Match what is due to be matched; whether the topics that come of it have changed."""
    if not is_regex_changed and all(_is_current(scene, known) for known in draft.group.regexes.values()):
        return False
    wanted = draft.group.subscribed_regexes()
    for regex in sorted(draft.group.regexes.keys() - wanted):
        draft.drop_regex(regex)
    is_changed = False
    for regex in sorted(wanted):
        known = draft.group.regexes.get(regex)
        if known is None or not _is_current(scene, known):
            topics = matching(regex, _seen(scene))
            is_changed = is_changed or known is None or topics != known.topics
            draft.set_regex(regex, ResolvedRegex(topics, scene.topics_version, scene.now_ms))
    return is_changed


def _seen(scene: Scene) -> Iterable[str]:
    """The topics that who asks may describe: as in Kafka, what others of the group may see does not count."""
    names = scene.topics.names()
    may_describe = scene.turn.context.may_describe
    return names if may_describe is None else filter(may_describe, names)


def _is_current(scene: Scene, resolved: ResolvedRegex) -> bool:
    age_ms = scene.now_ms - resolved.timestamp_ms
    return (
        resolved.version == scene.topics_version
        and age_ms <= scene.options.consumer_regex_refresh_interval_ms
    )


def _update_epoch(scene: Scene, draft: Draft, *, must_bump: bool) -> None:
    group = draft.group
    topics_hash = metadata_hash(group.subscribed_topics(), scene.topics)
    if must_bump or topics_hash != group.metadata_hash:
        draft.set_epoch(group.group_epoch + 1, topics_hash)
    draft.drop_partition_metadata()
