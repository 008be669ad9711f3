"""ONNX Runtime: graphs of a few nodes, weights as initializers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.workload import Arguments, Case

OPSET, IR_VERSION = 17, 9
Node = tuple[str, list[str], str, dict[str, Any]]
"""Operator, inputs, output, attributes."""


class OnnxRuntime(Peer):
    """ONNX Runtime."""

    name = "onnxruntime"

    def library(self) -> Any:
        """The module."""
        import onnxruntime

        return onnxruntime


def session(ort: Any, case: Case, nodes: list[Node], weights: dict[str, Any], result: str) -> Any:
    """A session for the graph of `nodes`, with sizes known only at run time."""
    from onnx import helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(case.dtype)
    inputs = [
        helper.make_tensor_value_info(name, kind, [None] * x.ndim)
        for name, x in zip(_input_names(nodes, weights), _arrays(case.inputs), strict=False)
    ]
    output = helper.make_tensor_value_info(result, kind, None)
    graph = helper.make_graph(
        [helper.make_node(op, args, [out], **options) for op, args, out, options in nodes],
        "program",
        inputs,
        [output],
        [numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = case.threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _arrays(arguments: Arguments) -> list[Any]:
    return [a for a in arguments if isinstance(a, np.ndarray)]


def _input_names(nodes: list[Node], weights: dict[str, Any]) -> list[str]:
    """What nodes read and nothing makes, in order of appearance."""
    made = set(weights) | {out for _, _, out, _ in nodes}
    names: list[str] = []
    for _, inputs, _, _ in nodes:
        names += [name for name in inputs if name not in made and name not in names]
    return names
