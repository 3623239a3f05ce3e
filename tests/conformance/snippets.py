"""The snippets of the source documents, each completed to a playbook."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from tests.conformance.migrations import whole

FOLDER = Path(__file__).parent / "playbooks" / "snippets"
ELSE = {"exclusive": "false", "inclusive": "true"}  # in the inclusive mode one refusal refuses


class Snippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text; words in capitals stand for what the source leaves to choose."""

    name: str
    older: bool
    text: str
    ends: dict[str, Any] | None = None
    """Status, ctx and steps after a run; None where it needs what no test has."""
    choices: dict[str, list[str]] = {}
    why: str = ""
    """Why it does not run."""

    def texts(self) -> Iterator[str]:
        """The text with every combination of choices."""
        for chosen in product(*self.choices.values()):
            words = dict(zip(self.choices, chosen, strict=True))
            words["ELSE"] = ELSE[words.get("ADMIT", "exclusive")]
            text = whole(self.text)
            for word, value in words.items():
                text = text.replace(word, value)
            yield text

    def __str__(self) -> str:
        return self.name


def snippets(*files: str) -> list[Snippet]:
    found = [
        one
        for file in files
        for one in msgspec.yaml.decode((FOLDER / f"{file}.yaml").read_bytes(), type=list[Snippet])
    ]
    assert found
    return found
