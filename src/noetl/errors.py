"""
Every exception of the house, drawn once and split by whose fault it is.

NoetlError
├── PlaybookRejected      the author's: the text is no valid playbook; carries all findings
├── InputsRejected        the caller's: what is brought does not fit, and `strict` was asked for
├── UnreadableFile        the caller's: the file cannot be read (missing, a directory, …)
├── UnwritableFile        the caller's: the output file cannot be written
├── TemplateError         the author's: something is wrong with a template
│   ├── TemplateFault       it does not parse, or uses what the sandbox forbids; found at load
│   └── TemplateFailed      it could not be evaluated (undefined value, wrong types, a limit)
├── NeedsBody             nobody's: a template touched a reference whose body is not loaded yet
├── TakesLong             nobody's: templates take too many turns for an event loop
├── BodyLost              the world's: a stored body is missing or does not match its checksum
├── CredentialMissing     the caller's: no credential of that name in keychain or store
├── CredentialUnreadable  the caller's: it is there, but not with this key, or it was changed
├── CredentialUnavailable the world's: who keeps it cannot be asked now; later it may work
├── SettingRefused        the caller's: a setting has a value that it cannot have
├── ExecutionFailed       the author's: it was run and did not complete; carries what it came to
├── ExecutionNotFound     the caller's: no such execution in this home
├── RestartRefused        the caller's: an execution cannot be restarted so; the text says why
├── VersionConflict       nobody's: another writer was first; load again and decide again
│   └── PlaceLost           the place under a limit that a start rests on is gone; ask again
├── LogUnavailable        the world's: the log cannot be written (disk full, read-only home)
│   └── ResultsUnavailable  the result store is away, or refuses (disk full, no bucket)
├── OutcomeUnknown        the world's: it may or may not have been recorded; ask with the key
├── LogDamaged            the world's: a row of the log is there and cannot be read
├── ReceiverUnavailable   the world's: who should take an export is away, or refuses it
├── ServerAway            the world's: no server answered; the question may be asked again
├── PlaybookNotFound      the caller's: no such playbook, or version of it, in the catalog
├── TriggerNotFound       the caller's: no trigger of this path
├── KeyReused             the caller's: an idempotency key came before with another request
├── ServerRefused         the caller's: the server answered, and said no; its reason is the text
└── HomeInUse             the caller's: another process owns what was asked for
"""

from typing import Any


class NoetlError(Exception):
    """Anything that NoETL itself raises; `str()` is a sentence for a person."""

    execution_id: str | None = None
    """The execution that a refused request is recorded as (SRV-2)."""


class UnreadableFile(NoetlError):
    """The file cannot be read; the message says why and what to do."""


class UnwritableFile(NoetlError):
    """The output file cannot be written; the message says why and what to do."""


class PlaybookRejected(NoetlError):
    """The text is not a valid playbook. `findings` holds all that is wrong with it."""

    def __init__(self, findings: tuple[Any, ...]) -> None:
        errors = sum(1 for finding in findings if finding.severity == "error")
        super().__init__(f"the playbook has {errors} error{'s' if errors != 1 else ''}")
        self.findings = findings


class InputsRejected(NoetlError):
    """What a request brings does not fit its playbook (VAL-7). `findings` says what."""

    def __init__(self, findings: tuple[Any, ...]) -> None:
        said = "; ".join(f"{one.message} ({one.hint})" for one in findings)
        super().__init__(f"the payload does not fit the playbook: {said}")
        self.findings = findings


class TemplateError(NoetlError):
    """Something is wrong with a template; `text` is the template as it was written."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.text = text


class TemplateFault(TemplateError):
    """The template does not parse. `line` counts from 0 within the template's own text."""

    def __init__(self, message: str, *, text: str = "", line: int = 0) -> None:
        super().__init__(message, text=text)
        self.line = line


class TemplateFailed(TemplateError):
    """
    The template could not be evaluated. `undefined` names the missing value, if that was it, and
    `meant` the one that its author may have meant.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        undefined: str | None = None,
        meant: str | None = None,
    ) -> None:
        super().__init__(message, text=text)
        self.undefined = undefined
        self.meant = meant


class NeedsBody(NoetlError):
    """A template touched a reference whose body must be loaded first; then ask again."""

    def __init__(self, reference: Any) -> None:
        super().__init__(f"the body of {reference.key} is not loaded")
        self.reference = reference


class TakesLong(NoetlError):
    """Templates take more turns than an event loop has time for; ask again in a thread."""

    def __init__(self) -> None:
        super().__init__("it takes too long for an event loop")


class BodyLost(NoetlError):
    """A body outside the log is gone or damaged; the message holds the reference."""


class CredentialMissing(NoetlError):
    """No credential of that name; the message says how to add one."""


class CredentialUnreadable(NoetlError):
    """What is encrypted cannot be opened; the message says which key it needs."""


class CredentialUnavailable(NoetlError):
    """Whoever keeps the secret cannot be reached or has trouble; trying again may help."""


class SettingRefused(NoetlError):
    """A setting has a value that it cannot have; the message names it and what is expected."""


class ExecutionFailed(NoetlError):
    """An execution did not complete; `result` is what it came to (`noetl.RunResult`)."""

    def __init__(self, message: str, *, result: Any) -> None:
        super().__init__(message)
        self.result = result
        self.execution_id = result.execution_id


class ExecutionNotFound(NoetlError):
    """No execution with that id; the message says where was looked."""


class RestartRefused(NoetlError):
    """An execution cannot be restarted as it was asked; the message says why (RST)."""


class VersionConflict(NoetlError):
    """The execution does not stand at the expected `seq`: another writer was first."""


class PlaceLost(VersionConflict):
    """An execution was to begin under a place that it does not hold any more (LIMIT-3)."""


class LogUnavailable(NoetlError):
    """The log cannot be read or written; the message says why and what to do."""


class ResultsUnavailable(LogUnavailable):
    """A result cannot be stored or read; asking again helps unless the store `refused`."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class OutcomeUnknown(NoetlError):
    """The log went away before it answered: asking again with the same key settles it."""


class LogDamaged(NoetlError):
    """What was recorded cannot be read any more; the message names it and what to do."""


class ReceiverUnavailable(NoetlError):
    """An export was not taken; the message shows the answer and what to do."""


class HomeInUse(NoetlError):
    """Another live process owns the execution or the home; the message names it."""


class ServerAway(NoetlError):
    """No server answered, or the one that was asked is gone: the question may be asked again."""


class PlaybookNotFound(NoetlError):
    """The catalog has no playbook of this path, or not this version of it."""


class LimitReached(NoetlError):
    """A start above the limit of its playbook, which says to refuse it (LIMIT-2)."""


class TriggerNotFound(NoetlError):
    """No trigger of this path; the message says how to list them."""


class KeyReused(NoetlError):
    """An idempotency key stands for another request already."""


TOO_DEEP = "too_deep"
"""The code of a refusal: executions call each other without an end (TOOL-1)."""


class ServerRefused(NoetlError):
    """A server answered and refused; the message is its reason, the code its kind."""

    def __init__(self, message: str, *, code: str = "refused", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
