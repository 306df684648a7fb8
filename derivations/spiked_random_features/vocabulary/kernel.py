r"""A vocabulary of few letters as a system of equations, for kernels in all languages.

The equations are the derivatives of the free energy with every entry of its matrices a symbol of
its own (:func:`.physics.letters_free_energy`). A perfect matching finds their structure: V by
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
from ....symbolic.exact.enclosures import Enclosure
from ....symbolic.expressions.activations import Activation, activation
from ....symbolic.printing.compiled import compiled
from ....symbolic.systems.saddle_point import SaddlePointSystem, complement
from ...certificates.certificate import refuse_certificate
from ...kernels.certified import enclosed_parameter
from ...kernels.code import deriving
from ...kernels.kernel import Kernel
from ...kernels.lower import lower
from ...kernels.precise import exact_number
from ...sensitivities import Directions
from ...teachers import names_coordinates
from .. import physics
from ..arguments import STRETCH
from ..derive import SymbolicModel
from ..differentiation import ALIGNED, NO_SPIKE, OF_STEP, fixed_step_parameters, step_rates
from ..physics import IDENTIFIERS, letters_free_energy
from ..solution import ORDER_PARAMETERS, Solution
from .arguments import (
    VocabularyParameters,
    letter_of,
    orthogonal_alignment,
    spikes_of,
)
from .solution import component
from .solving import solve_at

if TYPE_CHECKING:
    from .model import VocabularyFeatures

MOST_LETTERS = 3
"""The determinant of V_1 is written out. Three letters have 27 unknowns and take some 20 s to
derive, four have 44."""


def letters_system(
    student: Activation,
    teacher: Activation,
    letters: int,
    bulk: str = "iid",
    *,
    aligned: int = 0,
    correlated_norms: bool = False,
    stretched: bool = False,
) -> SymbolicModel:
    r"""Return the free energy and the equations of a spike of rank one and K letters.

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
    correlated_norms, stretched : bool
        As for :func:`.physics.letters_free_energy`.

    Raises
    ------
    ParameterError
        If there are too many letters to write the determinant of V_1 out.
    """
    _require_few(letters)
    energy = letters_free_energy(
        student, teacher, letters, bulk, aligned=bool(aligned), correlated_norms=correlated_norms,
        stretched=stretched,
    )  # fmt: skip
    found = energy.free_energy
    assert energy.letters is not None
    system = SaddlePointSystem.from_free_energy(
        found,
        name="vocabulary_features",
        title=f"Spiked random features with {letters} letters, student {student.name}, teacher "
        f"{teacher.name}",
        node=physics.kappa,
        outputs={"test_error": energy.test_error, "training_error": energy.training_error},
        identifiers={p: IDENTIFIERS[p] for p in found.parameters if p in IDENTIFIERS},
        start={
            x: value
            for x, value in energy.letters.without_data.items()
            if x in found.order_parameters
        },
        derived={physics.gamma: sp.Integer(aligned)}
        if aligned
        else {physics.rho: complement(physics.gamma)},
        easier=physics.ridge,
    )
    return SymbolicModel(student, teacher, energy, system)


def letters_model(model: VocabularyFeatures) -> SymbolicModel:
    """Return the free energy and the equations of a model of few letters."""
    require_written_out(model)
    found = model.parameters
    alignment = float(found.overlaps[0, 0])
    return letters_system(
        activation(model.student, argument="student"),
        activation(model.teacher, argument="teacher"),
        len(found.classes),
        model.bulk,
        aligned=int(alignment) if orthogonal_alignment(found.overlaps) == 0 else 0,
        correlated_norms=bool(found.norm_overlaps),
        stretched=bool(found.stretches),
    )


def _require_few(letters: int) -> None:
    if letters > MOST_LETTERS:
        raise ParameterError(
            "kernels, digits, certificates, sensitivities and losses other than the square loss "
            f"have at most {MOST_LETTERS} letters, whose determinants are written out, got "
            f"{letters}; solve() of VocabularyFeatures takes any number, in floats"
        )


def require_written_out(model: VocabularyFeatures) -> None:
    """Refuse letters whose equations are not written out entry by entry.

    Raises
    ------
    ParameterError
        If there are too many of them, spikes of higher rank, a teacher of several coordinates or a
        continuous law.
    """
    _require_few(len(model.classes))
    if model.parameters.rank > 1 or names_coordinates(model.teacher):
        raise ParameterError(
            "kernels of letters, and losses other than the square loss, have a spike of rank one "
            "and a teacher of one coordinate; solve() of VocabularyFeatures takes the others"
        )


def require_direct_letters(model: VocabularyFeatures, what: str = "digits") -> None:
    """Refuse letters of which no more digits are known than floats have.

    Raises
    ------
    ParameterError
    CertificationError
        If a certificate is what is wanted.
    """
    if model.direct_parameters is None:
        refuse_certificate(
            what == "certify",
            "letters after a step",
            "they are known as floats; give their spike strengths and bulk variances by "
            "VocabularyFeatures.from_parameters",
        )
        raise ParameterError(
            f"{what}: letters after a step are known as floats; give their spike strengths and "
            f"bulk variances by VocabularyFeatures.from_parameters, or leave {what} out"
        )


def letter_values(parameters: VocabularyParameters) -> dict[str, float]:
    """Return π, r, c and b of every letter by their names in a kernel."""
    found: dict[str, float] = {}
    for k, letter in enumerate(parameters.classes, start=1):
        found |= {
            f"pi_{k}": letter.fraction,
            f"spike_strength_{k}": letter.strengths[0],
            f"bulk_variance_{k}": letter.bulk_variance,
            f"bias_{k}": letter.bias,
        }
    return found


def beyond_published(parameters: VocabularyParameters) -> dict[str, float]:
    """Return norm overlaps and stretches of every letter by their names in a kernel, if any."""
    found = {f"norm_overlap_{k}": a for k, a in enumerate(parameters.norm_overlaps, start=1)}
    # Labels that are a function of κ see a stretch along the spike only.
    names = STRETCH[:1] if orthogonal_alignment(parameters.overlaps) == 0 else STRETCH
    for k, row in enumerate(parameters.stretches, start=1):
        found |= {f"{name}_{k}": t for name, t in zip(names, row, strict=False)}
    return found


def letter_unknowns(overlaps: Mapping[str, Any], letters: int) -> dict[str, float]:
    """Return the entries of arrays of order parameters by their names in a kernel."""
    return {
        unknown: float(overlaps[name][index])
        for name in ORDER_PARAMETERS
        for unknown, index in letter_places(name, letters)
    }


def model_kernel(model: VocabularyFeatures) -> Kernel:
    """Return the kernel of a model, its parameters as defaults."""
    require_written_out(model)
    found = model.parameters
    alignment = float(found.overlaps[0, 0])
    aligned = orthogonal_alignment(found.overlaps) == 0
    with deriving(f"{len(found.classes)} letters", 2) as done:
        system = letters_model(model).system
        done()
        kernel = lower(system, cache_folder=model.cache_folder)
    defaults = {
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "inverse_width": 0.0 if model.width is None else 1.0 / model.width,
    }
    if not aligned:
        defaults["alignment"] = alignment
    defaults |= letter_values(found) | beyond_published(found)
    return replace(
        kernel, defaults=defaults, exact_defaults=partial(_exact_defaults, model.width, defaults),
        proven_defaults=partial(_proven_defaults, model.width, defaults),
    )  # fmt: skip


def _exact(width: int | None, defaults: Mapping[str, float]) -> dict[str, sp.Expr]:
    """Return parameters as exact numbers, floats as the decimals that they print as."""
    found = {name: exact_number(value) for name, value in defaults.items()}
    return found if width is None else {**found, "inverse_width": sp.Rational(1, width)}


def _exact_defaults(width: int | None, defaults: Mapping[str, float], ctx: Any) -> dict[str, Any]:
    exact = _exact(width, defaults)
    return {name: ctx.mpf(int(x.p)) / int(x.q) for name, x in exact.items()}


def _proven_defaults(
    width: int | None, defaults: Mapping[str, float], digits: int
) -> dict[str, Enclosure | float]:
    return {name: enclosed_parameter(x, digits) for name, x in _exact(width, defaults).items()}


def kernel_solution(
    model: VocabularyFeatures,
    alpha: float,
    ridge: float,
    digits: int | None,
    *,
    certify: bool = False,
    progress: bool,
) -> Solution:
    """Return the solution of a model's kernel at one point; see ``VocabularyFeatures.solve``.

    It starts from that of the published leading order in floats.

    Raises
    ------
    ParameterError
        If digits are asked for of letters that follow from a step or a law, or there is no kernel.
    CertificationError
        If a certificate is wanted of such letters, or the proof does not succeed.
    """
    if certify or digits is not None:
        require_direct_letters(model, "digits" if digits is not None else "certify")
    kernel = model._kernel
    coarse = solve_at(model, alpha, ridge, model.width)
    found = kernel.solve(
        alpha=alpha, ridge=ridge, digits=digits, start=first_values(kernel, coarse),
        certify=certify, progress=progress,
    )  # fmt: skip
    many = digits is not None
    zero = 0 * found["test_error"]
    overlaps = {}
    for name, places in _all_places(len(model.classes)).items():
        values = np.empty(coarse.order_parameters[name].shape, dtype=object)
        for unknown, index in places:
            # psi is zero, and no unknown, where the teacher has no direction outside the spike.
            value = found.values.get(unknown, zero)
            values[index] = value
            if name in ("V1", "q1"):
                values[index[::-1]] = value
        overlaps[name] = values if many else values.astype(float)
    number = zero.context.mpf if many else float
    arguments = (physics.alpha, physics.beta, physics.ridge, physics.q2)
    penalty = compiled(physics.penalty(physics.q2), arguments, zero.context if many else "numpy")
    point = [number(repr(x)) for x in (alpha, model.beta, ridge)]
    errors = {name: found.errors[name] for name in ("test_error", "training_error")}
    limit = None
    if model.width is not None:
        limit = coarse.strict_limit
        if not many:
            strict = model.at(width=None)
            limit = kernel_solution(strict, alpha, ridge, None, progress=progress)
    return replace(
        coarse,
        test_error=found["test_error"],
        training_error=found["training_error"],
        regularised_training_error=found["training_error"]
        + number(penalty(*point, sum(overlaps["q2"]))),
        order_parameters=overlaps,
        strict_limit=limit,
        quadrature_error=coarse.quadrature_error
        if digits and not certify
        else float(errors["test_error"]),
        residual=found.residual,
        nodes=found.nodes,
        errors=errors if many or certify else {},
        digits=digits,
        certificate=found.certificate,
    )


def first_values(kernel: Kernel, found: Solution) -> dict[str, float]:
    """Return the unknowns of Newton's method in a kernel at a solution."""
    known = letter_unknowns(found.order_parameters, len(found.order_parameters["q2"]))
    return {unknown: x for unknown, x in known.items() if unknown in kernel.code.unknowns}


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
    return {name: letter_places(name, letters) for name in ORDER_PARAMETERS}


def letter_places(name: str, letters: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the unknowns of an order parameter with their places in its array."""
    indices = range(letters)
    if name in ("V1", "q1"):
        return [(f"{name}_{a + 1}{b + 1}", (a, b)) for a in indices for b in indices if a <= b]
    # theta and psi have a row for the one spike and the one direction of the teacher.
    row = (0,) if name in ("theta", "psi") else ()
    return [(f"{name}_{a + 1}", (*row, a)) for a in indices]


# ------------------------------------------------------------------ directions


def letter_directions(model: VocabularyFeatures, *, exact: bool) -> Directions:
    """Return the rates of kernel parameters for each parameter, and those that have none.

    Raises
    ------
    ParameterError
        If exact rates are wanted of letters that follow from a step.
    """
    moving: dict[str, dict[str, Any]] = {
        name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")
    }
    excluded = {
        "fractions": "they sum to one, and none moves alone; kernel().sensitivities has them as "
        "pi_1, pi_2, …, each with all others fixed"
    }
    if model.direct_parameters is None:
        if exact:
            require_direct_letters(model)
        excluded |= fixed_step_parameters(model)
        for name in OF_STEP if model.step_size > 0 else ():
            if name not in excluded:
                moving[name] = {**moving.get(name, {}), **_step_rates(model, name)}
    for k, letter in enumerate(model.classes, start=1):
        names = (f"spike_strength_{k}", f"bulk_variance_{k}", f"bias_{k}")
        moving |= {name: {name: 1} for name in names}
        if not letter.strengths[0]:
            del moving[names[0]]
            excluded[names[0]] = NO_SPIKE
    moving |= {name: {name: 1} for name in beyond_published(model.parameters)}
    if orthogonal_alignment(model.parameters.overlaps) == 0:
        excluded["alignment"] = ALIGNED
    else:
        moving["alignment"] = {"alignment": 1}
    if model.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)


def _step_rates(model: VocabularyFeatures, parameter: str) -> dict[str, float]:
    """Return the derivatives of the spikes of all letters, and of the alignment."""
    spikes = spikes_of(model)
    mean = sum(a * share for a, share in zip(model.letters, model.fractions, strict=True))
    given = model.parameters
    moving = ["spike_strength", "bulk_variance"]
    moving += ["norm_overlap"] * bool(given.norm_overlaps)
    moving += STRETCH if given.stretches else ()
    found: dict[str, float] = {}
    for k, rows in enumerate(model.classes, start=1):
        letter = model.letters[letter_of(rows, spikes)]
        rates = step_rates(
            model, parameter, letter=letter, mean_letter=mean,
            stretched=bool(model.parameters.stretches),
        )  # fmt: skip
        found |= {f"{name}_{k}": rates[name] for name in moving}
        found["alignment"] = rates["alignment"]
    return found
