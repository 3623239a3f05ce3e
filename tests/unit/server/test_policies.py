"""What retention policies say."""

import pytest

from noetl.ports.removals import EndedRoot
from noetl.server.policies import RetentionPolicy, age_of, policies_of, verdict, youngest

DAY = 86_400
NOW = 1_000 * DAY * 1000


def row(path: str = "etl/daily", status: str = "completed", days: float = 40) -> EndedRoot:
    ended = int(NOW - days * DAY * 1000)
    return EndedRoot(execution_id="e", path=path, status=status, finished_at=ended, digest="d")


@pytest.mark.rule("KEEP-1")
def test_policies_are_read_in_their_order() -> None:
    first, second, third = policies_of(
        "30d status=completed,cancelled path=etl/* label=team=x archive=results format=parquet;"
        "never label=audit=yes; 12w"
    )
    assert first == RetentionPolicy(
        older_than=30 * DAY,
        status=("completed", "cancelled"),
        path="etl/*",
        labels={"team": "x"},
        archive="results",
        form="parquet",
    )
    assert (second.older_than, second.labels) == (None, {"audit": "yes"})
    assert third == RetentionPolicy(older_than=84 * DAY)
    assert policies_of(" ; ") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("soon", "'soon' is not an age: expected 12h, 30d or 6w"),
        ("9999999999999d", "is not an age"),
        ("30d state=failed", "'state=failed' is not one of: label=NAME=VALUE, status=STATUS"),
        ("30d status=running", "'running' is not the status of an end"),
        ("30d label=team", "'team' is not a label: expected NAME=VALUE"),
        ("30d archive=results format=csv", "'csv' is not a format of archives"),
        ("30d path=", "'path=' is not one of"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        policies_of(text)


@pytest.mark.parametrize(
    ("asked", "labels", "expected"),
    [
        (row(), {}, 0),
        (row(days=30), {}, 0),
        (row(days=20), {}, None),
        (row(status="failed", days=400), {}, 2),
        (row(status="failed", days=40), {}, None),
        (row(path="other"), {}, None),
        (row(path="other", days=400), {}, 2),
        (row(days=400), {"audit": "yes"}, 0),
        (row(path="other", days=4000), {"audit": "yes"}, None),
    ],
)
@pytest.mark.rule("KEEP-1")
def test_the_first_policy_that_fits_decides(
    asked: EndedRoot, labels: dict[str, str], expected: int | None
) -> None:
    policies = policies_of("30d status=completed path=etl/*; never label=audit=yes; 365d")
    found = verdict(policies, asked, labels, NOW)
    assert found is (None if expected is None else policies[expected])


def test_ages_have_units() -> None:
    assert [age_of(text) for text in ("90s", "1.5h", "2w")] == [90, 5400, 14 * DAY]
    assert youngest(policies_of("never; 3d; 2d status=failed")) == 2 * DAY
    assert youngest(policies_of("never")) is None
