"""Where a relative path of a playbook leads, and that it stays below the playbook's folder."""

from pathlib import Path

from noetl.tools.refusal import Refusal


def inside(folder: str | None, path: str) -> Path:
    """The file that `path` means; links are followed before it is compared with the folder."""
    if folder is None:
        raise Refusal(
            "input", f"path '{path}' has no folder to start from; run the playbook from a file"
        )
    root = Path(folder).resolve()
    try:
        target = (root / path).resolve()
    except (OSError, ValueError) as fault:  # a loop of links, a null byte
        raise Refusal("input", f"path '{path}' cannot be read: {fault}") from None
    if not target.is_relative_to(root):
        raise Refusal("input", f"path '{path}' leaves the playbook's folder, which is not allowed")
    return target
