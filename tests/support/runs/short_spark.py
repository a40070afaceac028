"""Settings of a Spark session that lives for some small questions."""

SHORT_LIVED = (
    ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    # A question runs once: to plan and compile it takes longer than its few rows.
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.ui.enabled", "false"),
)
