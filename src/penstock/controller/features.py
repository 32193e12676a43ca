"""Features (KIP-584): what the cluster can do beyond the versions of its APIs, and what UpdateFeatures answers.

Every feature is at the highest level that all brokers have, from the beginning: a cluster of brokers of this version has all of
it, and one with a broker of Apache Kafka in ZooKeeper mode nothing. A level that the cluster has already is confirmed. A lower
one would be taken by Kafka and is refused here: nothing of ours could keep clients from what they use by then.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.update_features import FeatureUpdateKey

GROUP_VERSION: Final = "group.version"
FEATURES: Final[Mapping[str, int]] = {GROUP_VERSION: 1, "transaction.version": 2}
"""Each with its highest level; the lowest is 0."""
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_PREFIX: Final = "The update failed for all features since the following feature had an error: "


def check_update(
    updates: Sequence[FeatureUpdateKey], *, broker_id: int, levels: Mapping[str, int] = FEATURES
) -> None:
    """ApiError for the first update that cannot be made: then none of them is. `levels` are those of the cluster now."""
    for update in updates:
        level = update.max_version_level
        why = _why_invalid(update, broker_id)
        if why is not None:
            text = f"Invalid update version {level} for feature {update.feature}. {why}"
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, _PREFIX + text)
        now = levels.get(update.feature, 0)
        if level > now:
            text = f"{update.feature} stays at {now} until every broker of the cluster has level {level}."
            raise ApiError(ErrorCode.FEATURE_UPDATE_FAILED, _PREFIX + text)
        if level < now:
            text = f"{update.feature} cannot be lowered from {now} to {level} in Penstock."
            raise ApiError(ErrorCode.FEATURE_UPDATE_FAILED, _PREFIX + text)


def _why_invalid(update: FeatureUpdateKey, broker_id: int) -> str | None:
    kind = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if update.max_version_level < 0:
        return "A feature version cannot be less than 0."
    highest = FEATURES.get(update.feature)
    if highest is None:
        return f"Local controller {broker_id} does not support this feature."
    if update.max_version_level > highest:
        return f"Local controller {broker_id} only supports versions 0-{highest}"
    if update.max_version_level < highest and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    return None
