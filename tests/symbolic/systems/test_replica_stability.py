"""The condition of de Almeida and Thouless from the single sites of a free energy."""

import numpy as np
import pytest
import sympy as sp
from scipy.special import log_ndtr

from giantstep.derivations.kernels.lower import lower
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ParameterError, StructureError, UnsupportedExpressionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.integration_by_parts import reduced
from giantstep.symbolic.systems.equations import FreeEnergy
from giantstep.symbolic.systems.replica_stability import SingleSite, replicon
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, qhat, alpha, beta = sp.symbols("q qhat alpha beta", positive=True)
omega, h, kappa, R, z = sp.symbols("omega h kappa R z", real=True)

SPIN = SingleSite(sp.log(2 * sp.cosh(omega)), omega, beta**2 * q, q, mean=beta * h)
SK = FreeEnergy(
    beta**2 * (1 - q) ** 2 / 4 + SPIN.average(), (q,), (), (beta, h), single_sites=(SPIN,)
)
VOLUME = sp.log(sp.erfc((kappa - omega) / sp.sqrt(2 * (1 - q))) / 2)
CONSTRAINT = SingleSite(VOLUME, omega, q, qhat, count=alpha)
BINARY_WEIGHT = SingleSite(sp.log(2 * sp.cosh(omega)), omega, qhat, q)
BINARY = FreeEnergy(
    -qhat * (1 - q) / 2 + BINARY_WEIGHT.average() + CONSTRAINT.average(),
    (q,),
    (qhat,),
    (alpha, kappa),
    source="Gardner, Derrida, J. Phys. A 21, 271 (1988)",
    single_sites=(BINARY_WEIGHT, CONSTRAINT),
)
# R keeps the length of the weights: log of the integral of exp(-(R + qhat) x²/2 + omega x).
REAL_WEIGHT = SingleSite(
    omega**2 / (2 * (R + qhat)) - sp.log(R + qhat) / 2, omega, qhat, q
)  # fmt: skip
SPHERICAL = FreeEnergy(
    R / 2 + q * qhat / 2 + REAL_WEIGHT.average().doit() + CONSTRAINT.average(),
    (q,),
    (qhat, R),
    (alpha, kappa),
    source="Gardner, J. Phys. A 21, 257 (1988)",
    single_sites=(REAL_WEIGHT, CONSTRAINT),
)


def kernel(energy, **start):
    first = {x: sp.sympify(start.get(str(x), 0.5)) for x in energy.variables}
    system = SaddlePointSystem.from_free_energy(
        energy, name="model", outputs={"entropy": energy.expression}, start=first
    )
    return lower(system)


@pytest.fixture(scope="module")
def binary():
    return kernel(BINARY)


# -- expressions


def test_the_condition_of_the_sherrington_kirkpatrick_model():
    field = beta * h + beta * sp.sqrt(q) * z
    sech_4 = GaussianExpectation((1 - sp.tanh(field) ** 2) ** 2, z)
    assert SK.replicon() == 1 - beta**2 * sech_4
    assert r"\tanh^{2}" in sp.latex(SK.replicon())


def test_sites_determine_the_overlaps_of_the_free_energy():
    # E (d log Z)² from the field is what stationarity gives by parts.
    binary = SaddlePointSystem.from_free_energy(BINARY, name="model")
    values = {e.unknown: e.value for e in binary.equations}
    assert values == {s.overlap: s.overlap_value() for s in BINARY.single_sites}
    (spins,) = SaddlePointSystem.from_free_energy(SK, name="model").equations
    assert spins.value == SPIN.overlap_value()


@pytest.fixture(scope="module")
def teacher():
    # Labels of a teacher on the Nishimori line: the density of a constraint's field is 2H.
    right = sp.erfc(-omega / sp.sqrt(2 * (1 - q))) / 2
    spin = SingleSite(sp.log(2 * sp.cosh(omega)), omega, qhat, q, mean=qhat)
    label = SingleSite(sp.log(right), omega, q, qhat, count=alpha, weight=2 * right)
    energy = FreeEnergy(
        -qhat * (1 + q) / 2 + spin.average() + label.average(),
        (q,),
        (qhat,),
        (alpha,),
        single_sites=(spin, label),
    )
    return SaddlePointSystem.from_free_energy(energy, name="model"), spin, label


def test_a_teacher_weighs_the_disorder(teacher):
    system, spin, label = teacher
    overlap, conjugate = (e.value for e in system.equations)
    assert conjugate == label.overlap_value()
    assert overlap == reduced(spin.overlap_value())  # E tanh = E tanh²


# Bayes-optimal overlaps fluctuate in one way only (Nishimori): the replicon is one minus the slope
# of the map q -> qhat -> q, negative on the branch between two stable ones.
@pytest.mark.parametrize(("first", "sign"), [(0.5, 1), (0.95, -1)])
def test_on_the_nishimori_line_the_replicon_is_that_of_the_map(teacher, first, sign):
    system = teacher[0].with_start({q: sp.Rational(str(first))})
    found = lower(system).solve(alpha=1.4)

    def once_round(overlap):
        at = np.arange(-10, 10, 0.005)
        weights = 0.005 * np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
        x = np.sqrt(overlap / (1 - overlap)) * at
        ratio = np.exp(-(x**2) - log_ndtr(x))
        field = 1.4 / (np.pi * (1 - overlap)) * (weights @ ratio)
        return weights @ np.tanh(np.sqrt(field) * at + field)

    step = 1e-5
    slope = (once_round(found.q + step) - once_round(found.q - step)) / (2 * step)
    assert abs(found.replicon - (1 - slope)) < 1e-6
    assert sign * found.replicon > 0


def test_real_weights_respond_linearly():
    assert REAL_WEIGHT.susceptibility() == 1 / (R + qhat) ** 2


# -- values


def test_the_line_of_de_almeida_and_thouless():
    # The two equations q = E tanh², 1 = beta² E sech⁴ by mpmath at h = 0.3.
    found = kernel(SK).solve(beta=1.534086366152279540875, h=0.3)
    assert abs(found.q - 0.4350280049762233437) < 1e-12
    assert abs(found.replicon) < 1e-11


def test_the_shipped_model_has_the_same_stability():
    shipped, derived = lower(sherrington_kirkpatrick()), kernel(SK)
    for at in ({"beta": 0.8, "h": 0.5}, {"beta": 2.5, "h": 0.1}):
        difference = shipped.solve(**at).stability - derived.solve(**at).replicon
        assert abs(difference) < 1e-11


def test_steps_of_replica_symmetry_breaking_grow_where_it_is_unstable():
    # One step of breaking with q1 - q0 = eps goes to beta² E sech⁴ eps under the equations of
    # Parisi, for any position m of the step.
    b, field, m, eps = 1.8, 0.3, 0.4, 1e-5
    found = kernel(SK).solve(beta=b, h=field)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    u = b * (np.sqrt(found.q) * nodes[:, None] + np.sqrt(eps) * nodes[None, :] + field)
    tilt = np.cosh(u) ** m * weights
    tilt = tilt / tilt.sum(axis=1, keepdims=True)
    q1 = weights @ (tilt * np.tanh(u) ** 2).sum(axis=1)
    q0 = weights @ (tilt * np.tanh(u)).sum(axis=1) ** 2
    assert abs((q1 - q0) / eps - (1 - found.replicon)) < 1e-4
    assert found.replicon < 0


def test_the_binary_perceptron_is_stable_at_its_capacity(binary):
    # Krauth, Mezard, J. Physique 50, 3057 (1989): the entropy vanishes at alpha = 0.833, where the
    # solution is stable; that is lost at 1.015 only (by mpmath 1.014653610093998511838).
    below, above = binary.solve(alpha=0.833, kappa=0), binary.solve(alpha=0.8331, kappa=0)
    assert below.entropy > 0 > above.entropy
    assert below.replicon > 0.4
    at = binary.solve(alpha=1.014653610093998511838, kappa=0)
    assert abs(at.replicon) < 1e-9
    assert abs(at.q - 0.7204572308463022272827) < 1e-9


# q and the replicon from q/(1-q) = alpha E h² and 1 - alpha E (h(h-u))², h = phi/H, by mpmath.
@pytest.mark.parametrize(
    ("load", "margin", "overlap", "eigenvalue"),
    [
        (1.0, 0.0, 0.58531185179109835086, 0.60245867719984930869),
        (0.5, 0.5, 0.59182073222454695347, 0.72455674737420769309),
    ],
)
def test_the_spherical_perceptron(load, margin, overlap, eigenvalue):
    found = kernel(SPHERICAL, qhat=3, R=-1).solve(alpha=load, kappa=margin)
    assert abs(found.q - overlap) < 1e-11
    assert abs(found.replicon - eigenvalue) < 1e-11


def test_the_spherical_perceptron_is_stable_up_to_its_capacity():
    # At kappa = 0 the solution is stable for all alpha < 2, where q = 1 (Gardner 1988).
    system = SaddlePointSystem.from_free_energy(SPHERICAL, name="model")
    solved = {R: (1 - 2 * q) / (1 - q) ** 2, qhat: q / (1 - q) ** 2}
    load = sp.Symbol("alpha", positive=True)
    value = next(e.value for e in system.equations if e.unknown == qhat)
    needed = sp.simplify(load * q / (1 - q) ** 2 / value.xreplace({kappa: sp.S.Zero}))
    eigenvalue = system.outputs["replicon"].xreplace({**solved, kappa: sp.S.Zero})
    found = []
    for overlap in (sp.Rational(1, 2), sp.Rational(9, 10), sp.Rational(99, 100)):
        at = needed.subs(q, overlap).evalf(12)
        found.append((2 - at, eigenvalue.subs({q: overlap, alpha: at}).evalf(12)))
    assert all(gap > 0 and value > 0 for gap, value in found)
    assert found[0][1] > found[1][1] > found[2][1] and found[2][1] < 0.1


# -- refusals


def test_what_single_sites_have_to_be():
    log_2cosh = sp.log(2 * sp.cosh(omega))
    with pytest.raises(ParameterError, match="field must be a SymPy Symbol declared real"):
        SingleSite(sp.cosh(q), q, q, q)
    with pytest.raises(ParameterError, match="function of the field omega"):
        SingleSite(sp.log(q), omega, q, q)
    with pytest.raises(ParameterError, match=r"variance may hold .* not omega"):
        SingleSite(log_2cosh, omega, omega**2, q)
    with pytest.raises(ParameterError, match="overlap must be a SymPy Symbol"):
        SingleSite(log_2cosh, omega, q, 2 * q)
    with pytest.raises(StructureError, match="declares no single-site measure"):
        FreeEnergy(q**2, (q,), (), ()).replicon()
    with pytest.raises(StructureError, match="overlap qhat of a single site is no variable"):
        FreeEnergy(q**2, (q,), (), (alpha, kappa), single_sites=(CONSTRAINT,)).replicon()
    with pytest.raises(StructureError, match="holds beta, which is neither"):
        FreeEnergy(q**2, (q,), (), (h,), single_sites=(SPIN,)).replicon()
    with pytest.raises(ParameterError, match="tuple of SingleSite"):
        SaddlePointSystem.from_free_energy(
            FreeEnergy(q**2, (q,), (), (), single_sites=(1,)), name="model"
        )


def test_sites_that_form_no_circle_or_several():
    with pytest.raises(StructureError, match="two single sites determine the overlap q"):
        replicon((SPIN, SPIN))
    with pytest.raises(StructureError, match="no circle"):
        replicon((CONSTRAINT,))
    mixed = SingleSite(sp.log(2 * sp.cosh(omega)), omega, beta**2 * q + qhat, q)
    with pytest.raises(UnsupportedExpressionError, match="form 2 circles"):
        replicon((mixed, CONSTRAINT))


# The field has to couple without a factor: with log 2cosh(βω) the variance is q, but E (d log Z)²
# is β²q, and the product of gains would be β⁴ E sech⁴.
STEEP = SingleSite(sp.log(2 * sp.cosh(beta * omega)), omega, q, q, mean=h)
# The constraint of a perceptron determines the conjugate, not the overlap of the weights.
MISPLACED = SingleSite(VOLUME, omega, q, q, count=alpha)


FACTOR = FreeEnergy(
    beta**2 * (1 - q) ** 2 / 4 + STEEP.average(), (q,), (), (beta, h), single_sites=(STEEP,)
)
CONJUGATE = FreeEnergy(
    sp.log(1 - q) / 2 + q / (2 * (1 - q)) + MISPLACED.average(),
    (q,),
    (),
    (alpha, kappa),
    single_sites=(MISPLACED,),
)
REFUSED = "single site of q is none of this free energy"


@pytest.mark.parametrize(
    ("energy", "point"),
    [
        pytest.param(FACTOR, {"beta": 1.5, "h": 0.3}, id="factor"),
        pytest.param(
            CONJUGATE, {"alpha": 1.0, "kappa": 0.2}, id="conjugate", marks=pytest.mark.slow
        ),
    ],
)
def test_sites_that_determine_another_overlap_are_refused(energy, point):
    model = kernel(energy)
    with pytest.raises(StructureError, match=REFUSED):
        model.solve(**point)
    name, value = point.popitem()
    with pytest.raises(StructureError, match=REFUSED):
        model.curve(**point, **{name: np.array([value, value / 2])}).to_dataset()


@pytest.mark.slow
def test_branches_of_such_a_free_energy_are_refused():
    with pytest.raises(StructureError, match=REFUSED):
        kernel(FACTOR).branches("beta", (1, 1.5), h=0.3)
