"""Output that is large, endless, or no text."""

import asyncio
import base64
from typing import Any

import pytest
from tests.unit.tools.process.bench import Bench

from noetl.masking import KNOWN
from noetl.messages.reference import Reference
from noetl.tools.process import capture
from noetl.tools.process.tool import ShellTool


def body(bench: Bench, reference: Any) -> Any:
    assert isinstance(reference, Reference)
    return asyncio.run(bench.place.results.fetch(reference))


@pytest.mark.parametrize(
    ("printed", "value", "note"),
    [
        ("caf\\303\\251", "café", None),
        ("a\\0b", "a\0b", None),
        ("caf\\351 noir", "caf� noir", "replaced"),
        ("\\037\\213\\0\\377", base64.b64encode(b"\x1f\x8b\0\xff").decode(), "base64"),
    ],
)
@pytest.mark.parametrize("max_inline", [1000, 1])
def test_what_is_no_text_is_told(
    bench: Bench, printed: str, value: str, note: str | None, max_inline: int
) -> None:
    outcome = bench.shell(f"printf '{printed}'", max_inline=max_inline)

    stdout = outcome.result["stdout"]
    assert (stdout if max_inline == 1000 else body(bench, stdout)) == value
    assert (outcome.block or {}).get("encoding") == (None if note is None else {"stdout": note})
    assert outcome.result["data"] is None


def test_a_bad_byte_that_comes_late_is_replaced_and_told(bench: Bench) -> None:
    command = "head -c 200000 /dev/zero | tr '\\0' a; printf '\\351'"
    outcome = bench.shell(command, max_inline=10)
    assert body(bench, outcome.result["stdout"]) == "a" * 200_000 + "�"
    assert (outcome.block or {})["encoding"] == {"stdout": "replaced"}


def test_characters_that_are_cut_between_two_pieces_stay_whole(bench: Bench) -> None:
    """Three bytes each, and a pipe gives 65536 at a time."""
    command = "yes '☃☃☃☃☃' | head -n 20000"
    outcome = bench.shell(command, max_inline=10)
    assert body(bench, outcome.result["stdout"]) == "☃☃☃☃☃\n" * 20_000
    assert "encoding" not in (outcome.block or {})


def test_large_json_is_kept_parsed_and_as_text(bench: Bench) -> None:
    outcome = bench.shell("echo '['; seq -s, 50000; echo ']'", max_inline=1000)
    assert body(bench, outcome.result["data"]) == list(range(1, 50_001))
    assert body(bench, outcome.result["stdout"]).startswith("[\n1,2,3")


def test_what_only_begins_like_json_is_text(bench: Bench) -> None:
    outcome = bench.shell("echo '[x'; seq 50000", max_inline=1000)
    assert outcome.result["data"] is None


def test_json_that_is_too_long_to_be_read_is_text(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "PARSED", 100_000)
    outcome = bench.shell("echo '['; seq -s, 50000; echo ']'", max_inline=1000)
    assert outcome.result["data"] is None
    assert isinstance(outcome.result["stdout"], Reference)


def test_much_output_goes_to_the_store_in_small_pieces(bench: Bench) -> None:
    outcome = bench.shell("head -c 20000000 /dev/zero | tr '\\0' x; echo e >&2", max_inline=70_000)
    assert outcome.result["stdout"].size == 20_000_002
    assert outcome.result["stderr"] == "e\n"
    assert bench.place.results.largest_piece < 300_000
    assert bench.place.results.unfinished == 0


def test_the_log_keeps_a_part_of_much_output(bench: Bench) -> None:
    bench.shell("yes 123456789 | head -c 3000000")
    assert bench.place.lines[-1] == ("system", "1951424 further bytes of output were dropped")
    assert len(bench.place.lines) < 110_000


def test_endless_output_is_ended(bench: Bench) -> None:
    outcome = bench.shell("yes", max_inline=1000, tool=ShellTool(longest=1_000_000))
    assert outcome.error == {
        "kind": "limit",
        "message": "stdout is longer than the allowed 1000000 bytes",
        "retryable": False,
    }
    assert bench.place.results.unfinished == 0


def test_a_full_disk_ends_the_command(bench: Bench) -> None:
    bench.place.results.full = True
    outcome = bench.shell("yes", max_inline=1000)
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("internal", True)


@pytest.mark.parametrize("behind", [330, 370, 390, 399, 401])
def test_half_a_secret_is_in_no_last_line(bench: Bench, behind: int) -> None:
    """Of a long line the end is told."""
    secret = "qwjkzmxptrvnldshfgbcyaeuio-QWJKZMXPTRVNLDSHFGBCYAEUIO"
    KNOWN.add(secret)
    command = f'printf "%0400d %s %0{behind}d" 0 "$SECRET" 0 >&2; exit 3'
    outcome = bench.shell(command, env={"SECRET": secret})
    assert outcome.error is not None
    said = outcome.error["message"].removeprefix("the command ended with exit code 3: ")
    assert 100 < len(said) <= 400
    assert said.strip("0 *") == ""
