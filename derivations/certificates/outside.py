"""Models that no proof by intervals covers say so."""

from __future__ import annotations

from ...errors import CertificationError
from ...numeric.arguments import checked_switch


def refuse_certificate(certify: object, model: str, reason: str) -> None:
    """Raise if a certificate is wanted.

    Parameters
    ----------
    certify : bool
        As the user gave it.
    model, reason : str
        What has no certificate, and why.

    Raises
    ------
    CertificationError
        If `certify` is True.
    ParameterError
        If it is no truth value.
    """
    if checked_switch("certify", certify):
        raise CertificationError(
            f"{model} are outside of what can be certified: {reason}\n"
            "  certified are the square loss of SpikedRandomFeatures, OneGradientStep.risk and "
            "kernels whose averages are over one Gaussian variable"
        )
