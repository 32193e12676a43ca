import pytest

from penstock.controller.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, check_update
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.update_features import FeatureUpdateKey

GROUP, TRANSACTION = "group.version", "transaction.version"
ALL_FAILED = "The update failed for all features since the following feature had an error: "


def refusal(*updates: tuple[str, int, int]) -> tuple[ErrorCode, str]:
    keys = [
        FeatureUpdateKey(feature=f, max_version_level=level, upgrade_type=kind) for f, level, kind in updates
    ]
    with pytest.raises(ApiError) as caught:
        check_update(keys, broker_id=1)
    text = caught.value.detail or ""
    assert text.startswith(ALL_FAILED)
    return caught.value.code, text.removeprefix(ALL_FAILED)


@pytest.mark.parametrize("kind", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_the_level_that_a_feature_has_is_confirmed(kind: int) -> None:
    for feature, level in ((GROUP, 1), (TRANSACTION, 2)):
        key = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        check_update([key], broker_id=1)
    check_update([], broker_id=1)


# The texts are those of Apache Kafka 4.3.1.
@pytest.mark.parametrize(
    ("update", "why"),
    [
        (("nonsense", 1, UPGRADE), "Local controller 1 does not support this feature."),
        ((GROUP, 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
        ((TRANSACTION, 92, SAFE_DOWNGRADE), "Local controller 1 only supports versions 0-2"),
        ((GROUP, -1, UNSAFE_DOWNGRADE), "A feature version cannot be less than 0."),
        ((GROUP, 1, 0), "The controller does not support the given upgrade type."),
        ((GROUP, 1, 9), "The controller does not support the given upgrade type."),
        (
            (TRANSACTION, 1, UPGRADE),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        ),
    ],
)
def test_an_invalid_level_is_refused_in_kafkas_words(update: tuple[str, int, int], why: str) -> None:
    feature, level, _ = update
    text = f"Invalid update version {level} for feature {feature}. {why}"
    assert refusal(update) == (ErrorCode.INVALID_UPDATE_VERSION, text)
    assert refusal((GROUP, 1, UPGRADE), update) == (ErrorCode.INVALID_UPDATE_VERSION, text)


def test_a_feature_cannot_be_lowered() -> None:
    code, text = refusal((TRANSACTION, 1, SAFE_DOWNGRADE))
    assert (code, text) == (
        ErrorCode.FEATURE_UPDATE_FAILED,
        "transaction.version cannot be lowered from 2 to 1 in Penstock.",
    )


def test_version_0_of_the_request_allows_a_downgrade_by_another_field() -> None:
    key = FeatureUpdateKey(feature=GROUP, max_version_level=0, allow_downgrade=True)
    with pytest.raises(ApiError) as caught:
        check_update([key], broker_id=1)
    assert caught.value.code == ErrorCode.FEATURE_UPDATE_FAILED
