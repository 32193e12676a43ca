"""The day, upload by upload, while the pipeline runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from examples.demo import verify
from examples.demo.day import Upload
from examples.demo.feed import Feed
from examples.demo.pipeline import REFUSAL_QUERY, SUMMARY_QUERY, Pipeline
from examples.demo.watch import EPOCH, Watch, wait_until

if TYPE_CHECKING:
    from examples.demo.show import Screen

IN_THE_AIR = 2  # uploads that may wait to be read before the next one is sent


def stream(pipeline: Pipeline, feed: Feed, day: Sequence[Upload], screen: Screen) -> None:
    """Returns when both queries have read everything and all windows that can be closed are written."""
    watch = Watch()
    pipeline.spark.streams.addListener(watch)
    queries = [pipeline.start_summary(), pipeline.start_refusals()]
    ends = [0]  # of what was sent, after each upload
    with screen.streaming(sum(len(upload.measurements) for upload in day)) as live:

        def wait_for(records: int, watermark: datetime = EPOCH, *, refused_of: int = 0) -> None:
            def is_done() -> bool:
                summary, refusals = watch.seen(SUMMARY_QUERY), watch.seen(REFUSAL_QUERY)
                live.update(ends[-1], summary, refusals)
                is_summarised = summary.records >= records and summary.watermark >= watermark
                return is_summarised and refusals.records >= refused_of

            wait_until(is_done, *queries)

        for number, upload in enumerate(day):
            if upload.is_next_morning:
                wait_for(ends[-1], verify.watermark(day[:number]))  # a night is long enough for the pipeline
            wait_for(ends[max(0, number - IN_THE_AIR)])
            feed.send_upload(upload)
            ends.append(ends[-1] + len(upload.measurements))
        wait_for(ends[-1], verify.watermark(day), refused_of=ends[-1])
    for query in queries:
        query.stop()
    pipeline.spark.streams.removeListener(watch)
