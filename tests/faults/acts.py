"""The acts of the fleet by their names in the table of points."""

from tests.faults.control_acts import Enrol, MakeKey, Offer, Revoke, Rotate, SetFreeze
from tests.faults.delivery_acts import Chunk, Fetch, Report, ReportAgain, Start
from tests.faults.fleet_acts import Act, Calendar, Cancel, ReleaseWave, Run

ACTS: dict[str, type[Act]] = {
    "run": Run,
    "calendar": Calendar,
    "wave": ReleaseWave,
    "cancel": Cancel,
    "fetch": Fetch,
    "start": Start,
    "output": Chunk,
    "result": Report,
    "again": ReportAgain,
    "freeze": SetFreeze,
    "enrol": Enrol,
    "rotate": Rotate,
    "offer": Offer,
    "revoke": Revoke,
    "key": MakeKey,
}
