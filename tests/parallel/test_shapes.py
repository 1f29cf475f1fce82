"""The shapes of real programs: each runs once, far smaller, and is valid."""

import pytest

from launch import REPOSITORY, pffbench_cli, pffbench_here

pytestmark = pytest.mark.parallel

SHAPES = sorted((REPOSITORY / "configs" / "shapes").glob("*.yaml"))
SCALES = {"vpic": 1e-4, "mapl-c720": 0.05, "ufs-c768": 0.05, "ai-forecast": 0.01, "era5": 0.04}
#: Lengths of axes that `scale` leaves alone, and shorter ones that divide alike.
SHORTER = {"721, 1440": "103, 48", "4320, 720": "216, 36", "720, 720": "36, 36",
           "768, 768": "48, 48"}  # fmt: skip


#: Those of more cases or arrays than take 5 s.
LONG = ("flash-io", "vpic")
#: `make test` runs this one, of a map, and plans the others. Lists of arrays such as those of HACC
#: are in `test_listed_arrays.py`, files of nodes in `test_file_groups.py`.
SAMPLE = ("fesom",)


def marks(path):
    """Return when a shape is run: always, by `make test-all`, or on request alone."""
    if path.stem in LONG:
        return [pytest.mark.slow]
    return [] if path.stem in SAMPLE else [pytest.mark.full]


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=marks(p), id=p.stem) for p in SHAPES],
)
def test_each_shape_is_valid_at_a_small_scale(tmp_path, path):
    text = path.read_text(encoding="utf-8")
    for axes, fewer in SHORTER.items():
        text = text.replace(axes, fewer)
    (tmp_path / path.name).write_text(text, encoding="utf-8")
    settings = {"scale": SCALES.get(path.stem, 0.02), "repetitions": 1, "warmup": 0}
    told = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = pffbench_cli("run", path.name, *told, "--out", tmp_path / "out", "--scratch", tmp_path,
                        ranks=4, out=tmp_path / "out", cwd=tmp_path)  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert done.record["experiment"].get("scale", 1) == settings["scale"]


def test_scale_multiplies_the_first_axis_of_every_shape(tmp_path):
    path = next(path for path in SHAPES if path.stem == "s3d")
    done = pffbench_here("plan", path, "-n", 4, "--set", "scale=0.05", cwd=tmp_path)
    assert done.status == 0, done.said
    assert "1.465 MiB" not in done.said  # no other axis is shorter
    assert f"{3 * 50 * 50 * 16 * 8 * 4 / 2**20:.4g} MiB" in done.said, done.said
