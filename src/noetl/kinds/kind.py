"""What a tool kind declares about itself before anything runs."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec


class Inputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The inputs of one kind, as they are after rendering. Each kind subclasses it.

    A field without a default is required. In a document any value may be a template instead.
    """

    streams: ClassVar[tuple[str, ...]] = ()
    """Inputs that the tool reads piece by piece: of a stored value it gets the reference."""


class Kind(msgspec.Struct, frozen=True):
    """One tool kind: its typed inputs and what the runtime must know to call it."""

    name: str
    inputs: type[Inputs]
    summary: str
    block: str | None = None
    """The key of the kind's own part in an outcome (OUT-2), such as `pg` for postgres."""
    tells: tuple[str, ...] | None = None
    """The fields of that part; None: nobody can say."""
    knobs: tuple[str, ...] | None = None
    """Keys of `spec` that the tool reads, `timeout` and `policy` aside (VAL-6); None: any."""
    needs: Mapping[str, tuple[str, ...]] = {}
    """Operation → inputs that it needs; `""`: a task without them gets a warning."""
    effect: bool = True
    """Whether a call may touch the world; calls without effect may run ahead of the commit."""
    extra: str | None = None
    """The optional dependency group that the kind needs, such as `snowflake`."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of inputs of which a task gives exactly one, such as `command` or `query`."""
    fault: str | None = None
    """Why the kind is known and cannot be used: its plugin is broken, or it is not built yet."""
    credential: str = ""
    """Options of `noetl credential add` for what its `auth` names; secrets are asked for."""
    left_out: Mapping[str, str] = {}
    """Templates that stand for inputs which a task leaves out."""
    programs: Mapping[str, str] = {}
    """Inputs that hold code → how a value gets into it, other than by its text (VAL-3)."""
    statements: tuple[str, ...] = ()
    """Inputs that hold SQL, whose values belong into bind parameters (VAL-3)."""
