"""Modules are read when they are needed, and are then as they always were."""

import gettext
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial

import pytest

from noetl import imports

EXPRESSIONS = """
import sys, threading
from noetl.imports import LateModule, sparing
with sparing():
    from noetl.expression.template import compile_value
assert compile_value("{{ a.b | default(1) }} and {{ 2 > 1 }}")({}) == "1 and True"
assert "jinja2.environment" not in sys.modules, "too much is imported"
"""
LOADED = """
with sparing():
    import asyncio, gettext, inspect, ssl, hashlib, json, msgspec, textwrap, yaml
<before>
for name in (<names>):
    assert type(sys.modules[name]) is not LateModule, name
"""


def well(then: str, first: str = EXPRESSIONS) -> None:
    """What `then` asserts holds in a process whose first imports were sparing."""
    done = subprocess.run(
        [sys.executable, "-c", f"{first}\n{then}\nprint('well')"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("well\n", "")


@pytest.mark.parametrize(
    "then",
    [
        "import jinja2; assert jinja2.Environment().from_string('{{ 1 }}').render() == '1'",
        "from jinja2 import Environment, nodes; assert nodes is sys.modules['jinja2.nodes']",
        "import jinja2.ext; assert jinja2.__version__",
        "import jinja2; assert not hasattr(jinja2, 'nothing'); assert hasattr(jinja2, 'Template')",
        "assert compile_value('{% if x %}{{ x }}{% endif %}')({'ctx': {'x': 3}}) == '3'",
        "assert compile_value(\"{{ '{:>3}'.format(x) }}\")({'ctx': {'x': 3}}) == '  3'",
        "assert compile_value(\"{{ [1, 2] | map('string') | list }}\")({}) == ['1', '2']",
        "assert compile_value('{{ a | tojson }}')({'ctx': {'a': {'b': 1}}}) == '{\"b\": 1}'",
        """
import jinja2
seen = []
threads = [threading.Thread(target=lambda: seen.append(jinja2.Template)) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
assert len(seen) == 8 and len(set(seen)) == 1
""",
    ],
)
def test_whatever_asks_a_package_for_more_gets_it(then: str) -> None:
    well(then)


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED", "'ssl',"),
        (
            "assert asyncio.sslproto.SSLAgainErrors[0] is ssl.SSLWantReadError",
            "'asyncio.sslproto',",
        ),
        ("from inspect import signature; signature(len)", "'inspect', 'ast'"),
        ("assert 'def sparing' in inspect.getsource(sparing)", "'inspect', 'tokenize'"),
        ("assert hashlib.sha256(b'').hexdigest()[:4] == 'e3b0'", "'hashlib',"),
        ("import json.decoder; assert json.loads('[1]') == [1]", "'json',"),
        ("import uvloop; assert uvloop.run(asyncio.sleep(0, 7)) == 7", "'ssl',"),
        ("import aiohttp, http.client, email.message", "'ssl', 'json'"),
        ("import yaml; assert yaml.safe_load('a: [1]') == {'a': [1]}", "'yaml',"),
        ("import yaml.loader; assert yaml.SafeLoader is yaml.loader.SafeLoader", "'yaml',"),
        (
            "import msgspec; assert msgspec.structs.fields(msgspec.Struct) == ()",
            "'msgspec.structs',",
        ),
        ("from msgspec import inspect as types; types.type_info(int)", "'msgspec.inspect',"),
        ("import gettext; assert gettext.find('nothing') is None", "'gettext',"),
    ],
)
def test_whatever_asks_a_module_for_a_name_gets_it(before: str, names: str) -> None:
    well(LOADED.replace("<before>", before).replace("<names>", names))


def test_a_module_that_is_late_has_no_names_of_its_own_to_lose() -> None:
    well("""
with sparing():
    import ssl
assert not hasattr(ssl, "nothing") and not hasattr(ssl, "__path__")
assert "SSLContext" in dir(ssl) and ssl.__loader__ is ssl.__spec__.loader
assert type(ssl) is type(sys) and ssl is sys.modules["ssl"]
""")


def test_a_module_that_threads_ask_at_once_is_read_once() -> None:
    well("""
with sparing():
    import ssl
seen = []
def ask():
    seen.append(ssl.SSLSocket)
threads = [threading.Thread(target=ask) for _ in range(16)]
[one.start() for one in threads]
[one.join() for one in threads]
assert len(seen) == 16 and len(set(seen)) == 1
""")


def test_a_module_that_cannot_be_read_says_so_each_time() -> None:
    well("""
with sparing():
    import ssl
sys.modules["_ssl"] = None
for _ in range(2):
    try:
        ssl.SSLContext
    except ImportError as missing:
        assert "_ssl" in str(missing)
    else:
        raise AssertionError("it was read")
del sys.modules["_ssl"]
assert ssl.SSLContext
""")


def test_who_has_imported_it_before_is_not_disturbed() -> None:
    code = (
        "import jinja2, ssl, sys, noetl.imports\n"
        "with noetl.imports.sparing(): import jinja2 as other, ssl as late\n"
        "assert (other, late) == (jinja2, ssl) and type(ssl) is type(sys)\n"
        "assert noetl.imports.LateFinder not in sys.meta_path"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_a_library_does_without_what_it_can_do_without() -> None:
    then = """
import sys
from noetl.imports import absent, import_command
import_command("noetl.cli.validate")
assert "typing_extensions" not in sys.modules
import typing, typing_extensions, msgspec
class Thing(typing.TypedDict):
    a: typing_extensions.Required[int]
    b: typing_extensions.NotRequired[str]
assert msgspec.convert({"a": 1}, Thing) == {"a": 1}
try:
    msgspec.convert({"b": "x"}, Thing)
except msgspec.ValidationError as wrong:
    assert "required field `a`" in str(wrong)
with absent("typing_extensions"):
    import typing_extensions as same
assert same is typing_extensions
"""
    well(then, first="")


DOCS = [
    "",
    "one line",
    "  \tindented\t ",
    "first\n\n    second\n      third\n  \n",
    "\n\n  a\n b\n\n",
    "a\n\tb\n        c",
    "\n",
    "   \n   \n",
    textwrap.dedent(imports.__doc__ or ""),
    *(str(one.__doc__) for one in vars(inspect).values() if callable(one)),
]


def test_stand_ins_answer_as_what_they_stand_in_for() -> None:
    for text in DOCS:
        assert imports.cleandoc(text) == inspect.cleandoc(text), repr(text)

    for text in DOCS[1:]:  # the empty one asks for the head of a catalog
        assert imports.gettext(text) == gettext.gettext(text)
    for number in range(4):
        forms = ("one", "many", number)
        assert imports.ngettext(*forms) == gettext.ngettext(*forms)

    async def later() -> None:
        pytest.fail("called")

    class Thing:
        async def method(self) -> None:
            pytest.fail("called")

        async def __call__(self) -> None:
            pytest.fail("called")

    asked: list[Callable[..., object]] = [later, well, Thing().method, partial(later), Thing(), len]
    for function in asked:
        given = imports.iscoroutinefunction(function)
        assert given == inspect.iscoroutinefunction(function), function
