"""
What a command imports: only what it needs. Start-up is measured by `python -m bench`; here it is
kept from growing again, one `import` at a time.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.program import HELLO

PROGRAM = """
import sys
from noetl.imports import LateModule, sparing
with sparing():
    from noetl.cli.main import main
code = main(sys.argv[2:])
read = {name for name, module in sys.modules.items() if type(module) is not LateModule}
print(sum(name.startswith("noetl.") for name in read), len(read))
print(code, *sorted(set(sys.argv[1].split()) & read))
"""
CLI = "difflib importlib.metadata noetl.api noetl.client rich aiohttp cryptography duckdb psycopg"
"""What no everyday command needs."""
ARCHIVES = "tempfile shutil bz2 lzma zipfile unicodedata"
TEMPLATES = (
    "jinja2.environment jinja2.sandbox jinja2.compiler jinja2.lexer jinja2.filters "
    "noetl.expression.stock noetl.expression.filters"
)
"""Only templates with statements, filters or rare syntax need these."""
RUNTIME = "asyncio ssl uvloop apsw noetl.node noetl.server noetl.worker noetl.adapters"
ELSEWHERE = (
    "noetl.worker.part noetl.worker.workplace noetl.node.restarts noetl.control.forgetting "
    "noetl.node.answers noetl.ports.link noetl.kinds.sql noetl.kinds.storage noetl.kinds.code "
    "noetl.cli.findings noetl.server.former noetl.server.retention noetl.playbook.dialects "
    "noetl.server.registering noetl.server.triggering noetl.playbook.triggers cronsim zoneinfo "
    "noetl.server.limits noetl.server.caching noetl.control.approvals noetl.messages.trace "
    "noetl.playbook.declared noetl.playbook.check_waits noetl.playbook.codes noetl.kinds.awaited "
    "noetl.adapters.sql_registers noetl.adapters.sqlite.registers noetl.adapters.sqlite.limits "
    "noetl.ports.storage noetl.ports.tokens noetl.ports.triggers secrets getpass"
)
"""Parts of ours that the first example does not use."""
LIBRARIES = (
    "inspect ast tokenize ssl _ssl _hashlib json textwrap ipaddress typing_extensions uvloop "
    "asyncio.sslproto asyncio.staggered gettext locale yaml yaml.loader yaml.dumper yaml.resolver "
    "msgspec.inspect msgspec.msgpack msgspec.toml msgspec.yaml concurrent.futures.thread copy"
)
"""What libraries import and a short run does not use (decision 0070)."""
HELP = (
    f"inspect yaml jinja2 msgspec json urllib.parse base64 noetl.masking noetl.cli.terminal "
    f"noetl.cli.validate {ARCHIVES} {RUNTIME}"
)
MOST = {"--help": (10, 110), "validate": (102, 255), "run": (210, 425)}
"""
Modules of ours, and all together, that a command reads at the most. Sixty of ours take as long as
Python itself does to start: whoever adds one asks whether this command needs it.
"""


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--help"], f"{CLI} {HELP}"),
        (["validate", str(HELLO)], f"{CLI} {ARCHIVES} {TEMPLATES} {RUNTIME} {LIBRARIES}"),
        (["run", str(HELLO)], f"{CLI} {ARCHIVES} {TEMPLATES} {ELSEWHERE} {LIBRARIES}"),
    ],
    ids=["help", "validate", "run"],
)
def test_a_command_imports_what_it_needs(words: list[str], unneeded: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, unneeded, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "NOETL_HOME": str(tmp_path)},
    )
    *_, counts, ended = done.stdout.splitlines()
    assert ended == "0"
    for read, most in zip(map(int, counts.split()), MOST[words[0]], strict=True):
        assert read <= most
