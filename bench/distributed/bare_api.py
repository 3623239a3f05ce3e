"""A Litestar endpoint with one PostgreSQL commit a request and nothing else: the reference."""

import sys
from typing import Any

import asyncpg
import msgspec
import uvicorn
from litestar import Litestar, post

url, port = sys.argv[1], int(sys.argv[2])


class Wanted(msgspec.Struct):
    """What a client sends."""

    path: str
    payload: dict[str, Any] = {}


@post("/commit")
async def commit(data: Wanted) -> dict[str, str]:
    async with app.state.pool.acquire() as connection:
        await connection.execute("insert into bare (path, text) values ($1, $2)", data.path, BODY)
    return {"execution_id": "1"}


BODY = "x" * 600


async def opened(app: Litestar) -> None:
    app.state.pool = await asyncpg.create_pool(url, min_size=16, max_size=16)
    async with app.state.pool.acquire() as connection:
        await connection.execute("create table if not exists bare (path text, text text)")


app = Litestar([commit], on_startup=[opened], openapi_config=None)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", loop="uvloop")
