"""All features that worlds draw from."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.features.ageing import AgeingFeature
from pandomq.sim.features.data_reading import DataReadingFeature
from pandomq.sim.features.dead_letters import DeadLettersFeature
from pandomq.sim.features.drills.detours import DetoursFeature
from pandomq.sim.features.drills.founders import FoundersFeature
from pandomq.sim.features.drills.named_successor import NamedSuccessorFeature
from pandomq.sim.features.drills.pressure import PressureFeature
from pandomq.sim.features.drills.visibility import VisibilityFeature
from pandomq.sim.features.exceptions import ExceptionsFeature
from pandomq.sim.features.feature import Feature
from pandomq.sim.features.forgetting import ForgettingFeature
from pandomq.sim.features.hours import HoursFeature
from pandomq.sim.features.leases import LeasesFeature
from pandomq.sim.features.mixed_acks import MixedAcksFeature
from pandomq.sim.features.policies import PoliciesFeature
from pandomq.sim.features.rights import RightsFeature
from pandomq.sim.features.staging import StagingFeature
from pandomq.sim.features.timed import TimedFeature
from pandomq.sim.features.topics import TopicsFeature
from pandomq.sim.features.turns import TurnsFeature
from pandomq.sim.features.vhosts import VhostsFeature

if TYPE_CHECKING:
    from pandomq.sim.world import World

FEATURES_MAX: Final = 3
"""The maximum number of features in one world."""
FEATURES: Final[tuple[type[Feature], ...]] = (
    HoursFeature,
    AgeingFeature,
    DataReadingFeature,
    ExceptionsFeature,
    ForgettingFeature,
    LeasesFeature,
    DeadLettersFeature,
    MixedAcksFeature,
    PoliciesFeature,
    RightsFeature,
    StagingFeature,
    TimedFeature,
    TopicsFeature,
    TurnsFeature,
    VhostsFeature,
    VisibilityFeature,
    FoundersFeature,
    PressureFeature,
    NamedSuccessorFeature,
    DetoursFeature,
)


def draw_features(world: World) -> list[Feature]:
    """Draws each feature by its own chance, but at most FEATURES_MAX of them, since more would make the world slow."""
    drawn: list[tuple[type[Feature], Random]] = []
    for kind in FEATURES:
        random = Random(f"feature {kind.name} {world.seed}")
        if random.random() < kind.chance and kind.suits(world):
            drawn.append((kind, random))
    if len(drawn) > FEATURES_MAX:
        chosen = Random(f"features {world.seed}").sample(range(len(drawn)), FEATURES_MAX)
        drawn = [drawn[place] for place in sorted(chosen)]
    names = {kind.name for kind, _ in drawn}
    drawn = [(kind, random) for kind, random in drawn if names.isdisjoint(kind.never_with)]
    return [kind(world, random) for kind, random in drawn if world.scene.reduction.keeps_feature(kind.name)]
