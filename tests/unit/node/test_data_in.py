"""What a webhook or a message brings is JSON or text, and takes nobody long to read."""

import pytest

from noetl.messages.details import MOST_VALUES, TooDetailed
from noetl.node.trigger_subjects import data_in

DETAILED = {
    "values": b"[%b]" % b",".join([b"1"] * (MOST_VALUES + 1)),
    "keys": b" {%b}" % b",".join(b'"%d":1' % number for number in range(MOST_VALUES + 1)),
    "long numbers": b"[%b]" % b",".join([b"9" * 4000] * 60),
}


@pytest.mark.rule("START-5")
@pytest.mark.parametrize("what", DETAILED)
def test_data_that_takes_long_to_read_is_refused_unread(what: str) -> None:
    with pytest.raises(TooDetailed):
        data_in(DETAILED[what])


def test_long_texts_are_taken() -> None:
    table = b"1,2.5,x\n" * 200_000
    assert data_in(table) == table.decode()
    assert data_in(b'{"table": "%b"}' % table.replace(b"\n", rb"\n")) == {"table": table.decode()}
