"""A real S3 server on loopback: moto in a thread, with one bucket."""

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import obstore

if TYPE_CHECKING:
    from obstore.store import S3Store

BUCKET = "bucket"


class S3Place(msgspec.Struct, frozen=True):
    """Where the server is, and a credential for it (KEY-1)."""

    endpoint: str

    @property
    def credential(self) -> dict[str, Any]:
        return {
            "kind": "s3",
            "access_key_id": "loopback",
            "secret_access_key": "loopback-only",
            "region": "us-east-1",
            "endpoint": self.endpoint,
        }

    def put(self, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Lay an object there without our own tool."""
        obstore.put(self._store, key, body, attributes={"Content-Type": content_type})

    def bytes_at(self, key: str) -> bytes:
        """What the server holds, asked without our own tool."""
        return bytes(obstore.get(self._store, key).bytes())

    @property
    def _store(self) -> "S3Store":
        from obstore.store import S3Store

        return S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id="loopback",
            secret_access_key="loopback-only",
            client_options={"allow_http": True},
        )


@contextmanager
def serving() -> Iterator[S3Place]:
    """The server lives as long as the `with`; its bucket is empty."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        place = S3Place(f"http://{host}:{port}")
        _create_bucket(place.endpoint)
        yield place
    finally:
        server.stop()


def _create_bucket(endpoint: str) -> None:
    """Servers of one process share what they hold, so the last one's is forgotten first."""
    for method, path in (("POST", "moto-api/reset"), ("PUT", BUCKET)):
        request = urllib.request.Request(f"{endpoint}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=600) as answer:
            assert answer.status == 200
