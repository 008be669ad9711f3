"""The benchmark suite: `make bench`, `make bench-quick`, or `python -m benchmarks --rows softmax`.

`programs/` says what is computed, `rows` at which sizes and with which aim, `peers` how each library is
asked, `worker` is the process of one peer, `runner` interleaves them, `machine` measures the limits,
`report` and `plots` write what was found. `compile_latency` (by stage) and `ulp_table` (accuracy of
elementary functions) are programs of their own.
"""
