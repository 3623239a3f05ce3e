"""Every setting can be read, and is on the page that operators read."""

import re

from tests.house.tree import ROOT, SOURCE

from noetl.settings import SETTINGS, Settings

PAGE = (ROOT / "docs" / "operate" / "settings.md").read_text("utf-8")


def test_every_field_is_a_setting_in_the_same_order() -> None:
    assert tuple(SETTINGS) == Settings.__struct_fields__


def test_every_setting_is_documented() -> None:
    assert [field for field in SETTINGS if f"`NOETL_{field.upper()}`" not in PAGE] == []


def test_every_variable_that_the_code_names_is_documented() -> None:
    """Names that are put together (`NOETL_` and a field) are covered by the test above."""
    named = {
        name
        for module in SOURCE.rglob("*.py")
        for name in re.findall(r"\bNOETL_[A-Z_]+[A-Z]\b", module.read_text("utf-8"))
    }
    assert [name for name in sorted(named) if f"`{name}`" not in PAGE] == []
