"""The order in which ONNX Runtime runs a graph's nodes."""

from __future__ import annotations

import onnx_ir as ir


def run_order(graph: ir.Graph) -> list[ir.Node]:
    """Nodes in ONNX Runtime's default order: depth first from the last nodes back to the inputs.

    Of a node's sources the one that stands last in the file is finished first (GraphViewer's reverse depth-first
    search). A value is therefore made shortly before it is needed, wherever the exporter put its node.
    """
    place = {node: index for index, node in enumerate(graph)}
    sources = {node: sorted(_sources(node) & place.keys(), key=place.__getitem__) for node in place}
    used = {source for found in sources.values() for source in found}
    stack = [(node, False) for node in place if node not in used]
    seen: set[ir.Node] = set()
    order: list[ir.Node] = []
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in sources[node] if source not in seen)
    return order


def _sources(node: ir.Node) -> set[ir.Node]:
    found = {value.producer() for value in node.inputs if value is not None}
    for attribute in node.attributes.values():
        one = attribute.type == ir.AttributeType.GRAPH
        if one or attribute.type == ir.AttributeType.GRAPHS:
            for body in [attribute.as_graph()] if one else attribute.as_graphs():
                for inner in ir.traversal.RecursiveGraphIterator(body):
                    found |= {value.producer() for value in inner.inputs if value is not None}
    return {node for node in found if node is not None}
