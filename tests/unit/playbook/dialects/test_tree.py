"""A tree is written as it was read, and keeps comments where they belong when it is changed."""

import pytest
from tests.house.tree import ROOT

from noetl.playbook.dialects.tree import Document, Mapping, Sequence, TreeSlot, node_of, plain
from noetl.playbook.dialects.tree_reading import read_tree
from noetl.playbook.dialects.tree_writing import write_tree
from noetl.playbook.yaml_text import read_yaml

FILES = sorted(path for folder in ("examples", "tests") for path in (ROOT / folder).rglob("*.yaml"))


def document(text: str) -> Document:
    return read_tree(read_yaml(text))


def root(text: str) -> tuple[Document, Mapping]:
    read = document(text)
    assert isinstance(read.root, Mapping)
    return read, read.root


TEXTS = {
    "comments": "# head\na: 1  # beside\n\n# above b\nb:  # of b\n  # above c\n  c: 2\n",
    "comments at the end": "a:\n  b: 1\n\n  # after b\n\n# end\n",
    "comments between": "a:\n  b:\n    - c\n    # of the list\n  # of a\n# above d\nd: 1\n",
    "flow": "a: {b: 1,   c: [ 1,2 ]}  # x\nd: [\n  1,  # one\n  2\n]\n",
    "texts": "a: |  # note\n    one\n      two\n\nb: >-\n   fold\n   more\nc: |+\n  kept\n\nf: 1\n",
    "quotes": "c: 'it''s'\nd: \"x\\n\"\n",
    "several lines": 'a: plain\n  more\nb: "quoted\n  more"  # c\n',
    "anchors": "a: &x\n  b: 1\nc: *x\nd: &y [1]\ne: &z text\n",
    "lists": "a:\n- 1\n-  b: 2\n   c: 3\n- - 4\n  - 5\nd:\n    - e\n",
    "aligned": "short:    1\nlonger:   2\n'quoted':  3\nempty:\ntilde: ~\n",
    "start of a document": "%YAML 1.2\n---\n# c\na: 1\n",
    "no last line end": "a: 1\nb: 2",
    "windows": "a: 1\r\n# c\r\nb:\r\n  - 2\r\n",
    "wide characters": "ä: ö  # ü\nb: [ö, 'é']  # ✓\nc: 1\n",
    "empty collections": "a: {}\nb: []\nc: 1\n",
    "blank lines at the end": "a:\n  b: 1\n\n\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_is_written_as_it_was_read(text: str) -> None:
    read = document(text)
    assert write_tree(read).text == text
    assert plain(read.root) == read_yaml(text).value(read_yaml(text).root)


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_house_is_written_as_it_was_read(file: object) -> None:
    text = file.read_text("utf-8")  # type: ignore[attr-defined]
    assert write_tree(document(text)).text == text


def test_lines_lead_back_to_the_source() -> None:
    text = "a: 1\n\nb:\n  c: |\n    x\n    y\n  d: 2\n"
    read, top = root(text)
    top.put("new", {"e": 3}, at=1)
    written = write_tree(read)
    assert written.text == "a: 1\nnew:\n  e: 3\n\nb:\n  c: |\n    x\n    y\n  d: 2\n"
    assert written.origins[3:] == [3, 3, 4, 5, 6, 7]
    b = top.slot("b")
    assert b is not None
    assert (b.line, written.places[id(b)]) == (3, 5)


def test_a_slot_moves_with_its_comments() -> None:
    read, top = root("a:\n  # why\n  b: 1  # one\n  c: 2\nd:\n  e: 3\n")
    moved = (top.mapping("a") or Mapping()).pop("b")
    assert moved is not None
    (top.mapping("d") or Mapping()).slots.append(moved)
    assert write_tree(read).text == "a:\n  c: 2\nd:\n  e: 3\n  # why\n  b: 1  # one\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: {b: 1}\nc: {d: 2}\n", "a: {b: 1, x: word}\nc: {d: 2}\n"),
        ("a: { b: 1 }\nc: {d: 2}\ne: { f: 3 }\n", "a: { b: 1, x: word }\nc: {d: 2}\ne: { f: 3 }\n"),
        ("a: {b: 1,\n    c: 2}\n", "a: {b: 1, c: 2, x: word}\n"),
        ("a: {b: 1,  # one\n    c: 2}\n", "a:\n  b: 1  # one\n  c: 2\n  x: word\n"),
    ],
)
def test_a_changed_flow_collection_is_written_anew(before: str, after: str) -> None:
    read, top = root(before)
    (top.mapping("a") or Mapping()).put("x", "word")
    assert write_tree(read).text == after


@pytest.mark.parametrize("dash", ["- ", "  - "])
def test_a_new_list_stands_as_the_others_of_the_document(dash: str) -> None:
    read, top = root(f"a:\n{dash}1\n")
    top.put("b", ["x1", "x2"])
    assert write_tree(read).text == f"a:\n{dash}1\nb:\n{dash}x1\n{dash}x2\n"


def test_a_flow_collection_that_grows_too_wide_is_opened() -> None:
    read, top = root("a: { b: 1 }\n")
    (top.mapping("a") or Mapping()).put("c", "word " * 20 + "end")
    assert write_tree(read).text == f"a:\n  b: 1\n  c: {'word ' * 20}end\n"


SPELLINGS = [
    ("a: 'x'", "it's", "a: 'it''s'"),
    ('a: "x"', 'say "y"', 'a: "say \\"y\\""'),
    ("a: x", "tab\tand \x85", 'a: "tab\\tand \\u0085"'),
    ("a: 'x'", "two\nlines", 'a: "two\\nlines"'),
    ('a: "x"', 'it\'s "y"', 'a: "it\'s \\"y\\""'),
    ("a: x", "{{ y }}", 'a: "{{ y }}"'),
    ("a: x", '{{ y["z"] }}', "a: '{{ y[\"z\"] }}'"),
    ("a: x", "true", 'a: "true"'),
    ("a: x", "plain words", "a: plain words"),
    ("a: x", True, "a: true"),
    ("a: x", 1.5, "a: 1.5"),
    ("a: x", None, "a: null"),
    ("a: |\n  x", "y\nz\n", "a: |\n  y\n  z"),
]


@pytest.mark.parametrize(("before", "value", "after"), SPELLINGS)
def test_a_value_is_written_in_the_style_that_it_had(
    before: str, value: object, after: str
) -> None:
    read, top = root(before + "\n")
    slot = top.slot("a")
    assert slot is not None
    slot.say(value)
    assert write_tree(read).text == after + "\n"
    assert read_yaml(after + "\n").value(read_yaml(after + "\n").root) == {"a": value}


def test_nodes_are_made_from_plain_values() -> None:
    made = node_of({"a": [1, {"b": None}], "c": TreeSlot(node_of("x"))}, 7)
    assert isinstance(made, Mapping)
    assert plain(made) == {"a": [1, {"b": None}], "c": "x"}
    listed = made.node("a")
    assert isinstance(listed, Sequence)
    assert (made.line, listed.line) == (7, 7)
    assert [slot.key for slot in made.slots] == ["a", "c"]


def test_keys_are_found_renamed_and_set() -> None:
    _, top = root("a: 1\nb: [x]\nc: {}\nd: text\n")
    assert top.keys() == ["a", "b", "c", "d"]
    assert (top.text("d"), top.text("a"), top.text("none")) == ("text", None, None)
    assert (top.mapping("b"), top.sequence("c")) == (None, None)
    top.rename("a", "z")
    top.put("b", 2)
    assert top.pop("none") is None
    assert "c" in top
    assert plain(top) == {"z": 1, "b": 2, "c": {}, "d": "text"}
    assert (top.place("b"), top.place("none")) == (1, 4)
