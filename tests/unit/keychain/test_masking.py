"""Which forms of a secret are found, and what is left of a text."""

import asyncio
import base64
import html
import json
import re
import shlex
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import markupsafe
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl import secret_forms
from noetl.errors import CredentialMissing
from noetl.keychain.fields import register_aside
from noetl.masking import MASK, Masking, add_all
from noetl.secret_forms import made_of

SECRET = 'pä55/w+rd "x" & mo\'re'
PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0B
AQEFAASCBKcwggSjAgEAAoIB
-----END PRIVATE KEY-----
"""


def knowing(*values: str) -> Masking:
    masking = Masking()
    for value in values:
        masking.add(value)
    return masking


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda text: json.dumps(text)[1:-1],
    "json, not ascii": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json, capitals": lambda text: json.dumps(text)[1:-1].replace("u00e4", "u00E4"),
    "json, slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "url, small": lambda text: quote(text, safe="").lower(),
    "url": lambda text: quote(text, safe=""),
    "path": quote,
    "component of a URL": lambda text: quote(text, safe="!'()*~"),
    "whole URL": lambda text: quote(text, safe="!#$%&'()*+,/:;=?@[]~"),
    "form": quote_plus,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "basic": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "basic, one more": lambda text: base64.b64encode(f"users:{text}".encode()).decode(),
    "inside base64": lambda text: base64.b64encode(f"{{'p': '{text}'}}".encode()).decode(),
    "json in base64": lambda text: base64.b64encode(json.dumps(text).encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex, capitals": lambda text: f"x{text}".encode().hex().upper(),
    "json in hex": lambda text: json.dumps({"p": text}).encode().hex(),
    "json twice": lambda text: json.dumps(json.dumps({"p": text})),
    "json twice, not ascii": lambda text: json.dumps(
        json.dumps([text], ensure_ascii=False), ensure_ascii=False
    ),
    "html": html.escape,
    "html, quotes left": lambda text: html.escape(text, quote=False),
    "html of templates": lambda text: str(markupsafe.escape(text)),
    "html, ascii": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "xml": saxutils.escape,
    "xml attribute": lambda text: saxutils.escape(text, {'"': "&quot;", "'": "&apos;"}),
    "repr": repr,
    "repr, ascii": ascii,
    "repr of bytes": lambda text: repr(text.encode()),
    "sql": lambda text: "'" + text.replace("'", "''") + "'",
    "sql with backslashes": lambda text: text.replace("\\", "\\\\").replace("'", "\\'"),
    "csv": lambda text: '"' + text.replace('"', '""') + '"',
    "shell": shlex.quote,
    "shell, by hand": lambda text: "'" + text.replace("'", "'\\''") + "'",
    "shell, double quotes": lambda text: re.sub(r'(["$`\\])', r"\\\1", text),
    "shell, %q": lambda text: re.sub(r"([^\w@%+=:,./-])", r"\\\1", text, flags=re.ASCII),
    "percent, all": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent, all, small": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "json in a URL": lambda text: quote(json.dumps({"p": text}), safe=""),
    "json in a form": lambda text: quote_plus(json.dumps({"p": text}, ensure_ascii=False)),
    "json in a path": lambda text: quote(json.dumps([text])),
    "base64 in lines": lambda text: base64.encodebytes(b"x" * 45 + text.encode()).decode(),
    "base64 in lines, indented": lambda text: re.sub(
        "(.{7})", "\\1\r\n  ", base64.b64encode(text.encode()).decode()
    ),
    "hex in lines": lambda text: re.sub("(.{16})", "\\1\n", text.encode().hex()),
    "taken for Latin-1": lambda text: text.encode().decode("latin-1"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form_inside_larger_text(form: str) -> None:
    masking = knowing(SECRET)
    written = FORMS[form](SECRET)
    text = f"connect failed: {written}; try again"

    assert masking.holds(text)
    assert masking.found_in(msgspec.json.encode({"message": text}))
    masked = masking.masked(text)
    assert MASK in masked
    assert masked.startswith("connect failed: ")
    assert masked.endswith("; try again")
    assert written not in masked
    assert not masking.holds(masked)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12)  # in each of forty forms
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8, max_size=30))
def test_no_secret_is_overlooked_by_the_quick_look(form: str, secret: str) -> None:
    """Most texts are looked through for a few marks alone: those must be in every form."""
    if not secret.strip():
        return
    masking = knowing(secret)
    text = FORMS[form](secret)
    forms = made_of(secret).written
    if any(one in text for one in forms):
        assert masking.holds(text)
    encoded = msgspec.json.encode(text)
    if any(one.encode("latin-1") in encoded for both in forms.values() for one in both):
        assert masking.found_in(msgspec.json.encode(text))


@pytest.mark.parametrize("body", ['{"n":81234567,"t":"is 1234567"}', "[1234567,-1234567.5e1]"])
def test_digits_that_are_secret_leave_json_that_can_be_read(body: str) -> None:
    masked = knowing("1234567").masked_json(body.encode())
    assert b"1234567" not in masked
    msgspec.json.decode(masked)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=8, max_size=40),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
def test_base64_is_found_at_any_alignment(secret: str, before: bytes, after: bytes) -> None:
    text = base64.b64encode(before + secret.encode() + after).decode()
    assert knowing(secret).holds(text)


def test_nothing_known_changes_nothing() -> None:
    masking = Masking()
    assert not masking
    assert masking.masked("text") == "text"
    assert masking.cleaned({"a": ["text"]}) == {"a": ["text"]}
    assert not masking.found_in(b"text")


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blanks_hide_nothing(blank: str) -> None:
    assert not knowing(blank)


@pytest.mark.parametrize(
    ("text", "masked"), [("abcde", MASK), ("x abcde y", "x abcde y"), ("abcdef", "abcdef")]
)
def test_a_short_value_is_masked_where_it_stands_alone(text: str, masked: str) -> None:
    masking = knowing("abcde")
    assert masking.masked(text) == masked
    assert masking.holds(text) is (masked == MASK)
    assert masking.found_in(msgspec.json.encode([text])) is (masked == MASK)


def test_six_characters_are_masked_inside_text() -> None:
    assert knowing("abcdef").masked("xabcdefx") == f"x{MASK}x"


def test_the_longest_secret_is_replaced_first() -> None:
    assert knowing("secret", "secret-and-more").masked("a secret-and-more b") == f"a {MASK} b"


def test_each_line_of_a_key_is_masked() -> None:
    masking = knowing(PEM)
    assert masking.masked("MIIEvQIBADANBgkqhkiG9w0B") == MASK
    assert masking.masked("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_a_secret_can_be_forgotten() -> None:
    masking = knowing("first-token", "second-token")
    masking.forget("first-token")
    masking.forget("never known")
    assert masking.masked("first-token second-token") == f"first-token {MASK}"
    masking.clear()
    assert not masking


def test_values_keys_and_numbers_are_cleaned() -> None:
    masking = knowing("hidden-1", "12345678", "status")
    value = {"hidden-1": [1, "x hidden-1"], "n": (12345678, 5, True, None), "status": "status"}
    cleaned = {MASK: [1, f"x {MASK}"], "n": [MASK, 5, True, None], "status": MASK}
    assert masking.cleaned(value, {"status"}) == cleaned


def test_a_stream_of_json_stays_json() -> None:
    masking = knowing(SECRET, "abc")
    body = msgspec.json.encode({"p": f"<{SECRET}>", "q": "abc", "r": "abcd"})
    cleaned = msgspec.json.decode(masking.masked_json(body))
    assert cleaned == {"p": f"<{MASK}>", "q": MASK, "r": "abcd"}


def test_json_of_others_is_masked_as_they_wrote_it() -> None:
    body = json.dumps({"p": SECRET}).encode()  # with escapes for all that is not ASCII
    assert knowing(SECRET).masked_json(body) == b'{"p": "***"}'


def test_everything_nested_is_registered() -> None:
    masking = Masking()
    add_all(masking, [{"a": "first-secret", "b": ["other-secret", 1234567, 12, None, True]}])
    assert masking.masked("first-secret other-secret 1234567 12") == f"{MASK} {MASK} {MASK} 12"


def test_the_secrets_in_a_text_are_named() -> None:
    masking = knowing("first-secret", "other-secret", "abc")
    basic = base64.b64encode(b"me:first-secret").decode()
    assert masking.all_in(msgspec.json.encode(["x", basic])) == ["first-secret"]
    assert "abc" in masking.all_in(b'["abc"]')


def test_the_longest_form_bounds_what_a_stream_must_hold() -> None:
    masking = knowing("short-secret", "x" * 100)
    assert masking.longest == 300  # each byte with a percent sign
    assert Masking().longest == 0


def test_many_secrets_at_once_are_made_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential with 400 fields kept a worker for ten seconds, one with 2,000 for minutes."""
    masking, made = Masking(), Mock(side_effect=secret_forms.forms_of)
    monkeypatch.setattr(secret_forms, "forms_of", made)
    rebuilt = Mock(side_effect=masking._rebuild)
    monkeypatch.setattr(masking, "_rebuild", rebuilt)
    add_all(masking, [f"secret-number-{number}" for number in range(200)])
    masking.add("another-secret")
    assert (made.call_count, rebuilt.call_count) == (201, 2)
    assert masking.masked("x secret-number-7 another-secret y") == "x *** *** y"
    masking.forget("another-secret")
    assert masking.masked("secret-number-7 another-secret") == "*** another-secret"


@pytest.mark.parametrize(
    "fields",
    [
        {f"field-{number}": f"value-{number}" for number in range(1001)},
        {"value": "a line of a secret\n" * 1001},
        {"value": {"deep": ["x" * 300_000]}},
    ],
)
async def test_what_is_kept_secret_has_bounds(fields: dict[str, Any]) -> None:
    """Each part of it is looked for in every report of the worker from then on."""
    masking = Masking()
    with pytest.raises(CredentialMissing, match="can be kept secret"):
        await register_aside(fields, masking)
    assert not masking


async def test_a_large_secret_leaves_others_their_turns() -> None:
    masking, turns = Masking(), 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    await register_aside({"value": "é<\"'%" * 1000}, masking)
    assert turns > 1
    assert masking.masked("x" + "é<\"'%" * 1000) == "x***"
    beside.cancel()


def test_a_long_secret_in_lines_takes_little_longer_than_on_one() -> None:
    """A text is masked where it is reported: whoever masks for a lease loses all that it runs."""
    masking, value = Masking(), "".join(f"{number:x}" for number in range(6_000))
    masking.add(value)
    lines = "\n  ".join(value[at : at + 76] for at in range(0, len(value), 76))

    def took(text: str) -> float:
        began = time.process_time()
        for _ in range(5):
            assert masking.masked(text) == "a ***\nb"
        return time.process_time() - began

    assert took(f"a {lines}\nb") < 200 * max(took(f"a {value}\nb"), 0.001)


def test_a_thousand_secrets_take_little_longer_than_ten() -> None:
    text = "nothing that anybody knows, " * 20_000
    few, many = Masking(), Masking()
    few.add_many(f"secret-{number:08}-{number:x}" for number in range(10))
    many.add_many(f"secret-{number:08}-{number:x}" for number in range(1_000))

    def took(masking: Masking) -> float:
        began = time.process_time()
        for _ in range(3):
            assert masking.masked(text) == text
            assert not masking.found_in(text.encode())
        return time.process_time() - began

    assert took(many) < 30 * took(few)


@pytest.mark.parametrize("known", [3, 1_000])
@pytest.mark.parametrize("form", ["{}", "x{}y", "{}\n", "a\n {}", "{} {}"])
def test_of_many_secrets_each_is_found(known: int, form: str) -> None:
    masking = Masking()
    values = [f"{number:05}-{'k' * (number % 40)}-word" for number in range(known)]
    masking.add_many(values)
    for value in values[:: max(1, known // 20)]:
        for written in (value, value.encode().hex(), value.encode().hex().upper()):
            text = form.replace("{}", written)
            assert masking.masked(text) == form.replace("{}", "***"), text
            assert masking.holds(text)
            assert masking.found_in(json.dumps(text).encode())
            assert written.encode() not in masking.masked_json(json.dumps(text).encode())


def test_what_is_cut_into_lines_is_masked_where_it_is() -> None:
    masking = Masking()
    masking.add("abcdefghij-klmnopqrst")
    text = "one abcdefghij-\n  klmnopqrst two\nthree abcd\r\nefghij-klmnopq\nrst\nfour"
    assert masking.masked(text) == "one *** two\nthree ***\nfour"
