"""What the files of every target have to pass."""

POINT = {
    "alpha": 1.5, "beta": 0.8, "ridge": 0.1, "noise_variance": 0.1, "spike_strength": 1.3,
    "bulk_variance": 0.7, "alignment": 0.6, "orthogonal_alignment": 0.8,
}  # fmt: skip
"""Of spiked random features."""


def assert_within_estimates(found, vector):
    """Compare (value, error) of each output with a vector of many digits."""
    relative = vector.deviations({name: value for name, (value, _) in found.items()})
    assert relative
    for name, deviation in relative.items():
        value, error = found[name]
        exact = abs(float(vector.expected[name]))
        # Parameters are rounded to floats: 1e-15 of an output that is not ill-conditioned.
        assert deviation * (exact or 1) <= error + 4e-15 * exact, name
        # Rules are refined for the first output; others carry a margin for what cancels in them.
        limit = 1e-9 if name == next(iter(found)) else 1e-7
        assert error <= limit * max(abs(value), 1e-3), name
