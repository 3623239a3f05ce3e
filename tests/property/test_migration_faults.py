"""Whatever a text of an older dialect is broken to, migration tells its faults and goes on."""

from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.migrations import FOLDER, whole

from noetl.playbook.dialects.migrate import migrate

OLDER = Path(__file__).parents[1] / "conformance" / "playbooks" / "older"
RUBBISH = (
    "null",
    "[]",
    "{}",
    "3",
    "x",
    "{{ vars }}",
    "[ { step: x } ]",
    "- y",
    "&a 1",
    "*a",
    "? :",
)


def corpus() -> list[str]:
    """Every older text that the conformance tests hold."""
    texts = [path.read_text("utf-8") for path in sorted(OLDER.glob("*.yaml"))]
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in msgspec.yaml.decode(path.read_bytes()):
            texts += [whole(case[key]) for key in ("before", "text") if key in case]
    return texts


TEXTS = corpus()


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A text with a few lines lost, doubled, moved in or out, or their values replaced."""
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        match draw(st.sampled_from(["lose", "double", "move", "replace", "swap"])):
            case "lose" if len(lines) > 1:
                del lines[at]
            case "double":
                lines.insert(at, line)
            case "move":
                lines[at] = line[2:] if draw(st.booleans()) else f"  {line}"
            case "replace":
                key, colon, _ = line.partition(":")
                lines[at] = f"{key}{colon} {draw(st.sampled_from(RUBBISH))}"
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], line
            case _:
                pass
    return "\n".join(lines) + "\n"


@given(broken())
def test_no_text_breaks_migration(text: str) -> None:
    migrated = migrate(text)
    count = len(text.splitlines())
    # A parser that misses something at the end points behind the last line.
    assert all(1 <= one.line <= count + 1 for one in migrated.findings)
    assert all(1 <= one.line <= count for one in migrated.rewrites)
    assert migrated.changed or migrated.text == text
    if migrated.complete:
        again = migrate(migrated.text)
        assert (again.text, again.complete) == (migrated.text, True), again.rewrites
