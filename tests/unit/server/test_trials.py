"""Templates tried on what was recorded: secrets are looked for where nobody waits for it."""

import threading
from typing import Any

import pytest

from noetl.masking import KNOWN, MASK
from noetl.messages.reference import Reference
from noetl.server.views.trials import try_template

SECRET = "correct-horse-battery"
STORED = Reference("memory", f"e1/{'0' * 64}", 100, "0" * 64)


@pytest.mark.rule("KEY-2")
async def test_a_stored_value_is_cleaned_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To look through six megabytes takes two seconds with one secret, minutes with many."""
    threads: list[threading.Thread] = []
    found_in, cleaned = KNOWN.found_in, KNOWN.cleaned

    def noting(work: Any) -> Any:
        def noted(*given: Any) -> Any:
            threads.append(threading.current_thread())
            return work(*given)

        return noted

    async def load(_: Reference) -> Any:
        return ["plain", f"say {SECRET}"]

    KNOWN.add(SECRET)
    monkeypatch.setattr(KNOWN, "found_in", noting(found_in))
    monkeypatch.setattr(KNOWN, "cleaned", noting(cleaned))
    try:
        tried = await try_template("{{ ctx.big[1] }}", {"ctx": {"big": STORED}}, load)
    finally:
        KNOWN.clear()
    assert (tried.value, tried.error) == (f"say {MASK}", None)
    assert threads
    assert threading.current_thread() not in threads


async def test_what_holds_no_secret_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(_: Reference) -> Any:
        return ["plain", "text"]

    def walked(*given: Any) -> Any:
        raise AssertionError(given)

    KNOWN.add(SECRET)
    monkeypatch.setattr(KNOWN, "cleaned", walked)
    try:
        tried = await try_template("{{ ctx.big[1] }}", {"ctx": {"big": STORED}}, load)
    finally:
        KNOWN.clear()
    assert (tried.value, tried.error) == ("text", None)
