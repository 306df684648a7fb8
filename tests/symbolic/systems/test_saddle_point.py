import pytest
import sympy as sp

from giantstep.derivations.spiked_random_features import physics as model
from giantstep.derivations.spiked_random_features.physics import spiked_free_energy
from giantstep.derivations.spiked_random_features.published import right_hand_sides
from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.documentation import documentation
from giantstep.symbolic.systems.equations import (
    Equation,
    FreeEnergy,
    saddle_point_equations,
    stationarity,
)
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem, complement

alpha, beta, ridge = model.alpha, model.beta, model.ridge
m, mu0, mu1, T1 = model.m, model.mu0, model.mu1, model.T1
# That stationarity gives the published equations is evidence of the claim "cui-3.3".
UNKNOWNS = set(right_hand_sides())


# -- variants


def variant(student, teacher="sin", **flags):
    found = spiked_free_energy(activation(student), activation(teacher), **flags)
    return found, {e.unknown: e for e in saddle_point_equations(found.free_energy)}


def test_without_spike_an_odd_student_has_no_mean_direction():
    found, equations = variant("tanh", unspiked=True)
    assert set(equations) == UNKNOWNS - {m}
    everything = [found.test_error, found.training_error, *(e.residual for e in equations.values())]
    assert not any(e.has(m, mu0) for e in everything)
    assert mu0 not in found.free_energy.definitions


def test_without_spike_other_students_keep_it():
    _, equations = variant("relu", unspiked=True)
    assert set(equations) == UNKNOWNS
    found, equations = variant("cos", unspiked=True)  # even: mu_1 vanishes instead
    assert not any(e.residual.has(mu1) for e in equations.values())
    assert equations[model.V1_hat].value == 0 and m in equations
    assert mu1 not in found.free_energy.definitions


def test_aligned_labels_leave_no_orthogonal_overlap():
    _, equations = variant("tanh", aligned=True)
    assert equations[model.psi_hat].value == 0
    assert not any(e.residual.has(T1) for e in equations.values())


# -- toy free energies

rho, noise = sp.symbols("rho Delta", positive=True)
toy_V, toy_q, toy_V_hat, toy_q_hat = sp.symbols("V q Vhat qhat", positive=True)
toy_m, toy_m_hat = sp.symbols("m mhat", real=True)
RIDGE_REGRESSION = FreeEnergy(
    expression=(
        alpha * (rho - 2 * toy_m + toy_q + noise) / (1 + toy_V) / 2
        + (toy_V * toy_q_hat - toy_q * toy_V_hat) / 2
        + toy_m * toy_m_hat
        - (toy_q_hat + rho * toy_m_hat**2) / (ridge + toy_V_hat) / 2
    ),
    order_parameters=(toy_V, toy_m, toy_q),
    conjugates=(toy_V_hat, toy_m_hat, toy_q_hat),
    parameters=(alpha, ridge, rho, noise),
    source="isotropic ridge regression",
)


def test_ridge_regression():
    found = {e.unknown: e.value for e in saddle_point_equations(RIDGE_REGRESSION)}
    denominator = ridge + toy_V_hat
    published = {
        toy_V: 1 / denominator,
        toy_m: rho * toy_m_hat / denominator,
        toy_q: (toy_q_hat + rho * toy_m_hat**2) / denominator**2,
        toy_V_hat: alpha / (1 + toy_V),
        toy_m_hat: alpha / (1 + toy_V),
        toy_q_hat: alpha * (rho + noise - 2 * toy_m + toy_q) / (1 + toy_V) ** 2,
    }
    assert list(found) == list(RIDGE_REGRESSION.variables)
    for unknown, value in published.items():
        assert sp.simplify(found[unknown] - value) == 0, unknown


def test_conditions_prefer_conjugates():
    x, y = sp.symbols("x y", real=True)
    x_hat, y_hat = sp.symbols("a_hat z_hat", real=True)  # names that sort before and after
    toy = FreeEnergy(
        expression=x**2 / 2 + y**2 / 2 + x * x_hat + y * y_hat + x_hat**2 + y_hat**2,
        order_parameters=(x, y),
        conjugates=(x_hat, y_hat),
        parameters=(),
    )
    found = {e.unknown: e.value for e in saddle_point_equations(toy)}
    assert found == {x_hat: -x, y_hat: -y, x: -2 * x_hat, y: -2 * y_hat}


def test_every_condition_that_can_be_explicit_is():
    # x is explicit in two conditions, y in one: the matching has to give the shared one away.
    x, y, w = sp.symbols("x y w", positive=True)
    toy = FreeEnergy(
        expression=x * y + y * w**3 + sp.exp(w) * w + x**2 / 2,
        order_parameters=(x, y, w),
        conjugates=(),
        parameters=(),
    )
    found = {e.unknown: e.value for e in saddle_point_equations(toy)}
    assert found == {x: -(w**3), y: -x, w: None}


def test_variables_that_are_ignored_are_left_out():
    unused = sp.Symbol("unused")
    toy = FreeEnergy(toy_m**2 / 2 - toy_m * rho, (toy_m, unused), (), (rho,))
    assert set(stationarity(toy)) == {toy_m}
    assert saddle_point_equations(toy) == (Equation(toy_m, rho, toy_m - rho),)


def test_parameters_are_by_default_all_other_symbols():
    # The bound variable of an average is none.
    a, b = sp.symbols("a b", positive=True)
    z = sp.Symbol("z", real=True)
    average = GaussianExpectation(sp.log(sp.cosh(sp.sqrt(toy_q) * z + b)), z)
    energy = FreeEnergy(average - a * toy_q**2, (toy_q,))
    assert energy.parameters == (a, b) and energy.conjugates == ()
    stated = FreeEnergy(average - a * toy_q**2, (toy_q,), (), (b, a))
    assert stated.parameters == (b, a)
    assert saddle_point_equations(energy) == saddle_point_equations(stated)
    with pytest.raises(ParameterError, match="expression must be a SymPy expression, got 'q'"):
        FreeEnergy("q", (toy_q,))
    with pytest.raises(ParameterError, match="order_parameters must be a tuple of symbols, got q"):
        FreeEnergy(toy_q**2, toy_q)


def test_variables_in_which_the_free_energy_is_linear_are_refused():
    toy = FreeEnergy(toy_m + toy_q**2, (toy_m, toy_q), (), ())
    with pytest.raises(ValueError, match="not stationary in m anywhere"):
        saddle_point_equations(toy)


def test_equations_without_conjugates_print_as_maps():
    # What multiplies q − f(q) is divided out where it cannot vanish, exactly.
    z, h, m = sp.symbols("z h m", real=True)
    q, beta, snr = sp.symbols("q beta snr", positive=True)

    def value(expression, x, *parameters):
        energy = FreeEnergy(expression, (x,), (), parameters)
        (equation,) = saddle_point_equations(energy)
        # A multiple of the derivative of the free energy, whatever it is printed as.
        at = {q: 0.37, beta: 1.3, snr: 2.1, h: 0.2, m: 0.6}
        condition = stationarity(energy)[x].subs(at).evalf(20)
        common = (condition / equation.residual.subs(at).evalf(20)).evalf(12)
        shifted = stationarity(energy)[x].subs({**at, h: 0.5}).evalf(20)
        assert (shifted / equation.residual.subs({**at, h: 0.5}).evalf(20)).evalf(12) == common
        return equation.value

    spin = beta * sp.sqrt(q) * z + beta * h
    glass = -beta * (1 - q) ** 2 / 4 - GaussianExpectation(sp.log(2 * sp.cosh(spin)), z) / beta
    assert value(glass, q, beta, h) == GaussianExpectation(sp.tanh(spin) ** 2, z)
    magnet = m**2 / 2 - sp.log(2 * sp.cosh(beta * (m + h))) / beta
    assert value(magnet, m, beta, h) == sp.tanh(beta * (m + h))
    local = snr * q**2 + sp.sqrt(snr) * q * z
    tensor = snr * q**3 / 3 + snr * q**2 / 2 - GaussianExpectation(sp.log(sp.cosh(local)), z)
    assert value(tensor, q, snr) == GaussianExpectation(sp.tanh(local), z)
    # m may vanish, so that m(m − f) = 0 is not m = f; and a polynomial stays as it is.
    product = m**3 / 3 - sp.sin(m) + m * sp.cos(m) - h * m**2 / 2
    assert value(product, m, h) is None
    assert value(m**4 / 4 + beta * m**2 / 2 - h * m, m, beta, h) is None


def test_latex():
    explicit = Equation(toy_m, rho * alpha, toy_m - rho * alpha)
    implicit = Equation(toy_m, None, toy_m**3 + toy_m - 1)
    assert explicit.latex() == r"m = \alpha \rho"
    assert implicit.latex() == "0 = m^{3} + m - 1"
    system = SaddlePointSystem.from_fixed_point({toy_m: toy_m * rho}, name="toy", parameters=(rho,))
    assert system.latex() == r"\begin{aligned} m &= m \rho \end{aligned}"
    assert explicit._repr_latex_().startswith("$") and RIDGE_REGRESSION._repr_latex_().endswith("$")


@pytest.mark.parametrize(
    ("derived", "domain"), [(complement, "(-1, 1)"), (lambda x: sp.sqrt(1 + x**2), "real")]
)
def test_a_parameter_whose_complement_is_taken_lies_between_minus_one_and_one(derived, domain):
    q, overlap = sp.symbols("q g", real=True)
    positive = sp.Symbol("rho", positive=True)
    system = SaddlePointSystem.from_fixed_point(
        {q: positive / (1 + q)}, name="one", parameters=(positive, overlap),
        derived={positive: derived(overlap)},
    ).independent()  # fmt: skip
    assert f"    g: {domain}\n" in documentation(system) + "\n"
    assert [str(p) for p in system.parameters] == ["g"]
