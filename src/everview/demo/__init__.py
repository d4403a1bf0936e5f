"""A payments company on local Spark: five sources of changes, five views, and a clock beside plain Spark SQL."""
