"""Routes of what waits for signals and people (WAIT)."""

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.context import USUAL, ApiContext, Asking, Cursor, Limit, sender_of, tell_about
from noetl.api.executions import known
from noetl.messages.requests import SendSignal
from noetl.server.views.standing import Listed


class WaitingRoutes:
    """Answers for whoever ends a wait."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._questions = context.questions

    async def signal(
        self, request: Asking, execution_id: FromPath[str], data: JSONBody[t.SignalRequest]
    ) -> Response[Listed]:
        """Send a signal; the wait that wants it goes on, or it is kept for the next one."""
        tell_about(data.name)
        given = SendSignal(
            signal=data.name, data=data.data, sender=sender_of(request)[0], signal_id=data.id
        )
        row = await self._plane.signal(known(execution_id), given)
        return await answered_aside((await self._questions.listed([row]))[0])

    async def answer(
        self, request: Asking, execution_id: FromPath[str], data: JSONBody[t.AnswerRequest]
    ) -> Response[Listed]:
        """Answer an approval; a second answer is refused and names the first."""
        sender, known_as = sender_of(request)
        tell_about(" ".join(filter(None, (data.step, "approve" if data.approved else "reject"))))
        row = await self._plane.answer(
            known(execution_id),
            data.step,
            approved=data.approved,
            sender=sender,
            reason=data.reason,
            fields=data.fields,
            known_as=known_as,
        )
        return await answered_aside((await self._questions.listed([row]))[0])

    async def waiting(self, cursor: Cursor = None, limit: Limit = USUAL) -> Response[t.WaitingPage]:
        """What waits for people; a page looks at `limit` executions, and may be short."""
        return await answered_aside(await self._questions.waiting(cursor=cursor, limit=limit))
