"""
The bucket of results, as servers make it and hold it: what is in it is added to, never replaced.

Workers of all pools write into it. One that could make it could have it take in what others say;
one that could roll up could empty it (decision 0095).
"""

from typing import Any

from msgspec import Struct

from noetl.adapters.nats.library import api, stream_errors


class ResultBucket(Struct, frozen=True):
    """What a bucket and its stream are called, and what is in them."""

    name: str

    @property
    def stream(self) -> str:
        return f"OBJ_{self.name}"

    def chunks(self, end: str) -> str:
        return f"$O.{self.name}.C.{end}"

    def meta(self, end: str) -> str:
        return f"$O.{self.name}.M.{end}"

    @property
    def subjects(self) -> list[str]:
        return [self.chunks(">"), self.meta(">")]


async def make_bucket(line: Any, bucket: ResultBucket) -> None:
    """Where it is missing; one that is there stays as it is."""
    try:
        await line.stream_info(bucket.stream)
    except stream_errors.NotFoundError:
        config = api.StreamConfig(
            name=bucket.stream,
            subjects=bucket.subjects,
            storage=api.StorageType.FILE,
            discard=api.DiscardPolicy.NEW,
            allow_direct=True,
        )
        await line.add_stream(config)


async def hold_bucket(line: Any, bucket: ResultBucket) -> bool:
    """
    Make it, or make it again what it is to be: earlier releases let whoever writes roll up, and
    somebody else may have come first. Size, replicas and storage are the operator's to choose.
    Whether anything had to be changed.
    """
    await make_bucket(line, bucket)
    kept = (await line.stream_info(bucket.stream)).config
    strange = kept.mirror or kept.sources or kept.republish or kept.subject_transform
    right = sorted(kept.subjects or ()) == sorted(bucket.subjects)
    if right and not (strange or kept.allow_rollup_hdrs or kept.no_ack):
        return False
    await line.update_stream(
        kept.evolve(
            subjects=bucket.subjects,
            allow_rollup_hdrs=False,
            no_ack=False,
            sources=None,
            republish=None,
            subject_transform=None,
        )
    )
    return True
