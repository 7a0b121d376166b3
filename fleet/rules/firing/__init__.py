"""Whether a schedule fires now, and if not, at which gate it stops.

`decide` stops at the first closed gate, `explain` shows all of them; both ask the same
functions, in the order of `Reason`. A snapshot holds facts only: gathering them is the
caller's business, and so is acting on the answer.
"""

from fleet.rules.firing.decision import Decision, Dispatch, Skip, decide, explain, stops_early
from fleet.rules.firing.facts import Candidate, JobFacts, Snapshot
from fleet.rules.firing.looking import Look, next_look
from fleet.rules.firing.reasons import IGNORED_BY_HAND, ORDER, Gate, Reason
from fleet.rules.firing.standing import Standing, standing, standings

__all__ = [
    "IGNORED_BY_HAND",
    "ORDER",
    "Candidate",
    "Decision",
    "Dispatch",
    "Gate",
    "JobFacts",
    "Look",
    "Reason",
    "Skip",
    "Snapshot",
    "Standing",
    "decide",
    "explain",
    "next_look",
    "standing",
    "standings",
    "stops_early",
]
