"""Tests with a real Spack take minutes to an hour: only those who ask for them get them."""


def pytest_collection_modifyitems(config, items):
    if "spack" in config.option.markexpr.replace("not spack", ""):
        return
    theirs = [item for item in items if item.get_closest_marker("spack")]
    if theirs:
        config.hook.pytest_deselected(items=theirs)
        items[:] = [item for item in items if item not in theirs]
