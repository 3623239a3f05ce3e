"""Credentials that public playbooks read in templates, or write into tasks → `auth` (KEY-1)."""

import re
from typing import Final, NamedTuple

from noetl.expression.syntax import is_template
from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.tree import Mapping, Sequence, TreeSlot, node_of

_VALUE: Final = re.compile(
    r"\s*(?P<scheme>[Bb]earer\s+|[Tt]oken\s+|)\{\{\s*(?P<read>.+?)\s*\}\}\s*"
)
_KEYCHAIN: Final = re.compile(r"keychain\.(?P<name>\w+)(?:\.(?P<field>\w+))?")
_TOKEN: Final = re.compile(r"token\(\s*(?P<who>[^()]+?)\s*\)")
_KINDS: Final = frozenset(
    {"postgres", "snowflake", "gcs", "s3", "basic", "bearer", "api_key", "oauth2", "generic"}
)
_PROVIDERS: Final = {
    **dict.fromkeys(("gcp", "google", "google_secret_manager", "gcp_secret_manager"), "gcp"),
    **dict.fromkeys(("aws", "aws_secrets_manager"), "aws"),
    **dict.fromkeys(("env", "environment"), "environment"),
    **{name: name for name in ("vault", "file", "store")},
}
_NAMED: Final = ("credential", "key", "name")


class HeaderSecret(NamedTuple):
    """A header that holds a secret: the credential, and how it is sent."""

    auth: str
    kind: str
    field: str
    entry: str
    """The name of an entry of the keychain, or nothing."""


def secrets_of_headers(draft: Draft, task: Mapping) -> None:
    """`Authorization: "Bearer {{ keychain.x.y }}"` and `token()` → `auth: x`."""
    headers = task.mapping("headers")
    if headers is None or task.text("kind") != "http" or "auth" in task:
        return
    found = [(slot, secret) for slot in headers.slots if (secret := _secret_in(slot)) is not None]
    if len(found) != 1:
        return  # several secrets are no credential; the templates are told
    slot, secret = found[0]
    if secret.entry and not _is_fit(draft, secret, slot):
        return
    place = task.place("headers")
    if len(headers.slots) == 1:
        task.pop("headers")
    else:
        headers.pop(slot.key or "")
    made = task.put("auth", secret.auth, at=place)
    made.line, made.path = slot.line, slot.path
    draft.tell(slot, f"{slot.key}: …", f"auth: {secret.auth}", now=made)


def _secret_in(slot: TreeSlot) -> HeaderSecret | None:
    whole = _VALUE.fullmatch(slot.text or "")
    if whole is None:
        return None
    bearer = (slot.key or "").lower() == "authorization" and bool(whole["scheme"].strip())
    kind = "bearer" if bearer else "api_key"
    kept, called = _KEYCHAIN.fullmatch(whole["read"]), _TOKEN.fullmatch(whole["read"])
    if kept is not None:
        return HeaderSecret(kept["name"], kind, kept["field"] or "", kept["name"])
    if called is not None and bearer:
        who = called["who"]
        named = who[1:-1] if who[:1] in "'\"" else f"{{{{ {who} }}}}"
        return HeaderSecret(named, kind, "", "")
    return None


def _is_fit(draft: Draft, secret: HeaderSecret, header: TreeSlot) -> bool:
    """Whether the entry of the keychain is, or can be made, what the header sends."""
    listed = draft.root.sequence("keychain")
    entries = listed.mappings() if listed is not None else []
    entry = next((one for one in entries if one.text("name") == secret.entry), None)
    if entry is None:
        draft.refuse(
            header,
            f"'{secret.entry}' must be a registered credential of kind {secret.kind} now",
            f"noetl credential add {secret.entry} --kind {secret.kind} --stdin",
            code="changed-meaning",
        )
        return True
    kind = (entry.text("kind") or "").removesuffix("_credential")
    fits = kind == secret.kind or (kind == "oauth2" and secret.kind == "bearer")
    return fits or _remade(draft, entry, secret, header)


def _remade(draft: Draft, entry: Mapping, secret: HeaderSecret, header: TreeSlot) -> bool:
    """`{ kind: secret_manager, provider, map: { field: path } }` → a credential of one secret."""
    paths = entry.mapping("map") or Mapping()
    path = paths.slot(secret.field)
    provider = _PROVIDERS.get(entry.text("provider") or "gcp")
    key = _literal(draft, path.text) if path is not None else None
    kind = entry.slot("kind")
    if path is None or provider is None or key is None or kind is None or len(paths.slots) != 1:
        return False
    kind.say(secret.kind)
    entry.put("provider", provider, at=entry.place("kind") + 1)
    for word in ("map", "scope"):
        if word in entry:
            entry.pop(word)
    entry.put("key", key).line = path.line
    if secret.kind == "api_key":
        entry.put("header", header.key or "").line = header.line
    draft.tell(kind, "kind of the entry", secret.kind)
    return True


def _literal(draft: Draft, text: str | None) -> str | None:
    """A text, or the default of the workload that it names."""
    if text is None or not is_template(text):
        return text
    name = re.fullmatch(r"\{\{\s*(?:workload\.)?(\w+)\s*\}\}", text.strip())
    given = (draft.root.mapping("workload") or Mapping()).text(name[1]) if name else None
    return None if given is None or is_template(given) else given


def auth_of_task(draft: Draft, task: Mapping) -> None:
    """`auth: { credential: name }` → `auth: name`; fields → an entry of the keychain."""
    slot = task.slot("auth")
    if slot is None or not isinstance(slot.node, Mapping) or not slot.node.slots:
        return
    inside = slot.node
    alias = inside.slots[0].node
    if len(inside.slots) == 1 and isinstance(alias, Mapping):
        inside = alias  # `auth: { pg: { type: postgres, credential: name } }`
    word = next((one for one in _NAMED if inside.text(one)), None)
    others = set(inside.keys()) - {*_NAMED, "type", "kind", "source", "provider"}
    if word is not None and not others:
        slot.node = node_of(inside.text(word), slot.line)
        draft.tell(slot, "auth: { … }", f"auth: {slot.text}")
    elif word is not None or not _entry_of(draft, slot, inside):
        draft.refuse(
            slot,
            "'auth' holds the fields of a credential itself",
            "register the credential, or list it in keychain, and write auth: name",
        )


def _entry_of(draft: Draft, slot: TreeSlot, fields: Mapping) -> bool:
    """The fields of a credential as an entry of the keychain."""
    kind = (fields.text("type") or fields.text("kind") or "").removesuffix("_credential")
    rest = [one for one in fields.slots if one.key not in ("type", "kind")]
    computed = any(not one.text and isinstance(one.node, Mapping) for one in rest)
    if kind not in _KINDS or computed or any(is_template(one.text) for one in rest):
        return False
    listed = draft.root.node("keychain")
    if listed is None:
        place = draft.root.place("metadata") + 1
        listed = draft.root.put("keychain", Sequence(line=slot.line), at=place).node
    if not isinstance(listed, Sequence):
        return False
    taken = {entry.text("name") for entry in listed.mappings()}
    name = f"{kind}_auth"
    while name in taken:
        name += "_"
    listed.append({"name": name, "kind": kind, **{one.key or "": one for one in rest}})
    slot.node = node_of(name, slot.line)
    draft.tell(slot, "auth: { … }", f"auth: {name}")
    return True
