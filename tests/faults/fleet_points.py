"""The points of the fleet at which something may happen, each mapped to a real place.

Fan-out, delivery and control of the fault model. `keeps` = what the act did is there afterwards.
"""

from dataclasses import dataclass

from tests.faults.places import Place, When

BEFORE, AFTER, COMMIT, COMMITTED = When.BEFORE, When.AFTER, When.COMMIT, When.COMMITTED
INSERT_EXECUTION = "INSERT INTO fleet_execution "
INSERT_OCCURRENCE = "INSERT INTO fleet_occurrence "
INSERT_COMMANDS = "INSERT INTO fleet_command "
GO_LIVE = "UPDATE fleet_execution SET state"
RELEASE_WAVE = "UPDATE fleet_wave SET state"
CANCEL = "UPDATE fleet_command SET state = %s, reason"
AUDIT = "INSERT INTO scheduler_auditentry "
RECOGNISE = "FROM fleet_agent a"
HAND_OUT = "SET state = 'handed_out'"
START = ", attempt = "
TURN = "FROM fleet_agentpresence"
INSERT_RESULT = "INSERT INTO fleet_result "
FIND_RESULT = "FROM fleet_result"
INSERT_CHUNK = "INTO fleet_outputchunk "
INSERT_OUTPUT = "INSERT INTO fleet_output "


@dataclass(frozen=True, slots=True)
class Point:
    """A point by its name, the act in which it lies, and what is there after a kill at it."""

    name: str
    act: str
    place: Place
    keeps: bool
    # Of an act that writes in several transactions: how many commands are stored, and visible.
    stored: int = 0


# 200 commands in chunks of 40: 5 full chunks and an empty one that publishes.
FAN_OUT = [
    Point("run.create_in_txn", "run", Place(INSERT_EXECUTION, AFTER), keeps=False),
    Point("run.created", "run", Place(INSERT_EXECUTION, COMMITTED), keeps=True),
    Point("snapshot.in_txn", "calendar", Place(INSERT_OCCURRENCE, AFTER), keeps=False),
    Point("snapshot.committed", "calendar", Place(INSERT_OCCURRENCE, COMMITTED), keeps=True),
    Point("chunk.before", "run", Place(INSERT_COMMANDS, BEFORE), keeps=True),
    Point("chunk.in_txn_first", "run", Place(INSERT_COMMANDS, AFTER), keeps=True),
    Point("chunk.in_txn_mid", "run", Place(INSERT_COMMANDS, AFTER, 3), keeps=True, stored=80),
    Point("chunk.committed", "run", Place(INSERT_COMMANDS, COMMITTED, 3), keeps=True, stored=120),
    Point("publish.before", "run", Place(GO_LIVE, BEFORE), keeps=True, stored=200),
    Point("publish.in_txn", "run", Place(GO_LIVE, AFTER), keeps=True, stored=200),
    Point("publish.committed", "run", Place(GO_LIVE, COMMITTED), keeps=True, stored=200),
    Point("wave.in_txn", "wave", Place(RELEASE_WAVE, AFTER), keeps=False),
    Point("wave.committed", "wave", Place(RELEASE_WAVE, COMMITTED), keeps=True),
    Point("cancel.in_txn", "cancel", Place(CANCEL, AFTER), keeps=False),
]
DELIVERY = [
    Point("fetch.auth_done", "fetch", Place(RECOGNISE, AFTER), keeps=False),
    Point("fetch.in_txn", "fetch", Place(HAND_OUT, AFTER), keeps=False),
    Point("fetch.committed_no_reply", "fetch", Place(HAND_OUT, COMMITTED), keeps=True),
    Point("ack.in_txn", "start", Place(START, AFTER), keeps=False),
    Point("ack.committed_no_reply", "start", Place(START, COMMITTED), keeps=True),
    Point("result.parsed", "result", Place(TURN, BEFORE), keeps=False),
    Point("result.in_txn", "result", Place(INSERT_RESULT, AFTER), keeps=False),
    Point("result.committed_no_reply", "result", Place(INSERT_RESULT, COMMITTED), keeps=True),
    Point("result.duplicate", "again", Place(FIND_RESULT, AFTER), keeps=True),
    Point("output.blob", "output", Place(INSERT_CHUNK, AFTER), keeps=False),
    Point("output.linked", "result", Place(INSERT_OUTPUT, AFTER), keeps=False),
    Point("audit.in_txn", "cancel", Place(AUDIT, AFTER), keeps=False),
]
CONTROL = [
    Point("freeze.in_txn", "freeze", Place("INSERT INTO fleet_freeze ", AFTER), keeps=False),
    Point("freeze.committed", "freeze", Place("INSERT INTO fleet_freeze ", COMMITTED), keeps=True),
    Point(
        "enrol.consume_in_txn",
        "enrol",
        Place("UPDATE fleet_enrolmenttoken SET used", AFTER),
        keeps=False,
    ),
    Point(
        "enrol.committed_no_reply",
        "enrol",
        Place("UPDATE fleet_enrolmenttoken SET used", COMMITTED),
        keeps=True,
    ),
    Point(
        "rotate.in_txn",
        "rotate",
        Place("UPDATE fleet_agent SET credential_at", AFTER),
        keeps=False,
    ),
    Point(
        "rotate.committed_no_reply",
        "offer",
        Place("UPDATE fleet_agent SET next_credential_hash", COMMITTED),
        keeps=True,
    ),
    Point("revoke.in_txn", "revoke", Place("UPDATE fleet_agent SET state", AFTER), keeps=False),
    # There is one key set so far, made when it is first needed: signing brings the swap.
    Point("keyset.swap", "key", Place("INTO fleet_serveridentity ", AFTER), keeps=False),
]
POINTS = FAN_OUT + DELIVERY + CONTROL
