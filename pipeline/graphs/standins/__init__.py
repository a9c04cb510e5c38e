"""Stand-ins of published networks: their structure, node by node, with seeded weights; for tests and benchmarks."""

from .appearance import appearance
from .generator import generator, spade_part, warping_part
from .keypoints import MOTIONS, inputs, portrait
from .spec import FULL, PREVIEW, SMALL, Spec
from .weights import AbsentWeights, SeededWeights, WeightSource

__all__ = [
    "FULL",
    "MOTIONS",
    "PREVIEW",
    "SMALL",
    "AbsentWeights",
    "SeededWeights",
    "Spec",
    "WeightSource",
    "appearance",
    "generator",
    "inputs",
    "portrait",
    "spade_part",
    "warping_part",
]
