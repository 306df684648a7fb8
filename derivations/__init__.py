if __name__ != "giantstep.derivations":
    raise ImportError(f"import this package as 'giantstep.derivations', not {__name__!r}")
