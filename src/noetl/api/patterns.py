"""What texts of a request must look like, and how that is said to whoever sent another."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

END: Final = r"(?![\s\S])"
"""Of a text. `$` is also right before a line feed that ends it, which may be a name of its own."""
PRINTED: Final = rf"^[!-~]+{END}"
"""Characters that can be seen, none of them a blank."""
STORED: Final = r"^[^\x00]*$"
"""No text that a database could not keep."""
ARCHIVE: Final = rf"^(results|(s3|gs)://[^\x00]+){END}"
"""Where a server may put what it removes: no folder of its own."""
Reason = Annotated[str, msgspec.Meta(max_length=1000, pattern=STORED)]
"""Of an order or an answer: it is stored with what becomes of the execution."""
WORDS: Final[Mapping[str, str]] = {
    PRINTED: "printed ASCII characters without blanks",
    STORED: "text without the character NUL",
    ARCHIVE: "`results` (the result store), s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; a folder is "
    "for `noetl prune` on a home",
}


def pattern_words(said: str) -> str:
    """`Expected printed ASCII …` instead of the regular expression, which says little to people."""
    for pattern, words in WORDS.items():
        said = said.replace(f"`str` matching regex {pattern!r}", words)
    return said
