"""The option `certify` of models and kernels."""

from __future__ import annotations

from ...numeric.arguments import checked_switch


def certificate_wanted(certify: object) -> bool:
    """Return whether a certificate is wanted, before anything is computed for it.

    Raises
    ------
    ParameterError
        If `certify` is no truth value.
    MissingDependencyError
        If it is True and python-flint is not installed.
    """
    wanted = checked_switch("certify", certify)
    if wanted:
        # Brings SymPy along, which a solution in floats does without.
        from ...ball_library import require_flint

        require_flint()
    return wanted
