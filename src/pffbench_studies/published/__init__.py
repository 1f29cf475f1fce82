"""Published numbers of five studies, and comparisons of runs with them."""

from pffbench_studies.published.sidebyside import side_by_side
from pffbench_studies.published.values import STUDIES, published_frame, published_values

__all__ = ["STUDIES", "published_frame", "published_values", "side_by_side"]
