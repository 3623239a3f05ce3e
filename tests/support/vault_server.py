"""
The part of Vault's HTTP API that reading secrets needs, as its documentation describes it.

No package brings a real Vault or OpenBao, so this stands for it: tokens with policies by path,
AppRole logins, namespaces, mounts of the KV store in both versions, deleted versions, and the
answers to whoever may not ask.
"""

from typing import Any

import msgspec
from aiohttp import web

ROOT_TOKEN = "hvs.root-token-of-the-test"


class VaultServer:
    """What is in it can be changed while it runs."""

    def __init__(self) -> None:
        self.mounts: dict[str, int] = {"secret/": 2, "old/": 1, "team/kv/": 2}
        self.secrets: dict[str, dict[str, Any] | None] = {}
        """`mount/path` → fields; None for a deleted version."""
        self.tokens: dict[str, str] = {ROOT_TOKEN: ""}
        """Token → the beginning of the paths that it may read."""
        self.roles: dict[str, tuple[str, str]] = {}
        """role_id → secret_id, and the paths that its tokens may read."""
        self.lease = 3600
        self.namespace = ""
        self.status = 0
        """If set, every request is answered with it."""
        self.blind = False
        """Whether nobody may ask for mounts."""
        self.seen: list[str] = []

    @property
    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._watch])
        application.router.add_post("/v1/auth/approle/login", self._log_in)
        application.router.add_get("/v1/sys/internal/ui/mounts/{path:.+}", self._mount)
        application.router.add_get("/v1/{path:.+}", self._read)
        return application

    @web.middleware
    async def _watch(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.seen.append(request.path)
        if self.status:
            return errors(self.status, "Vault is sealed")
        if request.headers.get("X-Vault-Namespace", "") != self.namespace:
            return errors(404, "no handler for route")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _log_in(self, request: web.Request) -> web.Response:
        asked = msgspec.json.decode(await request.read())
        secret_id, paths = self.roles.get(asked["role_id"], ("", ""))
        if not secret_id or secret_id != asked["secret_id"]:
            return errors(400, "invalid role or secret ID")
        token = f"hvs.token-number-{len(self.tokens)}"
        self.tokens[token] = paths
        auth = {"client_token": token, "lease_duration": self.lease, "renewable": True}
        return web.json_response({"auth": auth, "data": None})

    async def _mount(self, request: web.Request) -> web.Response:
        mount = self._mount_of(request.match_info["path"])
        if self.blind or mount is None or not self._allows(request, mount):
            return errors(403, "preflight capability check returned 403")
        version = {"options": {"version": str(self.mounts[mount])}}
        return web.json_response({"data": {"path": mount, "type": "kv", **version}})

    async def _read(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        mount = self._mount_of(path)
        if mount is None or not self._allows(request, path):
            return errors(403, "permission denied")
        rest = path.removeprefix(mount)
        if self.mounts[mount] == 1:
            fields = self.secrets.get(path)
            return errors(404) if fields is None else web.json_response({"data": fields})
        if not rest.startswith("data/"):
            return errors(404, "Invalid path for a versioned K/V secrets engine")
        name = mount + rest.removeprefix("data/")
        if name not in self.secrets:
            return errors(404)
        fields = self.secrets[name]
        about = {"version": 1, "destroyed": False, "deletion_time": "" if fields else "2024-01-01"}
        body = {"data": {"data": fields, "metadata": about}}
        return web.json_response(body, status=200 if fields is not None else 404)

    def _mount_of(self, path: str) -> str | None:
        return next((mount for mount in self.mounts if f"{path}/".startswith(mount)), None)

    def _allows(self, request: web.Request, path: str) -> bool:
        allowed = self.tokens.get(request.headers.get("X-Vault-Token", ""))
        return allowed is not None and (path.startswith(allowed) or allowed.startswith(path))


def errors(status: int, *words: str) -> web.Response:
    return web.json_response({"errors": list(words)}, status=status)
