"""Measurements of the runtime: one module per topic, whose `measure` returns rows.

`python -m benchmarks.runtime` runs each topic in a process of its own and writes `docs/runtime-measurements.md`;
`python -m benchmarks.runtime calls` prints the rows of one topic.
"""
