"""The parser of the command line: all commands with their arguments."""

from __future__ import annotations

import argparse
from typing import NoReturn

from . import (
    __version__,
    cli_claims,
    cli_exact,
    cli_expand,
    cli_giant_steps,
    cli_kernel,
    cli_leap,
    cli_one_step,
    cli_optimal,
    cli_project,
    cli_saddle_point,
    cli_srf,
    cli_staircase,
)
from .cli_layout import Formatter, add_command
from .cli_messages import report

_EPILOG = """\
examples:
  giantstep curve --student tanh --teacher sin --simulate
  giantstep curve --student erf --teacher "sin(z) + He(3, z)/6" --alpha 0.5,1,2 --table-only
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --certify
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1
  giantstep optimal --student erf --teacher erf --noise 0.1 --alpha 0.5:4:8
  giantstep kernel sherrington-kirkpatrick --target c --out sk.c
  giantstep one-step risk --student erf --teacher erf --over alpha --out risk.png
  giantstep hermite "erf(z)" --order 9 --closed-form
  giantstep expect "erf(u)*erf(v)" --joint rho
  giantstep gradient relu "x1*x2 + He(3, x1)"
  giantstep complexity "x1*x2 + x1**2"
  giantstep verify

Activations are names (tanh, erf, sin, relu, softplus, ...) or expressions in z such as
"tanh(2*z) + z/4" or "He(3, z)/6", with probabilists' Hermite polynomials.
"""


class Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        report(f"{message}; see {self.prog} --help")
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its result holds the command's function in ``run``."""
    parser = Parser(
        prog="giantstep",
        description="Theory of feature learning in the first giant gradient steps: exact "
        "derivations, solved\nto any precision, checked against finite networks.",
        epilog=_EPILOG,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"giantstep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    for name, summary, epilog, add in (
        (
            "curve", "learning curve, theory and simulation",
            cli_saddle_point.CURVE_EPILOG, cli_saddle_point.add_curve,
        ),
        (
            "solve", "one saddle point with all order parameters",
            cli_saddle_point.SOLVE_EPILOG, cli_saddle_point.add_solve,
        ),
        (
            "optimal", "ridge penalty or step size with the smallest test error",
            cli_optimal.EPILOG, cli_optimal.add_arguments,
        ),
        (
            "kernel", "generated kernel of a model, for other languages and in all stages",
            cli_kernel.EPILOG, cli_kernel.add_arguments,
        ),
        (
            "srf", "spiked random features: curves, bounds, spectra, figures",
            cli_srf.EPILOG, cli_srf.add_commands,
        ),
        (
            "one-step", "one step of order one: exact risk, spectra, phases",
            cli_one_step.EPILOG, cli_one_step.add_commands,
        ),
        (
            "expand", "series in a small quantity, against the exact solution",
            cli_expand.EPILOG, cli_expand.add_commands,
        ),
        (
            "claims", "list the published results that are held as claims",
            "", cli_claims.add_claims,
        ),
        (
            "verify", "recompute the evidence of claims; exit code 1 if one fails",
            cli_claims.VERIFY_EPILOG, cli_claims.add_verify,
        ),
        (
            "hermite", "exact Hermite coefficients E[f(z) He_k(z)] of an activation",
            cli_exact.HERMITE_EPILOG, cli_exact.add_hermite,
        ),
        (
            "expect", "exact Gaussian expectation of one variable or of a correlated pair",
            cli_exact.EXPECT_EPILOG, cli_exact.add_expect,
        ),
        (
            "gradient", "population gradient of a neuron, expanded by Stein's lemma",
            cli_exact.GRADIENT_EPILOG, cli_exact.add_gradient,
        ),
        (
            "complexity", "how many samples the known methods need for a target",
            cli_exact.COMPLEXITY_EPILOG, cli_exact.add_complexity,
        ),
        (
            "leap", "leap index, coordinate, rotation-invariant and generative leap",
            cli_leap.EPILOG, cli_leap.add_arguments,
        ),
        (
            "staircase", "subspaces that successive giant steps learn, exactly",
            cli_staircase.EPILOG, cli_staircase.add_arguments,
        ),
        (
            "project", "part of a target that is fitted on a learned subspace",
            cli_project.EPILOG, cli_project.add_arguments,
        ),
        (
            "giant-steps", "what giant steps learn, predicted and simulated",
            cli_giant_steps.EPILOG, cli_giant_steps.add_arguments,
        ),
    ):  # fmt: skip
        add(add_command(commands, name, summary, epilog))
    return parser
