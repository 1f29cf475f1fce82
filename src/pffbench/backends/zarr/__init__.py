"""Zarr directory stores: the formats, a store that ranks share, and two libraries."""
