"""Writes the types of the UI's client from the OpenAPI document: one place says what the API is."""

import json
import re
from typing import Any

from noetl.api.description import openapi, template_of
from noetl.api.routes import all_routes

PAGE = "ui/src/lib/api-types.ts"
HEAD = "// Written by `make docs` from the OpenAPI document; do not edit.\n"
REF = "#/components/schemas/"
WORDS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
PLAIN = re.compile(r"[A-Za-z_]\w*")

Part = dict[str, Any]


def page() -> str:
    document = openapi()
    operations = [
        (route, document["paths"][template_of(route)][route.method.lower()])
        for route in all_routes()
        if route.access != "worker"
    ]
    needed = reached({"all": [one for _, one in operations]}, document["components"]["schemas"])
    parts = [HEAD, *(interface(name, schema) for name, schema in needed.items())]
    rows = [operation(one) for _, one in operations]
    parts.append("export interface Operations {\n" + "".join(rows) + "}\n")
    table = [
        f'  {one["operationId"]}: ["{route.method}", "{template_of(route)}"],\n'
        for route, one in operations
    ]
    parts.append("export const OPERATIONS = {\n" + "".join(table) + "} as const;\n")
    return "\n".join(parts)


def reached(start: Part, schemas: dict[str, Part]) -> dict[str, Part]:
    """The schemas that these operations name, and those that they name, by name."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        named = re.findall(rf'"{REF}(\w+)"', json.dumps(ahead.pop()))
        fresh = set(named) - found
        found |= fresh
        ahead += [schemas[name] for name in fresh]
    return {name: schemas[name] for name in sorted(found)}


def interface(name: str, schema: Part) -> str:
    return f"export interface {name} {fields(schema)}\n"


def fields(schema: Part) -> str:
    required = set(schema.get("required", ()))
    rows = [
        f"  {key_of(key)}{'' if key in required else '?'}: {type_of(value)};\n"
        for key, value in schema.get("properties", {}).items()
    ]
    return "{\n" + "".join(rows) + "}"


def key_of(key: str) -> str:
    return key if PLAIN.fullmatch(key) else json.dumps(key)


def type_of(schema: Part) -> str:
    """What a schema is called in TypeScript; what has no type of its own is unknown."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(one) for one in schema[key]))
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"({type_of(schema.get('items', {}))})[]"
    if kind == "object" or "properties" in schema:
        below = schema.get("additionalProperties")
        return f"Record<string, {type_of(below) if isinstance(below, dict) else 'unknown'}>"
    return "null" if kind == "null" else WORDS.get(str(kind), "unknown")


def operation(one: Part) -> str:
    given: dict[str, list[str]] = {"path": [], "query": []}
    for parameter in one.get("parameters", ()):
        if parameter["in"] in given:
            mark = "" if parameter["required"] else "?"
            word = f"{key_of(parameter['name'])}{mark}: {type_of(parameter['schema'])}"
            given[parameter["in"]].append(word)
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    usual = next(value for status, value in one["responses"].items() if status[0] == "2")
    answer = usual.get("content", {}).get("application/json", {}).get("schema")
    return (
        f"  {one['operationId']}: {{\n"
        f"    path: {{ {'; '.join(given['path'])} }};\n"
        f"    query: {{ {'; '.join(given['query'])} }};\n"
        f"    body: {type_of(body['schema']) if body else 'undefined'};\n"
        f"    answer: {type_of(answer) if answer else 'null'};\n"
        "  };\n"
    )
