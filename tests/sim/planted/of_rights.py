"""Bugs of users, passwords and permissions that change while clients use them."""

from __future__ import annotations

from typing import Final

from pandomq.broker.administration.administration import Administration
from pandomq.broker.administration.permissions import VhostAccess
from pandomq.broker.log.commands import DeletePermissions, DeleteTopicPermissions, PutTopicPermissions
from pandomq.broker.vhost import Vhost
from pandomq.node.clients.credentials import CredentialCache
from tests.sim.planted.of_visibility import NODES, skip
from tests.sim.planted.planted_bug import Patch, PlantedBug


def _keep_answers(patch: Patch) -> None:
    def forget(access: VhostAccess) -> None:
        access.routes.clear()

    patch.set(VhostAccess, "_forget", forget)


def _keep_routes(patch: Patch) -> None:
    def forget(access: VhostAccess) -> None:
        for answers in access._answers:
            answers.clear()
        access._topic_answers.clear()

    patch.set(VhostAccess, "_forget", forget)


def _skip_revocation(patch: Patch) -> None:
    skip(patch, DeletePermissions)


def _skip_topics(patch: Patch) -> None:
    skip(patch, PutTopicPermissions, DeleteTopicPermissions)


def _trust_password(patch: Patch) -> None:
    digest = CredentialCache._digest
    patch.set(CredentialCache, "_digest", lambda one, user, password_hash, password: digest(one, user, "", password))


def _let_deleted_work(patch: Patch) -> None:
    patch.set(Vhost, "revoke", lambda vhost, user: None)
    patch.set(Administration, "_close", lambda administration, concerned, reason: None)


PLANTED_BUGS: Final = (
    PlantedBug(
        "right-remembered", "The broker keeps cached answers about rights after a change of rights.", _keep_answers
    ),
    PlantedBug("route-remembered", "A user whose right was revoked can publish over a cached route.", _keep_routes),
    PlantedBug("front-revokes-nothing", "Fronts do not apply the revocation of permissions.", _skip_revocation, NODES),
    PlantedBug("front-without-topics", "Fronts do not apply topic permissions.", _skip_topics, NODES),
    PlantedBug("old-password-good", "A password that was valid once stays valid.", _trust_password),
    PlantedBug("deleted-user-works", "A deleted user keeps its rights.", _let_deleted_work),
)
