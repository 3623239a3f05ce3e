"""The OpenAPI document: made by the framework from the types, completed from the table."""

import asyncio
from collections.abc import Callable
from typing import Any

from litestar import Response

from noetl.api.answers import answered


class DocumentRoutes:
    """Answers with the document, which is made when it is first asked for."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make
        self._made: dict[str, Any] | None = None

    async def openapi(self) -> Response[dict[str, Any]]:
        """The document that describes all of this."""
        if self._made is None:
            self._made = await asyncio.to_thread(self._make)
        return answered(self._made)
