"""Many clients at once, and what they got."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

CLIENTS = 64


async def post_many(urls: Sequence[str], route: str, body: dict[str, Any], count: int) -> list[str]:
    """So many requests by CLIENTS clients; the ids that came back."""
    made: list[str] = []
    left = iter(range(count))
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def lane() -> None:
            for number in left:
                url = urls[number % len(urls)] + route
                async with session.post(url, json=body) as answer:
                    assert answer.status in (200, 201, 202), await answer.text()
                    made.append((await answer.json())["execution_id"])

        await asyncio.gather(*(lane() for _ in range(CLIENTS)))
    return made


async def all_ended(url: str, path: str) -> None:
    """Wait until no execution of a playbook runs any more."""
    async with aiohttp.ClientSession() as session:
        while True:
            query = {"status": "running", "path": path, "limit": "1"}
            async with session.get(url + "/api/executions", params=query) as answer:
                if not (await answer.json())["executions"]:
                    return
            await asyncio.sleep(0.02)


def executions_rate(urls: Sequence[str], path: str, count: int, *, batch: int = 250) -> float:
    """Executions a second, from the first request to the last end; started in batches."""
    batch = min(batch, count)
    body = {"executions": [{"path": path}] * batch}

    async def run() -> float:
        began = time.perf_counter()
        async with aiohttp.ClientSession() as session:

            async def post(number: int) -> None:
                url = urls[number % len(urls)] + "/api/executions/batch"
                async with session.post(url, json=body) as answer:
                    assert answer.status == 201, await answer.text()
                    await answer.read()

            await asyncio.gather(*(post(number) for number in range(count // batch)))
        await all_ended(urls[0], path)
        return count // batch * batch / (time.perf_counter() - began)

    return asyncio.run(run())


def requests_rate(urls: Sequence[str], route: str, body: dict[str, Any], count: int) -> float:
    async def run() -> float:
        began = time.perf_counter()
        await post_many(urls, route, body, count)
        return count / (time.perf_counter() - began)

    return asyncio.run(run())


def get_times(url: str, count: int) -> list[float]:
    """Seconds of requests one after the other."""

    async def run() -> list[float]:
        found = []
        async with aiohttp.ClientSession() as session:
            for _ in range(count):
                began = time.perf_counter()
                async with session.get(url) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()
                found.append(time.perf_counter() - began)
        return found

    return asyncio.run(run())


class Idle:
    """How much of the machine was left over."""

    def __init__(self) -> None:
        self._began = self._read()

    def share(self) -> float:
        idle, total = (now - then for now, then in zip(self._read(), self._began, strict=True))
        return idle / max(1, total)

    def _read(self) -> tuple[int, int]:
        fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return fields[3] + fields[4], sum(fields)
