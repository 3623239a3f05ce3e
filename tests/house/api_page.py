"""The table of routes on the page of the API, written from the code."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from noetl.api.description import openapi, template_of
from noetl.api.routes import Route, all_routes

PAGE = "docs/reference/api.md"
MARK = re.compile(r"<!-- routes -->\n.*?<!-- end -->", re.DOTALL)
HEAD = ("method", "path", "role", "takes", "query", "answers", "what it does")

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def with_routes(page: Path, table: Table) -> str:
    document = openapi()
    rows = [row_of(route, document) for route in all_routes()]
    filled = table(HEAD, rows)
    return MARK.sub(lambda _: f"<!-- routes -->\n{filled}<!-- end -->", page.read_text("utf-8"))


def row_of(route: Route, document: dict[str, Any]) -> tuple[str, ...]:
    path = template_of(route)
    operation = document["paths"][path][route.method.lower()]
    return (
        route.method,
        f"`{path}`",
        route.access,
        takes(operation),
        code(parameters(operation, "query")),
        answers(operation),
        operation["summary"],
    )


def takes(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    kinds = [kind_in(schema["schema"]) for schema in content.values()]
    if content and not any(kinds):
        kinds = ["any"]
    named = [kind if kind != "string" else "text/yaml" for kind in kinds]
    return ", ".join(
        [*named, *(f"header {code([one])}" for one in parameters(operation, "header"))]
    )


def answers(operation: dict[str, Any]) -> str:
    told = []
    for status, response in operation["responses"].items():
        if status in ("4XX", "5XX"):
            continue
        content = response.get("content", {})
        kinds = [
            kind_in(value["schema"]) if media == "application/json" else media
            for media, value in content.items()
        ]
        told.append(" ".join([status, *filter(None, kinds)]))
    return ", ".join(told)


def kind_in(schema: dict[str, Any]) -> str:
    """The name of a type, or what kind of value it is."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return " or ".join(filter(None, map(kind_in, schema[word])))
    kind = schema.get("type", "")
    return "" if kind in ("object", "null") else str(kind)


def parameters(operation: dict[str, Any], place: str) -> list[str]:
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == place]


def code(names: Sequence[str]) -> str:
    return " ".join(f"`{name}`" for name in names)
