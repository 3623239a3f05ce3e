"""The reading of pages that the other house rules stand on."""

from pathlib import Path

from tests.house.markdown import Block, anchors_of, blocks_of, links_of

PAGE = """\
# DOC: the document

See [one](a.md#x), [two](https://example.com) and `[three](b.md)`.

```yaml rejected
# [four](c.md)
a: 1
```

### TASK-10
```
plain
```
"""


def page(folder: Path) -> Path:
    path = folder / "page.md"
    path.write_text(PAGE, "utf-8")
    return path


def test_blocks_have_language_words_and_line(tmp_path: Path) -> None:
    path = page(tmp_path)
    assert list(blocks_of(path)) == [
        Block(path, 5, "yaml", "rejected", "# [four](c.md)\na: 1\n"),
        Block(path, 11, "", "", "plain\n"),
    ]


def test_links_are_those_of_the_prose(tmp_path: Path) -> None:
    assert list(links_of(page(tmp_path))) == [(3, "a.md#x"), (3, "https://example.com")]


def test_anchors_are_headings_in_small_letters(tmp_path: Path) -> None:
    assert anchors_of(page(tmp_path)) == {"doc-the-document", "task-10"}
