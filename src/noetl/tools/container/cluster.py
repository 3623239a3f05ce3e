"""The few requests to the API of a Kubernetes cluster that a job needs."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from noetl.messages.clipping import beginning
from noetl.tools.refusal import Refusal
from noetl.tools.urls import checked_url

PIPE = 65_536
ALREADY = 409
GONE = 404
DENIED = (401, 403)
BUSY = 429


@asynccontextmanager
async def cluster_of(credential: Mapping[str, Any]) -> AsyncIterator["Cluster"]:
    """The cluster and the namespace that a credential is for."""
    address, token = credential.get("address"), credential.get("token")
    if not (address and token):
        says = "the credential for Kubernetes needs address (of the API) and token"
        raise Refusal("auth", f"{says}; namespace and ca (PEM) may be added")
    address = checked_url(str(address), "address", ("http", "https")).rstrip("/")
    try:
        ca = credential.get("ca")
        tls = ssl.create_default_context(cadata=str(ca)) if ca else True
    except ssl.SSLError as fault:
        says = f"the ca of the Kubernetes credential is not PEM: {fault}"
        raise Refusal("auth", says) from None
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=tls),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
    ) as session:
        yield Cluster(session, address, str(credential.get("namespace", "default")))


class Cluster:
    """A namespace of one cluster; every method raises Refusal for what it is refused."""

    def __init__(self, session: aiohttp.ClientSession, address: str, namespace: str) -> None:
        self._session = session
        self._address = address
        self._namespace = namespace

    async def create(self, group: str, plural: str, manifest: dict[str, Any]) -> None:
        """One that is there already is the same one, of an attempt whose worker was lost."""
        await self._ask("POST", self._url(group, plural), (ALREADY,), json=manifest)

    async def delete(self, group: str, plural: str, name: str) -> None:
        """What it owns goes with it."""
        url = self._url(group, plural, name)
        await self._ask("DELETE", url, (GONE,), params={"propagationPolicy": "Background"})

    async def job(self, name: str) -> dict[str, Any]:
        return await self._ask("GET", self._url("apis/batch/v1", "jobs", name))

    async def pod(self, job: str) -> dict[str, Any] | None:
        """The pod of a job, once there is one."""
        params = {"labelSelector": f"job-name={job}"}
        found = await self._ask("GET", self._url("api/v1", "pods"), params=params)
        pods: list[dict[str, Any]] = found.get("items") or []
        return pods[0] if pods else None

    async def log(self, pod: str) -> AsyncIterator[bytes]:
        """What its container prints, until it ends."""
        url = f"{self._url('api/v1', 'pods', pod)}/log"
        params = {"container": "main", "follow": "true"}
        try:
            async with self._session.get(url, params=params) as answer:
                await self._check(answer, ())
                async for piece in answer.content.iter_chunked(PIPE):
                    yield piece
        except aiohttp.ClientError as fault:
            raise self._away(fault) from None

    def _url(self, group: str, plural: str, name: str = "") -> str:
        tail = f"/{name}" if name else ""
        return f"{self._address}/{group}/namespaces/{self._namespace}/{plural}{tail}"

    async def _ask(
        self, method: str, url: str, fine: tuple[int, ...] = (), **more: Any
    ) -> dict[str, Any]:
        try:
            async with self._session.request(method, url, **more) as answer:
                await self._check(answer, fine)
                return msgspec.json.decode(await answer.read(), type=dict[str, Any])
        except aiohttp.ClientError as fault:
            raise self._away(fault) from None
        except msgspec.DecodeError as fault:
            raise Refusal("decode", f"the cluster's answer is not JSON: {fault}") from None

    async def _check(self, answer: aiohttp.ClientResponse, fine: tuple[int, ...]) -> None:
        if answer.status < 400 or answer.status in fine:
            return
        says = f"the cluster refuses ({answer.status}): {reason_in(await answer.read())}"
        if answer.status in DENIED:
            raise Refusal("auth", says)
        retryable = answer.status >= 500 or answer.status == BUSY
        raise Refusal("connection" if retryable else "container", says, retryable=retryable)

    def _away(self, fault: Exception) -> Refusal:
        says = f"the Kubernetes API at {self._address} cannot be reached: {fault}"
        retryable = not isinstance(fault, aiohttp.ClientConnectorCertificateError)
        return Refusal("connection", says, retryable=retryable)


def reason_in(body: bytes) -> str:
    """The message of a `Status`, which is what the API answers when it refuses."""
    try:
        return str(msgspec.json.decode(body, type=dict[str, Any])["message"])
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError):
        return beginning(body.decode("utf-8", "replace"), 200) or "without a reason"
