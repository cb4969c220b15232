"""Graphs with blocks that repeat, written down by hand: inputs by node, and a look of each."""

from __future__ import annotations

import random
from collections.abc import Sequence


class Net:
    """A graph under construction; `blocks` are the nodes of each block by its name."""

    def __init__(self) -> None:
        self.inputs: dict[int, list[tuple[int, int]]] = {}
        self.looks: dict[int, str] = {}
        self.names: dict[int, str] = {}

    def add(self, look: str, *sources: int, name: str = "") -> int:
        node = len(self.inputs)
        self.inputs[node] = [(source, 0) for source in sources]
        self.looks[node], self.names[node] = look, name
        return node

    def shuffled(self, seed: int) -> Net:
        """The same graph with other ids, in another order."""
        ids = list(self.inputs)
        random.Random(seed).shuffle(ids)
        other = dict(zip(self.inputs, ids, strict=True))
        net = Net()
        for node in sorted(self.inputs, key=lambda node: other[node]):
            net.inputs[other[node]] = [(other[source], out) for source, out in self.inputs[node]]
            net.looks[other[node]], net.names[other[node]] = self.looks[node], self.names[node]
        return net


def transformer(layers: int, *, cached: bool = False) -> Net:
    """Pre-norm blocks with residual connections, a mask that all share and, if wanted, a cache for each."""
    net = Net()
    tokens, mask = net.add("Parameter tokens"), net.add("Parameter mask")
    bias = net.add("Unsqueeze", net.add("Convert", mask))
    here = net.add("Add", net.add("Gather", tokens), net.add("Positions", tokens))
    for layer in range(layers):
        name = f"layers.{layer}"

        def add(look: str, *sources: int, at: str = name) -> int:
            return net.add(look, *sources, name=at)

        norm = add("Norm", here)
        query, key, value = (add(f"MatMul {part}", norm) for part in "qkv")
        if cached:
            key = add("Concat", add("Read", name and add("Parameter past")), key)
            add("Assign", key)
        scores = add("Add", add("MatMul", query, add("Transpose", key)), bias)
        mixed = add("MatMul out", add("MatMul", add("Softmax", scores), value))
        here = add("Add", here, mixed)
        wide = add("MatMul up", add("Norm", here))
        here = add("Add", here, add("MatMul down", add("Gelu", wide)))
    net.add("Result", net.add("MatMul head", net.add("Norm", here)))
    return net


def resnet(stages: Sequence[int]) -> Net:
    """Stages of bottlenecks, the first of each with a projection beside it."""
    net = Net()
    here = net.add("MaxPool", net.add("Conv7", net.add("Parameter")))
    for stage, count in enumerate(stages):
        for block in range(count):
            name = f"layer{stage + 1}.{block}" if block else ""
            inner, first = here, " first" if not block else ""
            for at in range(3):
                inner = net.add(f"Conv {stage} {at}{first}", inner, name=name)
                inner = net.add(f"Relu {stage} {at}", inner, name=name) if at < 2 else inner
            beside = net.add(f"Project {stage}", here) if not block else here
            here = net.add(f"Relu {stage} 3", net.add(f"Add {stage}", inner, beside, name=name), name=name)
    net.add("Result", net.add("MatMul", net.add("Pool", here)))
    return net


def experts(count: int, size: int) -> Net:
    """Branches of one form, side by side."""
    net = Net()
    token = net.add("Norm", net.add("Parameter"))
    ends = []
    for expert in range(count):
        here = token
        for at in range(size):
            here = net.add(f"MatMul {at}", here, name=f"experts.{expert}")
        ends.append(here)
    net.add("Result", net.add("Concat", *ends))
    return net
