"""The table of tools: every kind can be built, and says whether it keeps time by itself."""

from pathlib import Path

import pytest

from noetl.tools.table import TOOLS, Toolbox

CANCELLED = frozenset({"noop", "playbook", "secrets"})
"""Kinds that wait for the worker alone: at the timeout it cancels them."""


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.rule("TASK-7")
def test_every_kind_that_asks_others_ends_in_time_by_itself(kind: str, tmp_path: Path) -> None:
    keeps_time = getattr(Toolbox(tmp_path)[kind], "keeps_time", False)

    assert keeps_time == (kind not in CANCELLED)
