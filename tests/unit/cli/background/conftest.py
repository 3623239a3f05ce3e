"""Tests of what runs in the background may be `async def`."""

from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401
