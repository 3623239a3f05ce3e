"""The examples of starts, people and limits as they are meant: at a server, by their triggers."""

import json
import socketserver
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from tests.support.asking import asking
from tests.support.http_server import serving
from tests.support.postgres import Database
from tests.system.program import ROOT, noetl
from tests.system.servers import FAILING, Node, node

from noetl.api.home_token import FILE as TOKEN
from noetl.api.signatures import signature
from noetl.client.client import Client

EXAMPLES = ROOT / "examples"


T = TypeVar("T")


def until(ask: Callable[[], T], fact: Callable[[T], bool] = bool) -> T:
    """Ask until the answer is the fact that is waited for."""
    for _ in asking(lambda: repr(found)):
        if fact(found := ask()):
            break
    return found


def registered(up: Node, name: str) -> None:
    for file in sorted((EXAMPLES / name).glob("*.yaml")):
        answer = up.there("register", file)
        assert answer.code == 0, answer


def summary(up: Node, execution_id: str) -> dict[str, Any]:
    token = (up.home / TOKEN).read_text().strip()
    with Client(up.url, token=token) as client:
        found: dict[str, Any] = msgspec.to_builtins(client.summary(execution_id))
    return found


def listed(up: Node, *words: str) -> list[dict[str, Any]]:
    return [dict(row) for row in up.there("list", *words, "--json").objects()]


# ── a payment that somebody approves ─────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-5", "CLI-1")
@pytest.mark.parametrize(("word", "paid"), [("approve", ["p1", "p2"]), ("reject", ["p1"])])
def test_a_payment_is_made_when_finance_says_so(word: str, paid: list[str], tmp_path: Path) -> None:
    with node(tmp_path / "node") as up:
        registered(up, "28-approval")
        [begun] = up.there(
            "execute", "examples/approval", "--set", "patience=600", "--json"
        ).objects()
        name = begun["execution_id"]
        said = until(lambda: up.there("waiting").out, lambda told: "Pay 900" in told)
        assert "token:finance" in said
        assert up.there(word, name, "ask:0").code == 3, "the owner's token is not that of finance"
        words = ("server", "token", "add", "finance", "--role", "approver")
        token = up.here(*words).out.strip().splitlines()[-1].split()[-1]
        answer = up.there(word, name, "ask:0", "--reason", "seen", NOETL_TOKEN=token)
        assert answer.code == 0, answer
        done = until(lambda: summary(up, name), lambda told: told["status"] == "completed")
        assert done["ctx"]["paid"] == paid


# ── a nightly load ───────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("START-3", "CLI-1")
def test_nights_that_were_missed_are_made_up_for(tmp_path: Path) -> None:
    with node(tmp_path / "node") as up:
        registered(up, "29-nightly")
        nights = ("examples/every-night", "--from", "2026-03-28", "--to", "2026-03-30")
        dry = up.there("schedule", "backfill", *nights, "--dry-run")
        assert "2026-03-28T01:30:00" in dry.out
        assert "2026-03-29T01:00:00" in dry.out, "there is no 2:30 in this night"
        assert listed(up) == []
        for _ in range(2):
            assert up.there("schedule", "backfill", *nights).code == 0
        rows = until(lambda: listed(up, "--status", "completed"), lambda rows: len(rows) == 2)
        found = [summary(up, row["execution_id"])["ctx"] for row in rows]
        assert sorted(found, key=str) == [
            {"day": "2026-03-28", "total": 10},
            {"day": "2026-03-29", "total": 42},
        ]


# ── a webhook that ends in a table ───────────────────────────────────────────────────────────


@pytest.mark.rule("START-4")
def test_a_call_ends_in_the_table(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_PG", json.dumps(database.credential))
    with node(tmp_path / "node") as up:
        secret = b'{"secret": "whsec-of-the-shop"}'
        words = ("credential", "add", "shop-hook", "--kind", "generic", "--stdin")
        assert up.there(*words, stdin=secret).code == 0
        registered(up, "30-webhook")
        body = json.dumps({"id": 9, "product": "plate", "count": 3}).encode()
        now = int(time.time())
        headers = {
            "content-type": "application/json",
            "x-noetl-timestamp": str(now),
            "x-noetl-signature": signature("whsec-of-the-shop", "examples/order", body, now),
        }
        for _ in range(2):
            call = urllib.request.Request(
                f"{up.url}/hooks/examples/order?wait=60", body, headers, method="POST"
            )
            with urllib.request.urlopen(call, timeout=90) as answer:
                told = json.load(answer)
            assert told["result"]["ctx"] == {"stored": {"product": "plate", "count": 3}}
        assert len(listed(up, "--path", "examples/webhook")) == 1, "the same call starts once"


# ── an alarm ─────────────────────────────────────────────────────────────────────────────────


class Mailbox(socketserver.ThreadingTCPServer):
    """As much of SMTP as a client needs; it keeps what it is sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Postman)
        self.mails: list[str] = []


class Postman(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            self.wfile.write(
                {b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(word, b"250 ok\r\n")
            )
            if word == b"DATA":
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.append(b"".join(lines).decode())
                self.wfile.write(b"250 kept\r\n")
            if word == b"QUIT":
                return


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as box:
        thread = threading.Thread(target=box.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield box
        finally:
            box.shutdown()
            thread.join()


@pytest.mark.rule("START-6")
def test_a_failure_is_told_by_mail_in_the_chat_and_as_an_incident(tmp_path: Path) -> None:
    text = (EXAMPLES / "31-alarm" / "playbook.yaml").read_text("utf-8")
    with node(tmp_path / "node") as up, serving() as world, mailbox() as box:
        port = box.server_address[1]
        here = text.replace("port: 25", f"port: {port}").replace("http://127.0.0.1:8080", world.url)
        here = here.replace("/chat\n", "/echo?chat\n").replace("/incidents\n", "/echo?incidents\n")
        assert up.there("register", "-", stdin=here.encode()).code == 0
        assert up.there("register", EXAMPLES / "31-alarm" / "trigger.yaml").code == 0
        failing = FAILING.replace(b"tests/failing", b"sales/failing")
        assert up.there("register", "-", stdin=failing).code == 0
        assert up.there("execute", "sales/failing", "--wait").code == 1
        [failed] = listed(up, "--path", "sales/failing")
        words = ("--path", "examples/alarm", "--status", "completed")
        until(lambda: listed(up, *words))
        [mail] = box.mails
        assert "Subject: sales/failing failed" in mail
        assert f"noetl explain {failed['execution_id']}" in mail
        bodies = {seen.query[0][0]: json.loads(seen.body) for seen in world.seen}
        assert bodies["chat"]["text"].startswith("sales/failing failed: ")
        incident = bodies["incidents"]
        assert (incident["event_action"], incident["dedup_key"]) == (
            "trigger",
            "noetl/sales/failing",
        )
        assert incident["payload"]["severity"] == "error"
        assert incident["payload"]["custom_details"] == {"execution_id": failed["execution_id"]}


# ── fair sharing ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("LIMIT-4")
def test_nobody_waits_for_the_queue_of_another(tmp_path: Path) -> None:
    """Who came first with fifty does not keep out those who came later with one."""
    at = partial(noetl, NOETL_HOME=str(tmp_path / "home"))
    file = EXAMPLES / "35-fair-sharing" / "playbook.yaml"
    ran = at("run", file, "--set", "customers=100", "--set", "eager=50")
    assert ran.code == 0, ran.err
    customers: dict[str, str] = {}
    begun = []
    for event in at("export", "--all", "--format", "jsonl").objects():
        if event["name"] == "playbook.execution.requested":
            customers[event["execution_id"]] = event["data"].get("payload", {}).get("customer", "")
        if event["name"] == "execution.admitted":
            begun.append((event["timestamp"], customers[event["execution_id"]]))
    eager = [n for n, (_, customer) in enumerate(sorted(begun)) if customer == "customer-0"]
    assert (len(begun), len(eager)) == (149, 50)
    others = [n for n in range(149) if n not in eager]
    assert others[-1] < eager[-1], "the last of the eager one came after everybody else"
    assert eager[25] > others[20], "and in between they took turns"
