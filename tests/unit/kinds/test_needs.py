"""What a kind declares about itself is what its tool does."""

import pytest

from noetl.keychain.fields import REQUIRED
from noetl.kinds.kind import Kind
from noetl.kinds.messaging import NATS
from noetl.kinds.table import KINDS
from noetl.playbook.blocks import CREDENTIAL_KINDS, DIRECTIVES
from noetl.playbook.check_ignored import DIRECTIVES as READ_BY
from noetl.playbook.inputs import input_fields
from noetl.playbook.model import Then
from noetl.tools.nats.operations import OPERATIONS


def test_an_operation_of_nats_needs_what_its_tool_asks_for() -> None:
    assert NATS.needs == {name: needs for name, (_, needs) in OPERATIONS.items()}


def test_every_kind_of_credential_is_known_to_validation() -> None:
    assert set(CREDENTIAL_KINDS) == set(REQUIRED)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_what_is_needed_is_an_input(kind: Kind) -> None:
    needs = {name for names in kind.needs.values() for name in names}
    assert needs <= set(input_fields(kind.inputs))


def test_every_directive_says_what_it_reads() -> None:
    assert set(READ_BY) == set(DIRECTIVES)
    assert {name for names in READ_BY.values() for name in names} <= set(Then.__struct_fields__)
