"""Tests of the working room of the control plane may be `async def`."""

from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401
