"""Whatever stands in the text and wherever the cursor is, an editor gets an answer."""

from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.playbook.editing.test_answers import TEXT

from noetl.kinds.table import KINDS
from noetl.playbook.editing.answers import OpenDocument
from noetl.playbook.editing.fixes import fix_of

PLACES = st.integers(0, len(TEXT))
TYPED = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["{{ ", '"', "\n", "- ", "[", "{", ": ", "|", "*a", "&a ", "\t", "!!x ", "? "]),
)


@example(0, 0, "? ", 1, 0)
@given(PLACES, PLACES, TYPED, st.integers(0, 40), st.integers(0, 90))
def test_no_text_and_no_place_is_too_strange(
    start: int, end: int, typed: str, line: int, column: int
) -> None:
    text = TEXT[: min(start, end)] + typed + TEXT[max(start, end) :]
    document = OpenDocument(KINDS)
    for finding in document.check(text):
        fix_of(finding, text.split("\n"))
    for one in document.offers(text, line, column):
        assert 0 <= one.back <= column
    document.hover(text, line, column)
    document.definition(text, line, column)
