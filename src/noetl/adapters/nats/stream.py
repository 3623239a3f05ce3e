"""The work queue: made when it is missing, also when it was there before (T5)."""

from noetl.adapters.nats.library import JetStreamContext, api, stream_errors
from noetl.adapters.nats.line import NatsLine
from noetl.adapters.nats.names import Names, token_of

ANSWER = 2.0
"""Seconds for one answer of JetStream."""
MAX_AGE = 30.0
"""Seconds that a ring is kept: workers poll meanwhile, so that an old one says nothing new."""
ACK_WAIT = 5.0
"""Seconds after which a ring whose worker did not call wakes another."""
DELIVERIES = 3
IDLE = 3600.0
"""Seconds after which a pool that nobody pulls for is forgotten."""
_IN_USE = 10058
"""JetStream's code for a stream of this name that is set up otherwise."""


def jetstream(line: NatsLine) -> JetStreamContext:
    """JetStream over the connection as it is now."""
    return line.client.jetstream(timeout=ANSWER)


async def make_stream(line: NatsLine, names: Names) -> None:
    """
    In memory, because the log is the truth and a wake-up need not outlive its server.

    Of each server and pool it holds one ring at the most: a later one replaces what nobody took.
    """
    config = api.StreamConfig(
        name=names.stream,
        subjects=[names.work],
        retention=api.RetentionPolicy.WORK_QUEUE,
        storage=api.StorageType.MEMORY,
        discard=api.DiscardPolicy.OLD,
        max_msgs_per_subject=1,
        max_age=MAX_AGE,
        duplicate_window=MAX_AGE,
    )
    stream = jetstream(line)
    try:
        await stream.add_stream(config)
    except stream_errors.BadRequestError as taken:
        if taken.err_code != _IN_USE:
            raise
        await stream.update_stream(config)


async def pull(line: NatsLine, names: Names, pool: str) -> JetStreamContext.PullSubscription:
    """The consumer of a pool, shared by its workers; made where it is missing. The stream is the
    servers' to make: workers may have no right to."""
    consumer = token_of(pool)
    config = api.ConsumerConfig(
        name=consumer,  # with it what is asked for stands in the subject, where NATS can refuse it
        durable_name=consumer,
        filter_subject=names.rings(pool),
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT,
        max_deliver=DELIVERIES,
        max_ack_pending=-1,
        inactive_threshold=IDLE,
    )
    stream = jetstream(line)
    await stream.add_consumer(names.stream, config)
    return await stream.pull_subscribe_bind(consumer=consumer, stream=names.stream)
