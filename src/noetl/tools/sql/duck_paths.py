"""Where a file lies that DuckDB writes: relative paths begin at the playbook's folder."""

import re

from noetl.tools.paths import inside
from noetl.tools.sql.statements import pieces
from noetl.tools.sql.values import quoted

_ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:|:")
"""Absolute, or of another kind: a URL, `:memory:`."""
_READING = re.compile(r"read_\w+|parquet_\w+|glob|sniff_csv")
"""Functions whose texts are paths."""
_READ = "'"
"""Stands among the words for a path that is read."""
_BEFORE = {
    "copy": frozenset({"to"}),
    "attach": frozenset({"attach", "database", "exists"}),
    "export": frozenset({"database"}),
    "import": frozenset({"database"}),
}
"""First word of a statement → words after which a path stands."""


def placed(text: str, folder: str | None, root: str | None = None) -> str:
    """
    The same command, its paths made absolute. DuckDB looks for files to read in the folder that
    it is told, but writes where the process happens to stand; kept below a `root`, it takes no
    relative path at all.
    """
    if folder is None:
        return text
    done, words, nested = list[str](), list[str](), list[str]()
    for kind, piece in pieces(text):
        shown = piece
        if kind == "word":
            words.append(piece.lower())
        elif piece == "(":
            nested.append(words[-1] if words else "")
        elif piece == ")":
            del nested[-1:]
        elif piece == ";":
            words = []
        elif kind == "quoted":
            read = root is not None and _is_read(words, nested)
            written = not nested and words and words[-1] in _BEFORE.get(words[0], ())
            if piece.startswith("'") and (read or written):
                shown = _absolute(piece, folder, root)
            words.append(_READ if read else shown)
        done.append(shown)
    return "".join(done)


def _is_read(words: list[str], nested: list[str]) -> bool:
    """A table by its file, or a path for a function that reads files; names are none of that."""
    last = words[-1] if words else ""
    if last in ("from", "join"):
        return True
    # Further texts of such a function are values of its options, but for those of a list of paths.
    return bool(nested and _READING.fullmatch(nested[-1])) and last in (nested[-1], _READ)


def _absolute(text: str, folder: str, root: str | None) -> str:
    path = text[1:-1].replace("''", "'")
    if not path or _ELSEWHERE.match(path):
        return text
    return quoted(str(inside(folder, path, root)))
