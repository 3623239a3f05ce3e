"""Files that are no playbook, each with the code of the finding that says so."""

from typing import NamedTuple

HEAD = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bad, path: tests/bad}
workflow:
  - step: start
    tool:
      - rest: {kind: noop}
"""


class BadFile(NamedTuple):
    content: bytes
    code: str


def nested(depth: int) -> bytes:
    return HEAD + b"workload: {a: " + b"[" * depth + b"]" * depth + b"}\n"


def alias_bomb() -> bytes:
    lines = [b"  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 12):
        refs = b", ".join([b"*a%d" % (n - 1)] * 10)
        lines.append(b"  a%d: &a%d [%s]" % (n, n, refs))
    return HEAD + b"workload:\n" + b"\n".join(lines) + b"\n"


BAD_FILES: dict[str, BadFile] = {
    "empty": BadFile(b"", "empty-document"),
    "blank": BadFile(b"\n\n# only a comment\n", "empty-document"),
    "binary": BadFile(bytes(range(256)) * 40, "not-utf8"),
    "elf": BadFile(b"\x7fELF\x02\x01\x01" + b"\x00" * 200, "control-character"),
    "huge": BadFile(HEAD + b"# " + b"x" * 3_000_000, "too-large"),
    "huge_line": BadFile(HEAD + b"workload: {a: '" + b"y" * 1_900_000 + b"\t", "yaml-syntax"),
    "deep": BadFile(nested(5_000), "too-deep"),
    "very_deep": BadFile(nested(500_000), "too-deep"),
    "deep_block": BadFile(HEAD + b"workload:\n  a:\n    " + b"- " * 3_000 + b"1\n", "too-deep"),
    "tabs": BadFile(HEAD.replace(b"    tool", b"\ttool"), "tab-indent"),
    "duplicate_keys": BadFile(HEAD + b"workflow: []\n", "duplicate-key"),
    "alias_bomb": BadFile(alias_bomb(), "too-many-nodes"),
    "own_alias": BadFile(HEAD + b"workload: &w {again: *w}\n", "recursive-alias"),
    "unknown_tag": BadFile(HEAD + b"workload: !secret {a: 1}\n", "unknown-tag"),
    "python_tag": BadFile(
        HEAD + b"workload: !!python/object/apply:os.system ['exit 9']\n", "unknown-tag"
    ),
    "latin_1": BadFile(HEAD + "workload: {a: é}\n".encode("latin-1"), "not-utf8"),
    "utf_16": BadFile(HEAD.decode().encode("utf-16"), "not-utf8"),
    "two_documents": BadFile(HEAD + b"---\n" + HEAD, "several-documents"),
    "a_list": BadFile(b"- step: start\n", "wrong-type"),
    "a_word": BadFile(b"hello\n", "wrong-type"),
    "open_quote": BadFile(HEAD + b"workload: {a: 'x}\n", "yaml-syntax"),
    "bad_escape": BadFile(HEAD + b'workload: {a: "\\q"}\n', "yaml-syntax"),
}
