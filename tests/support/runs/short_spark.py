"""Settings of a Spark session for a few small queries."""

SHORT_LIVED = (
    ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    # Each query runs once: planning and compiling take longer than its few rows.
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.ui.enabled", "false"),
)
