"""The time zone of a pipeline: its Spark session's, which the state keeps and which may not change.

Text without a zone, days and hours mean in a view what they mean in Spark SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everview.errors import ForeignState, PipelineError
from everview.scalars.functions.zones import zone_of
from everview.scalars.session_zone import UTC, check_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING: Final = "spark.sql.session.timeZone"


def zone_of_session(spark: SparkSession) -> str:
    """The time zone in which a session reads text and counts days; raises if it is not known here."""
    zone = str(spark.conf.get(SETTING))
    return UTC if zone_of(check_zone(zone)) == 0 else zone


def require_zone(spark: SparkSession, zone: str) -> None:
    """Refuse a session that has another time zone by now than its pipeline was made in."""
    now = zone_of_session(spark)
    if now != zone:
        raise PipelineError(
            f"the time zone of the session is {now} by now, and the pipeline was made in {zone}",
            hint=f'set it back: spark.conf.set("{SETTING}", "{zone}"); or make another pipeline',
        )


def require_same_zone(zone: str, stored: str | None) -> None:
    """Refuse a state whose views were made in another time zone."""
    if stored is not None and stored != zone:
        raise ForeignState(
            f"the views of this state were made in the time zone {stored}, and that of the session is {zone}",
            hint=f'go on in that zone: spark.conf.set("{SETTING}", "{stored}") before the pipeline is made; '
            "or begin anew in another directory",
        )
