"""An answer with thousands of fields that no form has: each would be compared with all of it."""

import pytest

from noetl.control import approvals
from noetl.control.approvals import SHOWN, AnswerRefused, filled_in
from noetl.playbook.suggest import did_you_mean


@pytest.mark.rule("WAIT-5")
def test_few_of_many_strange_fields_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, known: object, otherwise: str) -> str:
        asked.append(name)
        return did_you_mean(name, known, otherwise)  # type: ignore[arg-type]

    monkeypatch.setattr(approvals, "did_you_mean", counted)
    form = {"form": {"note": {"type": "string", "required": False}}}
    given = {f"n{number}" + "x" * 100: 1 for number in range(3000)}
    with pytest.raises(AnswerRefused, match="nor has it 2,995 others") as refused:
        filled_in(form, given, approved=True)
    assert len(asked) == SHOWN
    assert len(str(refused.value)) < 2000
    assert filled_in(form, {"note": "a"}, approved=True) == {"note": "a"}
