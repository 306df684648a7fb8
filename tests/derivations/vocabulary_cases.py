"""Two letters, for tests of vocabularies."""

from typing import Any

import giantstep as gs

make = gs.VocabularyFeatures.from_parameters
TWO: Any = {
    "spike_strengths": [1.2, -0.6], "bulk_variances": [1.1, 1.02], "fractions": [0.4, 0.6],
    "alignment": 0.9,
}  # fmt: skip
