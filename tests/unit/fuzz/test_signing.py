"""Whatever comes over the queue, a server takes what a key of its own signed, and once."""

from random import Random

import pytest
from fuzz import fuzz_signing
from fuzz.fuzz_signing import BAD, CORPUS, GOOD, check_signed
from fuzz.mutate import spoilt


@pytest.mark.parametrize("number", range(len(GOOD) + len(BAD)))
def test_the_corpus(number: int) -> None:
    """Broken signatures, old ones, replayed ones, those of another pool or role, and cut ones."""
    check_signed([*GOOD, *BAD][number])


def test_chance() -> None:
    for seed in range(300):
        message = spoilt(Random(seed), CORPUS)
        if message[:1] == b"\x02":
            check_signed(message[1:])


def test_it_would_see_a_forged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.adapters.nats.signing.hmac.compare_digest", lambda *_: True)
    with pytest.raises(AssertionError, match="a server took"):
        check_signed(fuzz_signing.BAD[1])
