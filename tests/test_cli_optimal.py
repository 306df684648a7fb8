"""``giantstep optimal``: numbers, tables, refusals in one line."""

import pytest

MODEL = ("--student", "erf", "--teacher", "erf", "--step-size", "2", "--alpha0", "4")


def test_one_optimum_with_what_it_rests_on(run):
    code, out, err = run("optimal", *MODEL, "--alpha", "1.5")
    assert (code, err) == (0, "")
    # 20 digits by Newton's method in mpmath: 0.19768729420751311058.
    assert "optimal ridge  0.197687294208" in out and "interior minimum" in out
    assert "student erf, teacher erf; s = 2, α₀ = 4, β = 1, Δ = 0" in out
    assert "zero of the exact derivative with estimated error" in out


def test_several_sample_complexities_give_a_table(run):
    code, out, _ = run("optimal", *MODEL, "--alpha", "0.5,1.5", "--bounds", "0.25:10")
    assert code == 0
    assert "optimal λ" in out and "test error" in out
    # At 1.5 the optimum, 0.2, is below the bounds.
    assert "α = 1.5: at the boundary ridge = 0.25: the test error falls towards smaller" in out


@pytest.mark.slow
def test_step_size(run):
    arguments = ("--student", "erf", "--teacher", "erf", "--alpha0", "4", "--ridge", "0.05")
    code, out, _ = run(
        "optimal", "--what", "step-size", *arguments, "--alpha", "2", "--bounds", "0.5:10"
    )
    assert code == 0 and "optimal step_size" in out and "λ = 0.05" in out


@pytest.mark.slow
def test_joint_optimum(run):
    code, out, err = run(
        "optimal", "--joint", "--student", "erf", "--teacher", "erf", "--alpha0", "4",
        "--alpha", "1.5", "--bounds", "0.01:10", "--step-bounds", "1:5",
    )  # fmt: skip
    assert (code, err) == (0, "")
    # Newton's method in both; the single optima agree with it.
    assert "optimal ridge      0.1930292717" in out and "optimal step_size  2.371059338" in out
