"""A ticket lets one browser in, once, and for a minute."""

from litestar.testing import AsyncTestClient
from tests.support.api import SmallPlane

from noetl.api.serve import create_app
from noetl.api.tickets import LASTS, PREFIX, Tickets, address_with, new_ticket
from noetl.ports.tokens import TokenRow

ROW = TokenRow(token_id="guest", name="guest", role="viewer", digest="", created_at=0)


def test_a_ticket_is_good_once_and_for_a_minute() -> None:
    time = [1000.0]
    tickets = Tickets("secret", ROW, now=lambda: time[0])
    ticket, other = (new_ticket("secret", now=1000.0) for _ in range(2))
    assert ticket.startswith(PREFIX)
    assert tickets.spend(ticket) is ROW
    assert tickets.spend(ticket) is None
    time[0] += LASTS
    assert tickets.spend(other) is ROW
    time[0] += 1
    assert tickets.spend(new_ticket("secret", now=1000.0)) is None
    assert tickets.spend(ticket) is None


def test_what_nobody_signed_is_no_ticket() -> None:
    tickets = Tickets("secret", ROW, now=lambda: 1000.0)
    made = new_ticket("secret", now=1000.0)
    longer = made.replace(".1060.", ".9999999.")
    wrong = [new_ticket("another", now=1000.0), longer, "", PREFIX, made[:-1], f"{made}é"]
    assert [tickets.spend(text) for text in wrong] == [None] * len(wrong)
    assert tickets.spend(made) is ROW


def test_the_ticket_is_in_the_fragment() -> None:
    assert address_with("http://127.0.0.1:1", "executions/e1", "t") == (
        "http://127.0.0.1:1/ui/executions/e1#t"
    )
    assert address_with("http://127.0.0.1:1", "", None) == "http://127.0.0.1:1/ui/"


async def test_a_ticket_of_the_home_signs_in_once_and_is_no_token() -> None:
    owner, own = "noetl_owner", {"sec-fetch-site": "same-origin"}
    async with AsyncTestClient(create_app(SmallPlane(), auth=True, owner=owner)) as client:
        ticket = new_ticket(owner)
        for expected in (200, 401):
            told = await client.post("/api/sign-in", json={"token": ticket}, headers=own)
            assert told.status_code == expected, told.text
        assert (await client.get("/api/me", headers=own)).json()["role"] == "admin"
        shown = {"authorization": f"Bearer {new_ticket(owner)}"}
        assert (await client.get("/api/me", headers=shown)).status_code == 401


async def test_servers_that_share_a_database_take_it_once_between_them() -> None:
    owner, own = "noetl_owner", {"sec-fetch-site": "same-origin"}
    plane = SmallPlane()
    ticket, told = new_ticket(owner), []
    for _ in range(3):  # shards on one port, or one that was started again
        async with AsyncTestClient(create_app(plane, auth=True, owner=owner)) as client:
            answer = await client.post("/api/sign-in", json={"token": ticket}, headers=own)
            told.append(answer.status_code)
    assert told == [200, 401, 401]
