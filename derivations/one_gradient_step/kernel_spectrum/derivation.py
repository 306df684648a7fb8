"""The functions of a kernel's spectrum as text: derived once, kept in the cache.

A run that finds them there imports no SymPy.
"""

from __future__ import annotations

from ...derived import derived


@derived("one_gradient_step/kernel_spectrum", dict)
def spectrum_sources() -> dict[str, str]:
    """Derive the functions and return their sources.

    Those of numbers, ``"precise"``, want an mpmath context: ``zeta``, ``population_place``,
    ``slope_sign``, ``slope_rate`` of (T, α, β, κ), ``noise_edges`` of (α, β), ``spike_square``,
    ``critical_step_size``, ``expected_spike``, ``label_alignment``, ``quartic`` and
    ``upper_half_plane``. Those of ``"arrays"``: ``quartic``, ``resolvent_quadratic``,
    ``equation_terms``, ``equation_slope`` and ``counting_function``.
    """
    from ....symbolic.printing.compiled import Formula, function_source
    from ..spike_sizes import spike_square
    from ..symbols import IDENTIFIERS
    from . import equations as eq

    axis, step, plane = eq.REAL_PARAMETERS, eq.STEP_PARAMETERS, eq.PLANE_PARAMETERS
    inside = (eq.effective_ridge, *plane)
    quartic = Formula(plane, eq.quartic(), "coefficients, from the highest power")
    precise = {
        "zeta": Formula(axis, eq.zeta(), "zeta(T) in units of mu_1^2"),
        "population_place": Formula(axis, eq.population_place(), "where T is in the population"),
        "slope_sign": Formula(axis, eq.slope_sign(), "what has the sign of zeta'(T)"),
        "slope_rate": Formula(axis, eq.slope_sign().diff(eq.place), "its derivative"),
        "noise_edges": Formula(
            (eq.alpha, eq.beta), eq.noise_edges(), "the edges of noise features"
        ),
        "spike_square": Formula(step, spike_square(), "theta1^2"),
        "critical_step_size": Formula(
            (eq.place, *step), eq.critical_step_size(), "eta at theta1^2 = T"
        ),
        "expected_spike": Formula((eq.second, eq.beta), eq.expected_spike(), "c_2^2 beta/2"),
        "label_alignment": Formula((*axis, *step), eq.label_alignment(), "the squared overlap"),
        "quartic": quartic,
        "upper_half_plane": Formula(inside, eq.upper_half_plane(), "three transforms"),
    }
    on_curve = (eq.resolvent, *inside)
    arrays = {
        "quartic": quartic,
        "resolvent_quadratic": Formula(
            inside, eq.resolvent_quadratic(), "of G², G, 1; a direction"
        ),
        "equation_terms": Formula(on_curve, eq.equation_terms(), "what adds up to zero"),
        "equation_slope": Formula(on_curve, eq.equation_slope(), "their derivative"),
        "counting_function": Formula(on_curve, eq.counting_function(), "what counts eigenvalues"),
    }
    return {
        "precise": function_source(precise, "mpmath", names=IDENTIFIERS),
        "arrays": function_source(arrays, names=IDENTIFIERS),
    }
