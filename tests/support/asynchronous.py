"""Lets a test be `async def`: it runs in its own event loop, and what it opened is closed there."""

import asyncio
import inspect
from typing import Any, Protocol, runtime_checkable

import pytest


@runtime_checkable
class Opener(Protocol):
    """A fixture that opens things inside the loop of the test."""

    async def close_all(self) -> None: ...


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Hook of pytest; import it into the conftest of a folder with such tests."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(_run(pyfuncitem.obj, given))
    return True


async def _run(test: Any, given: dict[str, Any]) -> None:
    try:
        await test(**given)
    finally:
        for fixture in given.values():
            if isinstance(fixture, Opener):
                await fixture.close_all()
