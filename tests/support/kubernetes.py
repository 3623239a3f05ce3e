"""
A small stand-in for the API of a Kubernetes cluster: secrets, jobs, pods, logs.

No cluster can be had in a test. The objects, paths, states and refusals are those of the
documentation; the "containers" are processes of this machine, so that output, exit codes and
deletion are real.
"""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from aiohttp import web

TOKEN = "cluster-token-1"
MISSING = "registry.example/missing:1"
PLACE = "/namespaces/work"


class Cluster:
    """What was asked of it, and the objects that are there now."""

    def __init__(self, token: str = TOKEN) -> None:
        self._token = token
        self.secrets: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.made: list[dict[str, Any]] = []
        """Every manifest that was accepted, in order."""
        self.asked: list[str] = []
        self.failing = 0
        """So many of the next requests are answered with 503."""
        self.url = ""
        self.stuck = False
        """Whether jobs never get a pod."""
        self._pods: dict[str, Pod] = {}

    @property
    def credential(self) -> dict[str, Any]:
        return {
            "kind": "kubernetes",
            "address": self.url,
            "token": self._token,
            "namespace": "work",
        }

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_post(f"/api/v1{PLACE}/secrets", self._make_secret)
        app.router.add_delete(f"/api/v1{PLACE}/secrets/{{name}}", self._delete_secret)
        app.router.add_post(f"/apis/batch/v1{PLACE}/jobs", self._make_job)
        app.router.add_get(f"/apis/batch/v1{PLACE}/jobs/{{name}}", self._show_job)
        app.router.add_delete(f"/apis/batch/v1{PLACE}/jobs/{{name}}", self._delete_job)
        app.router.add_get(f"/api/v1{PLACE}/pods", self._list_pods)
        app.router.add_get(f"/api/v1{PLACE}/pods/{{name}}/log", self._log)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path.rpartition('/namespaces')[2]}")
        if self.failing:
            self.failing -= 1
            return refusal(503, "the server is currently unable to handle the request")
        if request.headers.get("Authorization") != f"Bearer {self._token}":
            return refusal(401, "Unauthorized")
        answered: web.StreamResponse = await handler(request)
        return answered

    async def _make_secret(self, request: web.Request) -> web.Response:
        return await self._make(request, self.secrets, "Secret")

    async def _make_job(self, request: web.Request) -> web.Response:
        answer = await self._make(request, self.jobs, "Job")
        if answer.status == 201 and not self.stuck:
            job = self.made[-1]
            self._pods[job["metadata"]["name"]] = Pod(job, self.secrets)
        return answer

    async def _make(
        self, request: web.Request, objects: dict[str, dict[str, Any]], kind: str
    ) -> web.Response:
        manifest = await request.json()
        name = manifest["metadata"]["name"]
        if manifest["kind"] != kind:
            return refusal(400, f"expected {kind}")
        if name in objects:
            return refusal(409, f'{kind.lower()}s "{name}" already exists')
        objects[name] = manifest
        self.made.append(manifest)
        return web.json_response(manifest, status=201)

    async def _delete_secret(self, request: web.Request) -> web.Response:
        if self.secrets.pop(request.match_info["name"], None) is None:
            return refusal(404, "not found")
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _delete_job(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if self.jobs.pop(name, None) is None:
            return refusal(404, "not found")
        if request.query.get("propagationPolicy") == "Background" and name in self._pods:
            await self._pods.pop(name).end()
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _show_job(self, request: web.Request) -> web.Response:
        job = self.jobs.get(request.match_info["name"])
        if job is None:
            return refusal(404, "not found")
        reason = {"type": "Failed", "status": "True", "message": "exceeded quota: pods"}
        conditions = [reason] if self.stuck else []
        return web.json_response({**job, "status": {"conditions": conditions}})

    async def _list_pods(self, request: web.Request) -> web.Response:
        label, _, job = request.query["labelSelector"].partition("=")
        assert label == "job-name"
        pod = self._pods.get(job)
        return web.json_response({"kind": "PodList", "items": [await pod.show()] if pod else []})

    async def _log(self, request: web.Request) -> web.StreamResponse:
        pod = self._pods[request.match_info["name"].removesuffix("-pod")]
        assert request.query["container"] == "main"
        answer = web.StreamResponse()
        await answer.prepare(request)
        async for piece in pod.output():
            await answer.write(piece)
        return answer

    async def close(self) -> None:
        for pod in self._pods.values():
            await pod.end()


class Pod:
    """It is shown as waiting once, then its process is started."""

    def __init__(self, job: dict[str, Any], secrets: dict[str, dict[str, Any]]) -> None:
        self._name = job["metadata"]["name"]
        self._container = job["spec"]["template"]["spec"]["containers"][0]
        self._secrets = secrets
        self._process: asyncio.subprocess.Process | None = None
        self._shown = 0

    async def show(self) -> dict[str, Any]:
        self._shown += 1
        state = await self._state()
        status = {"name": "main", "imageID": "sha256:1234", "state": state}
        return {
            "metadata": {"name": f"{self._name}-pod"},
            "status": {"containerStatuses": [status]},
        }

    async def _state(self) -> dict[str, Any]:
        if self._container["image"] == MISSING:
            return {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}}
        if self._shown == 1:
            return {"waiting": {"reason": "ContainerCreating"}}
        if self._process is None:
            words = [*self._container["command"], *self._container["args"]]
            self._process = await asyncio.create_subprocess_exec(
                *words,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={"PATH": "/usr/bin:/bin", **self._environment()},
                start_new_session=True,
            )
        code = self._process.returncode
        if code is None:
            return {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        killed = code == 137
        reason = "OOMKilled" if killed else "Completed" if code == 0 else "Error"
        return {"terminated": {"exitCode": code, "reason": reason}}

    def _environment(self) -> dict[str, str]:
        values: dict[str, str] = {}
        for source in self._container.get("envFrom", []):
            values |= self._secrets[source["secretRef"]["name"]]["stringData"]
        return values

    async def output(self) -> AsyncIterator[bytes]:
        assert self._process is not None
        assert self._process.stdout is not None
        while piece := await self._process.stdout.read(1000):
            yield piece
        await self._process.wait()

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()


def refusal(code: int, message: str) -> web.Response:
    """A `Status`, as the API words it."""
    body = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    return web.json_response(body, status=code)


@asynccontextmanager
async def serving(token: str = TOKEN) -> AsyncIterator[Cluster]:
    """On loopback, in the event loop of the test."""
    cluster = Cluster(token)
    runner = web.AppRunner(cluster.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    cluster.url = f"http://{host}:{port}"
    try:
        yield cluster
    finally:
        await cluster.close()
        await runner.cleanup()


@contextmanager
def running(token: str = TOKEN) -> Iterator[Cluster]:
    """The same in a thread of its own, for programs that the test starts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="cluster", daemon=True)
    thread.start()
    place = serving(token)
    try:
        yield asyncio.run_coroutine_threadsafe(place.__aenter__(), loop).result(60)
    finally:
        leaving = place.__aexit__(None, None, None)
        asyncio.run_coroutine_threadsafe(leaving, loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
