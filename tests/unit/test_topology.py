"""Which rank reads what another one wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.mpi.topology import Topology


def topology_of(nodes):
    return Topology(hosts=tuple(f"node{node}" for node in nodes), nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("nodes", "partners"),
    [
        ([0], (0,)),
        ([0, 0, 0], (1, 2, 0)),
        ([0, 0, 1, 1], (2, 3, 0, 1)),
        ([0, 1, 0, 1], (1, 0, 3, 2)),  # placed in turn
    ],
)
def test_the_partner_sits_on_the_next_node(nodes, partners):
    topology = topology_of(nodes)
    assert topology.partners == partners


@given(st.integers(2, 6), st.integers(1, 8), st.randoms())
def test_with_equally_filled_nodes_every_part_is_read_once_on_another_node(nodes, each, random):
    places = [node for node in range(nodes) for _ in range(each)]
    random.shuffle(places)
    topology = topology_of(places)
    assert sorted(topology.partners) == list(range(len(places)))
    assert all(places[a] != places[b] for a, b in enumerate(topology.partners))
