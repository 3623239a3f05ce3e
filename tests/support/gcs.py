"""A Google Cloud Storage on loopback: the emulator in a thread, with one bucket."""

import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

BUCKET = "bucket"


class GcsPlace(msgspec.Struct, frozen=True):
    """Where the emulator is, and a credential for it (KEY-1)."""

    endpoint: str

    @property
    def credential(self) -> dict[str, Any]:
        return {"kind": "gcs", "anonymous": True, "endpoint": self.endpoint}

    def put(self, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Lay an object there without our own tool."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.storage import Client

        client = Client(
            project="none",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options={"api_endpoint": self.endpoint},
        )
        client.bucket(BUCKET).blob(key).upload_from_string(body, content_type=content_type)
        client.close()

    def bytes_at(self, key: str) -> bytes:
        """What the emulator holds, asked without our own tool."""
        name = urllib.parse.quote(key, safe="")
        url = f"{self.endpoint}/download/storage/v1/b/{BUCKET}/o/{name}?alt=media"
        with urllib.request.urlopen(url, timeout=600) as answer:
            return bytes(answer.read())


@contextmanager
def serving() -> Iterator[GcsPlace]:
    """The emulator lives as long as the `with`; its bucket is empty."""
    from gcp_storage_emulator.server import create_server  # type: ignore[import-untyped]

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    server.start()
    try:
        port = server._api._httpd.server_address[1]
        yield GcsPlace(f"http://127.0.0.1:{port}")
    finally:
        server.stop()
