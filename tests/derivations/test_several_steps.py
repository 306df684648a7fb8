"""Several steps of order one answer the questions that one step answers."""

import numpy as np
import pytest

import giantstep as gs

STEP = gs.OneGradientStep("erf", "tanh", alpha=2, beta=1.5, step_size=0.8, noise_variance=0.2)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("loss", ["half", "full"])
def test_curves_are_those_of_the_equivalent_step_at_each_point(fresh, loss):
    several = STEP.at(loss=loss).several_steps(3, fresh=fresh)
    curve = several.curve(alpha=[1.0, 4.0], step_size=[0.0, 0.5, 2.0], ridge=gs.paper_ridge(0.1))
    for alpha in (1.0, 4.0):
        for size in (0.5, 2.0):
            # Without alpha0 the samples of every step follow those of the readout.
            single = STEP.at(
                loss=loss, alpha=alpha, step_size=3 * size, alpha0=alpha * (3 if fresh else 1)
            )
            risk = single.solve(ridge=gs.paper_ridge(0.1))
            found = curve["risk_trained"].sel(alpha=alpha, step_size=size)
            assert float(found) == pytest.approx(risk.trained, rel=1e-13)
    assert (curve["improvement"].sel(step_size=0) == 0).all()
    assert "t η/√N" in str(curve)
    assert curve.plot("risk_trained").get_title(loc="left") == "student erf, teacher tanh"
    assert type(curve).from_json(curve.to_json()).dataset.attrs["steps"] == 3


@pytest.mark.parametrize("alpha0", [None, 3.0])
@pytest.mark.parametrize("fresh", [False, True])
def test_derivatives_are_those_of_the_curve(alpha0, fresh):
    several = STEP.at(alpha0=alpha0, loss="full").several_steps(2, fresh=fresh)
    found = several.sensitivities(ridge=0.1)
    h = 1e-5
    for name in ("alpha", "beta", "step_size", "noise_variance", *(("alpha0",) if alpha0 else ())):
        at = getattr(several.first, name)
        risks = [several.at(**{name: at + s * h}).solve(ridge=0.1).trained for s in (-1, 1)]
        assert found["risk_trained", name] == pytest.approx(np.diff(risks)[0] / (2 * h), abs=1e-8)
    assert ("risk_trained", "alpha0") in found.derivatives or alpha0 is None


def test_parameters_that_are_none_are_refused():
    several = STEP.several_steps(2)
    with pytest.raises(gs.errors.ParameterError, match="parameter of this model"):
        several.at(steps=3)
    with pytest.raises(gs.errors.ParameterError, match="ridge must be given"):
        several.curve(alpha=[1, 2])
    assert several.kernel().defaults["step_size"] == 1.6
