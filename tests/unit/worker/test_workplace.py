"""What a worker adds to the words of its keychain."""

import pytest

from noetl.worker.workplace import with_options

MISSING = "no credential 'shop': register it with `noetl credential add shop`"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("postgres", " --kind postgres --field host=HOST --field user=USER --field database=NAME"),
        ("http", " --kind bearer"),
        ("python", ""),
        ("of_a_plugin", ""),
    ],
)
def test_a_missing_credential_gives_the_whole_command(kind: str, options: str) -> None:
    said = f"no credential 'shop': register it with `noetl credential add shop{options}`"
    assert with_options(MISSING, kind) == said
