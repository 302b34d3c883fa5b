"""Links between brokers that are cut, in one way or both, slow or lossy, under load."""

from __future__ import annotations

from random import Random

import pytest

from . import network_cases as cases
from .cluster import Cluster
from .scene import Case, play

pytestmark = [pytest.mark.timeout(300)]


@pytest.mark.proves("R7")
def test_the_root_is_cut_off(cluster_in_namespaces: Cluster, chance: Random) -> None:
    play(cases.cut_root, cluster_in_namespaces, chance)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in cases.NETWORK_CASES if case is not cases.cut_root])
def test_the_other_cases(case: Case, cluster_in_namespaces: Cluster, chance: Random) -> None:
    play(case, cluster_in_namespaces, chance)
