r"""A vocabulary of few letters as a system of equations, for kernels in all languages.

The equations are the derivatives of the free energy with every entry of its matrices a symbol of
its own (:func:`.free_energy.explicit_free_energy`). A perfect matching finds their structure: V by
Newton's method, overlaps and q linear. With many letters the model solves the same equations in
vectorised form (:mod:`.solving`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ....errors import ParameterError
from ....symbolic.activations import Activation, activation
from ....symbolic.equivalence import (
    mean_definition,
    residual_variance_definition,
    slope_definition,
)
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.saddle_point import SaddlePointSystem, complement
from ...kernels.deriving import deriving
from ...kernels.kernel import Kernel
from ...kernels.lower import lower
from . import free_energy as f
from .arguments import names_coordinates, orthogonal_alignment
from .results import component
from .solving import solve_at

if TYPE_CHECKING:
    from .model import VocabularyFeatures
    from .solution import VocabularySolution

MOST_LETTERS = 3
"""The determinant of V_1 is written out. Three letters have 27 unknowns and take some 20 s to
derive, four have 44."""

_ALIGNMENT = sp.Symbol("alignment", real=True)
_ORTHOGONAL = sp.Symbol("orthogonal_alignment", nonnegative=True)
_INNER = sp.Symbol("s", real=True)


def letters_system(
    student: Activation,
    teacher: Activation,
    letters: int,
    bulk: str = "iid",
    *,
    aligned: int = 0,
) -> SaddlePointSystem:
    r"""Return the saddle-point equations of a spike of rank one and K letters.

    Parameters
    ----------
    student, teacher : Activation
        Activation of the features and function of :math:`\gamma\kappa + \rho s`.
    letters : int
        K.
    bulk : {"iid", "orthonormal"}
    aligned : {0, 1, -1}
        The alignment γ if that is 1 or -1: labels are functions of κ then. By default γ is a
        parameter inside (-1, 1).

    Raises
    ------
    ParameterError
        If there are too many letters to write the determinant of V_1 out.
    """
    if letters > MOST_LETTERS:
        raise ParameterError(
            f"kernels have at most {MOST_LETTERS} letters, whose determinants are written out, "
            f"got {letters}; solve() takes any number"
        )
    explicit = f.explicit_free_energy(letters, bulk)
    rows: list[sp.Symbol] = []
    if aligned:
        label = teacher(aligned * f.kappa)
        moments = (label, sp.S.Zero, label**2)
    else:
        label = teacher(_ALIGNMENT * f.kappa + _ORTHOGONAL * _INNER)
        moments = tuple(GaussianExpectation(x, _INNER) for x in (label, _INNER * label, label**2))
        rows += [_ALIGNMENT, _ORTHOGONAL]
    definitions = {_function(f"T{k}"): moment for k, moment in enumerate(moments)}
    for a in map(str, range(1, letters + 1)):
        strength, bias = (
            sp.Symbol(f"{name}_{a}", real=True) for name in ("spike_strength", "bias")
        )
        variance = sp.Symbol(f"bulk_variance_{a}", positive=True)
        rows += [strength, variance, bias]
        centre, spread = strength * f.kappa + bias, sp.sqrt(variance)
        mu0, slope, mu1, mu2 = (
            _function(f"{name}_{a}") for name in ("mu0", "slope", "mu1", "mu2_squared")
        )
        definitions |= {
            mu0: mean_definition(student, centre, spread),
            slope: slope_definition(student, centre, spread),
            mu1: spread * slope,
            mu2: residual_variance_definition(student, centre, spread, mu0, slope),
        }
    energy = explicit.free_energy
    return SaddlePointSystem.from_free_energy(
        replace(
            energy,
            parameters=(*energy.parameters, *rows),
            definitions=definitions,
        ),
        name="vocabulary_features",
        title=f"Spiked random features with {letters} letters, student {student.name}, teacher "
        f"{teacher.name}",
        node=f.kappa,
        outputs={"test_error": explicit.test_error, "training_error": explicit.training_error},
        identifiers={f.noise: "noise_variance"},
        start=_without_data(energy.order_parameters),
        derived={} if aligned else {_ORTHOGONAL: complement(_ALIGNMENT)},
        easier=f.ridge,
    )


def model_kernel(model: VocabularyFeatures) -> Kernel:
    """Return the kernel of a model, its parameters as defaults."""
    found = model.parameters
    if found.rank > 1 or names_coordinates(model.teacher):
        raise ParameterError(
            "kernels of letters have a spike of rank one and a teacher of one coordinate; solve() "
            "takes the others"
        )
    alignment = float(found.overlaps[0, 0])
    aligned = int(alignment) if orthogonal_alignment(found.overlaps) == 0 else 0
    with deriving(f"{len(found.classes)} letters", 2) as done:
        system = letters_system(
            activation(model.student, argument="student"),
            activation(model.teacher, argument="teacher"),
            len(found.classes),
            model.bulk,
            aligned=aligned,
        )
        done()
        kernel = lower(system, cache_folder=model.cache_folder)
    defaults = {
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "inverse_width": 0.0 if model.width is None else 1.0 / model.width,
    }
    if not aligned:
        defaults["alignment"] = alignment
    for k, letter in enumerate(found.classes, start=1):
        defaults |= {
            f"pi_{k}": letter.fraction,
            f"spike_strength_{k}": letter.strengths[0],
            f"bulk_variance_{k}": letter.bulk_variance,
            f"bias_{k}": letter.bias,
        }
    return replace(
        kernel, defaults=defaults, exact_defaults=partial(_exact_defaults, model.width, defaults)
    )


def _exact_defaults(width: int | None, defaults: Mapping[str, float], ctx: Any) -> dict[str, Any]:
    """Return parameters as numbers of mpmath, floats as the decimals that they print as."""
    found = {name: ctx.mpf(repr(value)) for name, value in defaults.items()}
    if width is not None:
        found["inverse_width"] = ctx.one / width
    return found


def refined(
    model: VocabularyFeatures, alpha: float, ridge: float, digits: int, *, progress: bool
) -> VocabularySolution:
    """Return the solution at one point with many digits; see ``VocabularyFeatures.solve``.

    Raises
    ------
    ParameterError
        If the letters follow from a step or a law, or have no kernel.
    """
    if model.direct_parameters is None:
        raise ParameterError(
            f"digits={digits}: letters after a step are known as floats; give their spike "
            "strengths and bulk variances by VocabularyFeatures.from_parameters, or leave digits "
            "out"
        )
    kernel = model_kernel(model)
    coarse = solve_at(model, alpha, ridge, model.width)
    places = _all_places(len(model.classes))
    start = first_values(kernel, coarse)
    found = kernel.solve(alpha=alpha, ridge=ridge, digits=digits, start=start, progress=progress)
    overlaps = {}
    for name, one in places.items():
        values = np.empty(coarse.order_parameters[name].shape, dtype=object)
        for unknown, index in one:
            # psi is zero, and no unknown, where the teacher has no direction outside the spike.
            value = found.values.get(unknown, 0 * found["test_error"])
            values[index] = value
            if name in ("V1", "q1"):
                values[index[::-1]] = value
        overlaps[name] = values
    exact = found["test_error"].context.mpf
    cost = exact(repr(ridge)) * exact(repr(model.beta)) / exact(repr(alpha))
    return replace(
        coarse,
        test_error=found["test_error"],
        training_error=found["training_error"],
        regularised_training_error=found["training_error"] + cost * sum(overlaps["q2"]),
        order_parameters=overlaps,
        residual=found.residual,
        nodes=found.nodes,
        errors={name: found.errors[name] for name in ("test_error", "training_error")},
        digits=digits,
    )


def first_values(kernel: Kernel, found: VocabularySolution) -> dict[str, float]:
    """Return the unknowns of Newton's method in a kernel at a solution."""
    places = _all_places(len(found.order_parameters["q2"]))
    return {
        unknown: float(found.order_parameters[name][index])
        for name, one in places.items()
        for unknown, index in one
        if unknown in kernel.code.unknowns
    }


def names_on_curves(model: VocabularyFeatures) -> dict[str, str]:
    """Return the results of the kernel by their names on curves, such as ``q1[0,1]``."""
    found = {name: name for name in ("test_error", "training_error")}
    for name, one in _all_places(len(model.classes)).items():
        for unknown, index in one:
            found[component(name, index)] = unknown
            if name in ("V1", "q1"):
                found[component(name, index[::-1])] = unknown
    return found


def _all_places(letters: int) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    names = ("V1", "V2", "q1", "q2", "m", "theta", "psi")
    return {name: _places(name, letters) for name in names}


def _places(name: str, letters: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the unknowns of an order parameter with their places in its array."""
    indices = range(letters)
    if name in ("V1", "q1"):
        return [(f"{name}_{a + 1}{b + 1}", (a, b)) for a in indices for b in indices if a <= b]
    # theta and psi have a row for the one spike and the one direction of the teacher.
    row = (0,) if name in ("theta", "psi") else ()
    return [(f"{name}_{a + 1}", (*row, a)) for a in indices]


def _function(name: str) -> sp.Expr:
    return sp.Function(name, real=True)(f.kappa)


def _without_data(variables: tuple[sp.Symbol, ...]) -> dict[sp.Symbol, sp.Expr]:
    """Return V as it is without data, V_2 = π/λ and V_1 its diagonal: where a large ridge leads."""
    found: dict[sp.Symbol, sp.Expr] = {}
    for x in variables:
        name, _, index = x.name.partition("_")
        if name in ("V1", "V2"):
            fraction = sp.Symbol(f"pi_{index[0]}", positive=True)
            found[x] = fraction / f.ridge if len(set(index)) == 1 else sp.S.Zero
    return found
