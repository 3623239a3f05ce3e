"""What the example talks to: a NATS server with a user and a stream of orders."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import nats
from tests.support.nats import running

USER, PASSWORD = "example", "loopback-only"


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The server lives as long as the example runs."""
    with running(f"authorization {{ user: {USER}, password: {PASSWORD} }}") as server:
        asyncio.run(prepare(server.url))
        credential = {"url": server.url, "user": USER, "password": PASSWORD}
        yield {"environment": {"NATS_CREDENTIAL": json.dumps(credential)}}


async def prepare(url: str) -> None:
    """A stream that keeps what is published below `orders`."""
    client = await nats.connect(url, user=USER, password=PASSWORD)
    await client.jetstream().add_stream(name="ORDERS", subjects=["orders.>"])
    await client.close()
