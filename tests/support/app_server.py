"""A web application of aiohttp on loopback, in its own thread, for as long as a test needs it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

PATIENCE = 600.0


@contextmanager
def serve(application: web.Application) -> Iterator[str]:
    """Run the application; the value is its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="app-server", daemon=True)
    thread.start()
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port: int = runner.addresses[0][1]
        return port

    try:
        port = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
