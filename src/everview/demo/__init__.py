"""A payments company on local Spark: four sources of changes, three views, and a clock beside plain Spark SQL."""
