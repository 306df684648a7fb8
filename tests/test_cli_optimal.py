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


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--ridge", "1"), "--ridge is what is optimised"),
        (("--what", "step-size", "--step-size", "1"), "--step-size is what is optimised"),
        (("--what", "step-size", "--digits", "9"), "--digits refines a ridge penalty"),
        (("--what", "beta"), "--what"),
        (("--bounds", "3"), "is not LOW:HIGH"),
        (("--bounds", "3:2"), "LOW has to be below HIGH"),
        (("--bounds", "0:2"), "both ends must be positive and finite"),
        (("--bounds", "a:2"), "is not a number"),
        (("--alpha", "0"), "--alpha"),
        (("--alpha", "x"), "--alpha"),
        (("--digits", "0"), "--digits"),
        (("--noise", "-1"), "--noise"),
    ],
)
def test_bad_input_is_refused_in_one_line(run, arguments, named):
    code, out, err = run("optimal", *arguments)
    assert (code, out) == (2, "") and named in err and len(err.splitlines()) == 1


def test_help_teaches(run):
    code, out, _ = run("optimal", "--help")
    assert code == 0 and "interior minimum" in out and "--what step-size" in out
