"""Cases of the normalisations, recorded from the runtime."""

from __future__ import annotations

import numpy as np

from tests.ops.recording import Case

X = np.sin(np.arange(48, dtype=np.float32)).reshape(2, 4, 2, 3)
CHANNELS = [
    np.array(each, np.float32) for each in ([1, 2, 0.5, -1], [0, 1, -1, 2], [0.1, 0, -0.2, 0.3], [1, 0.5, 2, 4])
]
AXES = {"channel": [1], "spatial": [2, 3], "all": [1, 2, 3]}
BOOLEANS = ("true", "false")


def whole(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


CASES = [
    *(
        Case(f"mvn2_{across}_{divide}", "MVN", 2, [X], attributes)
        for across in BOOLEANS
        for divide in BOOLEANS
        for attributes in [{"across_channels": across, "normalize_variance": divide, "eps": "0.01"}]
    ),
    *(
        Case(f"mvn6_{name}_{mode}_{divide}", "MVN", 6, [X, whole(axes)], attributes, constant={1})
        for name, axes in AXES.items()
        for mode in ("inside_sqrt", "outside_sqrt")
        for divide in BOOLEANS
        for attributes in [{"eps": "0.1", "eps_mode": mode, "normalize_variance": divide}]
    ),
    Case("batch_norm1", "BatchNormInference", 1, [*CHANNELS[:2], X, *CHANNELS[2:]], {"epsilon": "0.001"}),
    Case("batch_norm5", "BatchNormInference", 5, [X, *CHANNELS], {"epsilon": "0.001"}),
    *(
        Case(f"group_{groups}", "GroupNormalization", 12, [X, *CHANNELS[:2]], {"num_groups": groups, "epsilon": "0.01"})
        for groups in ("1", "2", "4")
    ),
    *(
        Case(f"l2_{name}_{mode}", "NormalizeL2", 1, [X, whole(axes)], {"eps": "0.3", "eps_mode": mode}, constant={1})
        for name, axes in (AXES | {"none": []}).items()
        for mode in ("add", "max")
    ),
    Case("grn", "GRN", 1, [X], {"bias": "0.5"}),
    Case("lrn", "LRN", 1, [X, whole([1])], {"alpha": "0.5", "beta": "0.75", "bias": "1", "size": "3"}, constant={1}),
]
