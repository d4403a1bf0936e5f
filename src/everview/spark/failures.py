"""Failures of Spark, told in a sentence of ours.

Spark tells of a failed job in a hundred lines of Java: the cause is in the middle of them. `of_spark` finds it and
makes it an `EverviewError` with a hint; what Spark said is its `__cause__`. `in_our_words` does that for whatever a
call raises. This is the only place that reads Spark's texts.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from everview import errors
from everview.errors import CorruptState, EverviewError, MissingRuntime, PipelineError, SourceError, StoreError

_OURS = re.compile(r"everview\.errors\.(\w+): (.*?)(?=\n\s*\n|\n\s+at |\n SQLSTATE|\n[A-Z=]|\Z)", re.DOTALL)
_CAUSE = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\w*: (.+)$", re.MULTILINE)
_STREAM = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_AWAITING = ("Exception thrown in awaitResult", "Job aborted", "Task failed while writing rows", "Writing job")

AGAIN: Final = "nothing was applied: remove the cause and refresh or start again"


class Known(NamedTuple):
    """A kind of failure: the pattern of Spark's text, and what to say instead, with ``{0}`` for the match."""

    pattern: re.Pattern[str]
    kind: type[EverviewError]
    message: str
    hint: str


def _known(pattern: str, kind: type[EverviewError], message: str, hint: str) -> Known:
    return Known(re.compile(pattern), kind, message, hint)


KNOWN: Final = (
    _known(
        r"ModuleNotFoundError: No module named '(everview|pyspark_everview)",
        MissingRuntime,
        "the executors have no Everview: run pip install 'everview[spark]' on every machine of the cluster, in the "
        "Python that PYSPARK_PYTHON names",
        "nothing was applied; the driver and the executors need the same version",
    ),
    _known(
        r"ModuleNotFoundError: No module named '([^'\n]+)'",
        MissingRuntime,
        "the Python of the executors has no module {0}",
        "install it on every machine of the cluster, in the Python that PYSPARK_PYTHON names, or let that name the "
        "driver's; nothing was applied",
    ),
    _known(
        r"FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.? |FileNotFoundException: File (\S+) does "
        r"not exist",
        SourceError,
        "file {0} is gone: it was there when it was planned to be read",
        "put it back and refresh again; nothing was applied. If it is gone for good: a frame of batch files must be "
        "read anew, and with spark.sql.files.ignoreMissingFiles = true Spark goes on without it",
    ),
    _known(
        r"PATH_NOT_FOUND\] Path does not exist: (\S+?)\.? ",
        SourceError,
        "there is nothing at {0}",
        "put it there, or check the path; nothing was applied",
    ),
    _known(
        r"Total size of serialized results of .*? is bigger than (?:\S*maxResultSize \((.*?)\))",
        PipelineError,
        "what comes back to the driver is more than spark.driver.maxResultSize ({0})",
        'nothing was applied; set spark.driver.maxResultSize higher when the session is made, or place="cluster", '
        "with which rows stay with the tasks",
    ),
    _known(
        r"(No space left on device|Disk quota exceeded)",
        StoreError,
        "a disk that Spark's tasks write to is full ({0})",
        "make room in the state directory and in spark.local.dir, and refresh again; nothing was applied",
    ),
    _known(
        r"java\.lang\.OutOfMemoryError: ([^\n]*)",
        PipelineError,
        "Spark ran out of memory ({0})",
        "give the session more, session(memory=…) or spark.executor.memory, or take in less at once; nothing was "
        "applied",
    ),
    _known(
        r"(Python worker exited unexpectedly|ExecutorLostFailure|Python worker failed to connect back)",
        PipelineError,
        "Spark lost a worker more often than it tries again ({0})",
        "often its memory ended: see the log of the executor; nothing was applied",
    ),
    _known(
        r"(Delete files are currently not supported in changelog scans)",
        SourceError,
        "an Iceberg table marks rows as deleted beside its files (merge-on-read), and its log does not tell which",
        "let it rewrite files: write.delete.mode, write.update.mode and write.merge.mode = 'copy-on-write'; or read "
        'both snapshots and compare: options={"changes.by": "comparison"}; nothing was applied',
    ),
    _known(
        r"Cannot process (?:delete|overwrite) snapshot: (\d+)",
        SourceError,
        "an Iceberg table that is followed as a stream of new rows has deleted or changed rows in snapshot {0}",
        'follow it by changes="cdc", with a key if it has one; or with the option streaming-skip-delete-snapshots or '
        "streaming-skip-overwrite-snapshots go on without",
    ),
    _known(
        r"Failed to read log file (\S+?)\.? ",
        CorruptState,
        "Spark cannot read {0}, a file of its own checkpoint",
        "restore the state directory with its spark directory from one moment, or start anew in an empty one",
    ),
    _known(
        r"(SPARK_JOB_CANCELLED|job group was cancelled|cancelled because SparkContext was shut down)",
        PipelineError,
        "Spark's job was cancelled",
        "nothing was applied; refresh or start again",
    ),
    _known(
        r"(stopped SparkContext|SparkContext was shut down|SparkContext has been shutdown"
        r"|Answer from Java side is empty|Error while (?:sending|receiving)"
        r"|occurred while trying to connect to the Java server|Connection refused)",
        PipelineError,
        "Spark has ended",
        "make a session and the pipeline anew; the state is whole, and it goes on from there",
    ),
)


def of_spark(error: BaseException) -> EverviewError:
    """A failure of Spark as an `EverviewError`: the one that caused the failure, or else what we know of its kind.

    >>> print(of_spark(ValueError("[STREAM_FAILED] …\\neverview.errors.BadRows: 1 bad row\\n  hint: h\\n\\n\\tat y")))
    1 bad row
      hint: h
    >>> print(of_spark(ValueError("…\\nCaused by: java.io.IOException: No space left on device\\n\\tat")))
    a disk that Spark's tasks write to is full (No space left on device)
      hint: make room in the state directory and in spark.local.dir, and refresh again; nothing was applied
    """
    text = str(error).strip()
    ours = _OURS.search(text)
    if ours is not None:
        return _ours(ours)
    for known in KNOWN:
        match = known.pattern.search(text)
        if match is not None:
            given = next((group for group in match.groups() if group), "")
            return known.kind(known.message.format(given), hint=known.hint)
    return PipelineError(_cause(text), hint=f"that is what Spark says of it; {AGAIN}")


def _ours(match: re.Match[str]) -> EverviewError:
    kind: Any = getattr(errors, match[1], PipelineError)
    message, _, hint = match[2].partition("\n  hint: ")
    return kind(message.strip(), hint=hint.strip() or None)


def _cause(text: str) -> str:
    """The innermost cause with a message, else the first line."""
    first = _STREAM.sub("", text.partition("\n")[0])
    if first.startswith("["):  # an error class of Spark's, which is written for people
        return first
    causes = [cause.strip() for cause in _CAUSE.findall(text) if not cause.startswith(_AWAITING)]
    return causes[-1] if causes else first


def told(error: BaseException) -> EverviewError | None:
    """An exception of ours, of Spark or of its connection as an `EverviewError`; None for any other."""
    if isinstance(error, EverviewError):
        return error
    if isinstance(error, PySparkException | Py4JError | ConnectionError):
        return of_spark(error)
    return None


@contextmanager
def in_our_words() -> Generator[None]:
    """Raise what Spark raises inside as an `EverviewError`, with Spark's exception as its cause."""
    try:
        yield
    except EverviewError:
        raise
    except Exception as error:
        ours = told(error)
        if ours is None:
            raise
        raise ours from error
