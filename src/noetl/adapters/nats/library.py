"""The library that speaks NATS, or what to do where it is not installed."""

from noetl.errors import SettingRefused

try:
    from nats import errors
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext, api
    from nats.js import errors as stream_errors
except ImportError:
    raise SettingRefused(
        "NATS (queue, or results=nats) needs an extra: install it with pip install 'noetl[nats]'"
    ) from None

__all__ = ["FAULTS", "Client", "JetStreamContext", "Msg", "api", "errors", "stream_errors"]

FAULTS = (errors.Error, OSError, TimeoutError)
"""All that goes wrong between here and the server."""
