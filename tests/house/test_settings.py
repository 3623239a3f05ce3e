"""Every setting is on the page that operators read."""

from tests.house.tree import ROOT

from noetl.settings import READ, Settings


def test_every_setting_can_be_read_and_is_documented() -> None:
    assert set(READ) == set(Settings.__struct_fields__)
    page = (ROOT / "docs" / "operate" / "one-machine.md").read_text("utf-8")
    missing = [field for field in READ if f"`NOETL_{field.upper()}`" not in page]
    assert missing == []
