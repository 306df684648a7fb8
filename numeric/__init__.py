if __name__ != "giantstep.numeric":
    raise ImportError(f"import this package as 'giantstep.numeric', not {__name__!r}")
