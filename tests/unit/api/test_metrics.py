"""What `/metrics` says, and that it can be read."""

from litestar.testing import AsyncTestClient
from prometheus_client.parser import text_string_to_metric_families
from tests.support.api import SmallPlane

from noetl.api.metrics import Metrics
from noetl.api.serve import create_app


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_counts_and_requests_are_told() -> None:
    async with AsyncTestClient(
        create_app(SmallPlane(), auth=False), base_url="http://127.0.0.1"
    ) as client:
        for _ in range(3):
            await client.get("/api/executions/e1")
        answer = await client.get("/metrics")
    found = samples(answer.text)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["noetl_leases", ()] == 3
    assert found["noetl_executions", ("running",)] == 2
    route = "/api/executions/{execution_id}"
    assert found["noetl_http_requests_total", ("GET", route, "404")] == 3
    assert found["noetl_http_answer_seconds_count", (route,)] == 3
    assert "why" not in answer.text, "what is not a number is left out"


def test_two_apps_count_for_themselves() -> None:
    Metrics()
    assert "noetl_leases 1.0" in Metrics().text({"leases": 1}).decode()
