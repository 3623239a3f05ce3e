"""Does a text of the document look like a secret, or speak an older dialect? (VAL-3)"""

import re
from collections.abc import Iterator

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from noetl.expression.syntax import is_template
from noetl.late import late
from noetl.playbook.model import Playbook
from noetl.playbook.reader import At, Reader, below
from noetl.playbook.retired import OLDER_NAMES

_SECRET_KEY = late(
    r"(^|[_-])(password|passwd|pwd|secret|token|api_?key|private_?key|access_?key)$", re.IGNORECASE
)
_SECRET_VALUE = late(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\bBearer [A-Za-z0-9._~+/-]{16,}"
    r"|\b[a-z][a-z0-9+]{0,20}://[^\s:/@{]+:[^\s@/{]+@"
)
# Sieves over the whole text in lower case: most hold nothing that is worth a walk.
_ENDINGS = (
    *("password", "passwd", "pwd", "secret", "token", "api_key", "apikey", "private_key"),
    *("privatekey", "access_key", "accesskey"),
)
_BEGINNINGS = (
    *("private key", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xox", "aiza"),
    "bearer ",
)
_URL_SECRET = late(r"://[^\s:/@{]+:[^\s@/{]+@")
_SECRET_HINT = (
    "keep it out of the text: keychain: [ { name: …, kind: …, provider: environment, key: … } ], "
    "and name it by auth"
)
_SHORTEST = 4


def check_secrets(reader: Reader, _playbook: Playbook) -> None:
    """VAL-3: secrets do not stand in the document. The message never repeats the value."""
    text = reader.tree.text
    lower = text.lower()
    valued = any(word in lower for word in _BEGINNINGS)
    valued = valued or ("://" in text and _URL_SECRET.search(text) is not None)
    if not valued and not any(word in lower for word in _ENDINGS):
        return
    for key, at in scalars(reader.tree.root):
        value = reader.value(at)
        if not isinstance(value, str):
            continue
        named = key.lower().strip().endswith(_ENDINGS) and _SECRET_KEY.search(key)
        secret = named and len(value) >= _SHORTEST and not is_template(value)
        if secret or (valued and _SECRET_VALUE.search(value)):
            reader.report(
                "secret-literal", at, f"'{key}' holds what looks like a secret", _SECRET_HINT
            )


def check_older_names(reader: Reader, playbook: Playbook) -> None:
    """Names in templates that only older dialects had; the template would find nothing there."""
    text = reader.tree.text
    older = [one for one in OLDER_NAMES if one.needle in text and one.name not in playbook.workload]
    if not older:
        return
    for _, at in scalars(reader.tree.root):
        value = at.node.value
        if is_template(value):
            for one in older:
                if one.pattern.search(value):
                    reader.report("retired-name", at, one.message, one.hint)


def scalars(root: Node) -> Iterator[tuple[str, At]]:
    """Every scalar of the document, with the key that it belongs to."""
    return _texts(At(root, root, ""), "")


def _texts(at: At, key: str) -> Iterator[tuple[str, At]]:
    """Every scalar with the key that it belongs to."""
    node = at.node
    if type(node) is ScalarNode:
        yield key, at
    elif type(node) is SequenceNode:
        for n, child in enumerate(node.value):
            yield from _texts(At(child, child, f"{at.path}[{n}]"), key)
    elif type(node) is MappingNode:
        for key_node, child in node.value:
            name = str(key_node.value)
            yield from _texts(At(key_node, child, below(at.path, name)), name)
