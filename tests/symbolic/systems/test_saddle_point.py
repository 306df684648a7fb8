import mpmath
import pytest
import sympy as sp

from giantstep.derivations.spiked_random_features import physics as model
from giantstep.derivations.spiked_random_features.physics import spiked_free_energy
from giantstep.derivations.spiked_random_features.published import conditionals, right_hand_sides
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
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem, complement

alpha, beta, ridge, c = model.alpha, model.beta, model.ridge, model.c
kappa, X = model.kappa, model.eigenvalue
mu0, mu1, mu2_squared = model.mu0, model.mu1, model.mu2_squared
T0, T1, T2 = model.T0, model.T1, model.T2
V1, V2, q1, q2, m, theta, psi = (
    model.V1, model.V2, model.q1, model.q2, model.m, model.theta, model.psi,
)  # fmt: skip
V1_hat, V2_hat, q1_hat, q2_hat = model.V1_hat, model.V2_hat, model.q1_hat, model.q2_hat
theta_hat, psi_hat = model.theta_hat, model.psi_hat

V, C, ERROR = conditionals()
PUBLISHED = right_hand_sides()
FIXES_M = PUBLISHED.pop(m)


def mean(integrand):
    return GaussianExpectation(integrand, kappa)


def terms(expr):
    """Write E[f] as the sum of the means of the terms of f, prefactors outside: a normal form."""
    expr = sp.expand(expr)
    for node in expr.atoms(GaussianExpectation, MarchenkoPasturAverage):
        parts = [
            node.func(part, *node.args[1:]) for part in sp.Add.make_args(sp.expand(node.args[0]))
        ]
        expr = expr.xreplace({node: sp.Add(*parts)})
    return sp.expand(expr)


@pytest.fixture(scope="module")
def energy():
    return spiked_free_energy(activation("tanh"), activation("sin"))


@pytest.fixture(scope="module")
def equations(energy):
    return {e.unknown: e for e in saddle_point_equations(energy.free_energy)}


def test_thirteen_equations(equations):
    assert set(equations) == {*PUBLISHED, m} and len(equations) == 13
    assert [x for x, e in equations.items() if e.value is None] == [m]


@pytest.mark.parametrize("unknown", PUBLISHED, ids=str)
def test_stationarity_gives_the_published_equation(equations, unknown):
    assert terms(equations[unknown].value - PUBLISHED[unknown]) == 0
    assert terms(equations[unknown].residual - unknown + PUBLISHED[unknown]) == 0


def test_the_mean_direction_is_fixed_by_its_own_condition(equations):
    assert terms(equations[m].residual + alpha / beta * FIXES_M) == 0


def test_the_normal_form_tells_equations_apart(equations):
    wrong = PUBLISHED[q1].subs(beta * psi_hat**2, psi_hat**2)
    assert terms(equations[q1].value - wrong) != 0
    assert terms(equations[V1_hat].value - PUBLISHED[V2_hat]) != 0


# mu_i and T_i in place of the activations' for numbers: any functions will do.
STAND_INS = {
    mu0: sp.tanh(kappa / 2), mu1: 1 / (1 + kappa**2), mu2_squared: sp.exp(-(kappa**2)) / 3,
    T0: sp.sin(kappa), T1: sp.cos(kappa) / 2, T2: 1 + kappa**2 / 5,
}  # fmt: skip
POINT = {
    alpha: sp.Rational(3, 2), beta: sp.Rational(4, 5), ridge: sp.Rational(1, 7),
    c: sp.Rational(9, 8),
    V1: sp.Rational(7, 5), V2: sp.Rational(8, 3), m: sp.Rational(4, 5), theta: -sp.Rational(1, 9),
    psi: sp.Rational(2, 7), q1: sp.Rational(1, 3), q2: sp.Rational(3, 8),
    V1_hat: sp.Rational(3, 11), V2_hat: sp.Rational(1, 13), theta_hat: sp.Rational(1, 8),
    psi_hat: sp.Rational(2, 9), q1_hat: sp.Rational(1, 12), q2_hat: sp.Rational(1, 15),
}  # fmt: skip


def value_at(expr, point, digits=40):
    expr = expr.subs(STAND_INS).subs(point)
    nodes = expr.atoms(GaussianExpectation, MarchenkoPasturAverage)
    return expr.xreplace({n: n.evalf(digits + 5) for n in nodes}).evalf(digits)


@pytest.mark.parametrize("variable", [m, V1_hat], ids=str)
def test_stationarity_is_the_numerical_derivative(energy, variable):
    # Central difference of step 1e-12: error 1e-24 times the third derivative.
    f = energy.free_energy.expression
    step = sp.Rational(1, 10**12)
    up, down = (value_at(f, POINT | {variable: POINT[variable] + s}) for s in (step, -step))
    found = value_at(stationarity(energy.free_energy)[variable], POINT)
    assert abs((up - down) / (2 * step) - found) < 1e-21


def test_errors_are_the_published_ones(energy):
    assert terms(energy.test_error - mean(ERROR) + model.noise) == 0
    assert terms(energy.training_error - mean(ERROR / (1 + V) ** 2)) == 0


def test_free_energy_is_the_training_loss_by_elimination(energy):
    # Section 4.5: at the saddle point f = (n/2p) <(T2 - T0 C - mu1 psi T1)/(1+V)>. By Euler's
    # theorem for the quadratic part: 2f - sum of (x df/dx) over the linear variables / 1.
    f = energy.free_energy.expression
    conditions = stationarity(energy.free_energy)
    linear = (m, theta, psi, theta_hat, psi_hat)
    combination = 2 * f - sum(x * conditions[x] for x in linear)
    combination -= 2 * sum(x * conditions[x] for x in (q1, q2, q1_hat, q2_hat))
    loss = alpha / beta * mean((T2 - T0 * C - mu1 * psi * T1) / (1 + V))
    assert abs(value_at(combination - loss, POINT)) < 1e-35


# -- variants


def variant(student, teacher="sin", **flags):
    found = spiked_free_energy(activation(student), activation(teacher), **flags)
    return found, {e.unknown: e for e in saddle_point_equations(found.free_energy)}


def test_without_spike_an_odd_student_has_no_mean_direction():
    found, equations = variant("tanh", unspiked=True)
    assert set(equations) == set(PUBLISHED)
    everything = [found.test_error, found.training_error, *(e.residual for e in equations.values())]
    assert not any(e.has(m, mu0) for e in everything)
    assert mu0 not in found.free_energy.definitions


def test_without_spike_other_students_keep_it():
    _, equations = variant("relu", unspiked=True)
    assert set(equations) == {*PUBLISHED, m}
    found, equations = variant("cos", unspiked=True)  # even: mu_1 vanishes instead
    assert not any(e.residual.has(mu1) for e in equations.values())
    assert equations[V1_hat].value == 0 and m in equations
    assert mu1 not in found.free_energy.definitions


def test_aligned_labels_leave_no_orthogonal_overlap():
    _, equations = variant("tanh", aligned=True)
    assert equations[psi_hat].value == 0
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


def test_ridge_regression_is_that_of_hastie_and_others():
    # Hastie, Montanari, Rosset & Tibshirani, Ann. Statist. 50 (2022): at alpha < 1, no noise and
    # ridge -> 0 the error is rho (1 - alpha). Here at ridge = 1e-20, by fixed-point iteration.
    values = {alpha: sp.Rational(3, 5), rho: 2, noise: 0, ridge: sp.Rational(1, 10**20)}
    found = {e.unknown: e.value.subs(values) for e in saddle_point_equations(RIDGE_REGRESSION)}
    with mpmath.workdps(50):
        names = list(found)
        step = sp.lambdify(names, [found[x] for x in names], "mpmath")
        # V = 1/(lambda + alpha/(1+V)): the positive root of lambda V^2 + (lambda+alpha-1)V - 1
        small, gap = mpmath.mpf(10) ** -20, mpmath.mpf(2) / 5
        root = (gap - small + mpmath.sqrt((gap - small) ** 2 + 4 * small)) / (2 * small)
        state = dict.fromkeys(names, mpmath.mpf(1)) | {toy_V: root}
        for _ in range(400):
            new = dict(zip(names, step(*(state[x] for x in names)), strict=True))
            state = new | {toy_V: root}
        error = 2 - 2 * state[toy_m] + state[toy_q]
    assert abs(error - mpmath.mpf(4) / 5) < 1e-15  # O(ridge); each three steps gain alpha


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
