"""What `/metrics` says: counts of the plane, and how requests fared (Prometheus text)."""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LABELS = {
    "executions": "status",
    "parts_waiting": "pool",
    "messages_refused": "reason",
    "calls_unproved": "trigger",
}
"""What the keys of a count with parts are; `name` for any other."""
TYPE = "text/plain; version=0.0.4"
UNROUTED = "none"
WAITING = ("/wake", "/result", "/calls", "/questions")
"""How the routes end that may wait for something to happen."""


class Metrics:
    """The counters of one app. Each has a registry of its own: two apps are two servers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "noetl_http_requests",
            "Answered requests.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "noetl_http_answer_seconds",
            "Seconds until the response started.",
            ["route"],
            registry=self._registry,
        )

    def watched(self, app: ASGIApp) -> ASGIApp:
        """The app, with every answer counted when it begins."""

        async def watching(scope: Scope, receive: Receive, send: Send) -> None:
            began = perf_counter()

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    # The template of the route, never the path: labels must not be unbounded.
                    route = scope.get("path_template", UNROUTED)
                    self._seconds.labels(route).observe(perf_counter() - began)
                    self._requests.labels(scope.get("method"), route, message["status"]).inc()
                await send(message)

            await app(scope, receive, sending)

        return watching

    def totals(self) -> tuple[int, float]:
        """Answers by now, and the seconds that they took; what waits on purpose is not counted."""
        found = {"_count": 0.0, "_sum": 0.0}
        for metric in self._seconds.collect():
            for one in metric.samples:
                part = one.name.removeprefix("noetl_http_answer_seconds")
                if part in found and not one.labels["route"].endswith(WAITING):
                    found[part] += one.value
        return int(found["_count"]), found["_sum"]

    def text(self, counts: Mapping[str, Any]) -> bytes:
        registry = CollectorRegistry()
        registry.register(Counts(counts))
        return generate_latest(registry) + generate_latest(self._registry)


class Counts(Collector):
    """The counts of a plane as gauges: a number, or numbers by one label."""

    def __init__(self, counts: Mapping[str, Any]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        for name, value in self._counts.items():
            if isinstance(value, Mapping):
                label = LABELS.get(name, "name")
                gauge = GaugeMetricFamily(f"noetl_{name}", words(name), labels=[label])
                for part, number in value.items():
                    if isinstance(number, int | float):
                        gauge.add_metric([str(part)], number)
                yield gauge
            elif isinstance(value, int | float):
                yield GaugeMetricFamily(f"noetl_{name}", words(name), value=value)


def words(name: str) -> str:
    return f"{name.replace('_', ' ').capitalize()} as counted by the responding server."
