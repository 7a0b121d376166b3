"""What agents call: enrol, and exchange. The third path, the wait, is answered before Django."""

from base64 import b64encode
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from fleet.agent_api.authentication import CHALLENGE, AgentCredential, IsAgent
from fleet.agent_api.bodies import AgentParser, EnrolmentParser
from fleet.agent_api.limits import AddressLimit, AgentLimit
from fleet.agent_api.newcomers import read_newcomer
from fleet.flow.deliver import HandOutLostError
from fleet.flow.exchange import Answer, NotThisAgentError, exchange
from fleet.flow.signing import SigningKeyError, server_signer
from fleet.operations.credentials import offer_credential
from fleet.operations.enrolment import EnrolmentRefusedError, enrol
from fleet.operations.tokens import ticket_key
from fleet.rules.freeze import FreezeState
from fleet.rules.reports import ReportError, read_report
from fleet.rules.tickets import Ticket, write_ticket
from scheduler.api.problems import Conflict, problem_response

# All of a reply fits into 4 MiB, which is what agents read; the rest of it is small.
ROOM_FOR_COMMANDS = 4 * 1024 * 1024 - 512 * 1024
# An agent that has nothing to wait with comes this often; two minutes of silence are too long.
NEXT_IN_S = 30.0
AT_ONCE_S = 0.0


class Unavailable(APIException):
    """The database or the server's key is not there: nothing was taken, send it again."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The server cannot answer now; send it again."
    default_code = "unavailable"
    wait = 5


class EnrolmentRefused(APIException):
    """The token opens nothing; which of the reasons it is, nobody is told."""

    status_code = HTTPStatus.UNAUTHORIZED
    default_detail = "The enrolment token is not valid."
    default_code = "enrolment_refused"
    auth_header = CHALLENGE


class AgentView(APIView):
    """One clock reading a request, problems as documents, and nothing of sessions or users."""

    schema = None
    renderer_classes = (JSONRenderer,)
    now: datetime

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the clock before anything is asked."""
        self.now = timezone.now()
        super().initial(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Any:
        """Turn what the flow raises into an answer."""
        if isinstance(exc, (OperationalError, InterfaceError, HandOutLostError, SigningKeyError)):
            return problem_response(Unavailable(), {})
        if isinstance(exc, NotThisAgentError):
            return problem_response(Conflict(_NOT_THIS_AGENT), {})
        return super().handle_exception(exc)


_NOT_THIS_AGENT = (
    "Another machine or a later start holds this identity; an operator decides which one is right."
)


class Enrol(AgentView):
    """`POST enrol`: a token becomes an agent and its credential."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = (AddressLimit,)
    parser_classes = (EnrolmentParser,)

    def post(self, request: Request) -> HttpResponse:
        """Answer 201 with the credential, which is shown this once."""
        newcomer = read_newcomer(request.data, address=request.META.get("REMOTE_ADDR", ""))
        signer = server_signer()
        try:
            enrolled = enrol(newcomer, now=self.now)
        except EnrolmentRefusedError:
            raise EnrolmentRefused from None
        body = {
            "agent_id": enrolled.agent.uuid_text,
            "credential": enrolled.credential,
            "server_id": str(signer.server_id),
            "server_key": b64encode(signer.public_key).decode(),
            "server_epoch": signer.epoch,
            "server_time": self.now.isoformat(),
            "state": enrolled.agent.state,
        }
        return JsonResponse(body, status=HTTPStatus.CREATED)


class Exchange(AgentView):
    """`POST exchange`: news up, commands and the freeze down."""

    authentication_classes = (AgentCredential,)
    permission_classes = (IsAgent,)
    throttle_classes = (AgentLimit,)
    parser_classes = (AgentParser,)

    def post(self, request: Request) -> HttpResponse:
        """Answer 200; 409 for a machine that is not this agent's."""
        try:
            report = read_report(request.data)
        except ReportError as error:
            raise ValidationError({error.field or "non_field_errors": [str(error)]}) from error
        caller: Any = request.auth
        answer = exchange(caller, report, most_bytes=ROOM_FOR_COMMANDS, now=self.now)
        body = _told(answer, caller.agent.pk, self.now)
        credential = offer_credential(caller.agent, now=self.now)
        if credential is not None:
            body["credential"] = credential
        return JsonResponse(body)


def _told(answer: Answer, agent_id: int, now: datetime) -> dict[str, object]:
    return {
        "server_time": now.isoformat(),
        "epoch": answer.epoch,
        "wait_ticket": write_ticket(Ticket(agent_id, now), key=ticket_key()),
        "verdicts": answer.verdicts,
        "commands": answer.envelopes,
        "kill": answer.kill,
        "freeze": _freeze(answer.freeze),
        "schedules_etag": "",
        "schedules": None,
        "next_in_s": AT_ONCE_S if answer.more else NEXT_IN_S,
    }


def _freeze(state: FreezeState) -> dict[str, object]:
    return {
        "frozen": state.frozen,
        "reason": state.reason,
        "from": state.starts_at.isoformat() if state.starts_at else None,
        "until": state.until.isoformat() if state.until else None,
        "unreadable": state.unreadable is not None,
    }
