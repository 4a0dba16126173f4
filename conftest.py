"""For every run of pytest, of tests and of chapters: the option --rounding-noise=SEED."""

pytest_plugins = ["rounding_noise"]
