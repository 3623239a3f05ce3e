"""The OpenAPI document: it is one, and it says of every route what the table says."""

from functools import cache
from typing import Any

import pytest

from noetl.api.description import ALSO, BODIES, STREAMS, openapi, template_of
from noetl.api.patterns import WORDS, pattern_words
from noetl.api.routes import Route, all_routes, methods_at

ROUTES = list(all_routes())


@cache
def document() -> dict[str, Any]:
    return openapi()


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def operation_of(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = document()["paths"][template_of(route)][route.method.lower()]
    return operation


@pytest.mark.rule("SRV-1")
def test_it_is_openapi_3_1() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # slow to import

    assert document()["openapi"].startswith("3.1.")
    assert [str(error) for error in OpenAPIV31SpecValidator(document()).iter_errors()] == []


def test_it_has_every_route_and_no_other() -> None:
    found = {
        (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method in methods
    }
    assert found == {(route.method, template_of(route)) for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_operation_says_what_it_does_and_who_may(route: Route) -> None:
    operation = operation_of(route)
    assert operation["summary"].endswith(".")
    assert operation["security"] == ([] if route.access == "open" else [{"token": []}])
    assert bool(operation.get("requestBody")) is bool(route.takes)
    responses = operation["responses"]
    assert str(route.status) in responses
    for status in ("4XX", "5XX"):
        schema = responses[status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorBody"}


def test_registering_the_same_text_again_is_told_apart() -> None:
    responses = document()["paths"]["/api/catalog"]["post"]["responses"]
    assert responses["200"]["description"] == "The newest version is the same."


def test_names_of_operations_are_unique() -> None:
    names = [operation_of(route)["operationId"] for route in ROUTES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/catalog", ["POST", "GET"]),
        ("/api/catalog/", ["POST", "GET"]),
        ("/api/catalog/entries/a/b/c", ["GET", "DELETE"]),
        ("/api/executions/e1", ["GET"]),
        ("/api/executions/e1/cancel", ["POST"]),
        ("/api/executions/e1/other", []),
        ("/api/credentials/a/b", ["PUT", "DELETE"]),
        ("/apiXcatalog", []),
        ("/", []),
    ],
)
def test_which_methods_a_path_takes(path: str, methods: list[str]) -> None:
    assert methods_at(path) == methods


def test_keys_that_nobody_knows_are_forbidden() -> None:
    schemas = document()["components"]["schemas"]
    requests = [name for name in schemas if name.endswith("Request")]
    lax = [name for name in requests if schemas[name]["additionalProperties"] is not False]
    assert requests
    assert lax == []


def test_every_special_case_is_a_route() -> None:
    assert (ALSO.keys() | BODIES.keys() | STREAMS.keys()) - {
        route.answer for route in ROUTES
    } == set()


@pytest.mark.rule("SRV-1")
def test_answers_besides_the_usual_one_are_told() -> None:
    found = {
        f"{route.method} {route.path}": [
            status
            for status in operation_of(route)["responses"]
            if status not in (str(route.status), "4XX", "5XX")
        ]
        for route in ROUTES
    }
    assert {route: also for route, also in found.items() if also} == {
        "POST /api/catalog": ["200"],
        "GET /api/executions/{execution_id:str}/stream": ["204"],
        "GET /readyz": ["503"],
    }


def patterns_in(node: Any) -> set[str]:
    if isinstance(node, list):
        return {one for item in node for one in patterns_in(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["pattern"]} if isinstance(node.get("pattern"), str) else set()
    return own | patterns_in(list(node.values()))


def test_what_a_text_must_look_like_is_told_in_words() -> None:
    """Nobody is answered with a regular expression."""
    found = patterns_in(document())
    assert found == set(WORDS)
    for pattern in found:
        said = pattern_words(f"Expected `str` matching regex {pattern!r}")
        assert said == f"Expected {WORDS[pattern]}"
