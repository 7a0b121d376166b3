"""What agents call: enrol, and exchange. The third path, the wait, is answered before Django.

Plain views: a framework between the two queries of an exchange without news and their answer would
cost more than both.
"""

from abc import abstractmethod
from base64 import b64encode
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views import View
from rest_framework.exceptions import (
    APIException,
    MethodNotAllowed,
    Throttled,
    ValidationError,
)
from rest_framework.throttling import BaseThrottle

from fleet.agent_api import limits
from fleet.agent_api.authentication import CHALLENGE, authenticated
from fleet.agent_api.bodies import MAX_ENROLMENT, MAX_EXCHANGE, length_of, read_body
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
    """Nothing was taken; the same message may come again."""

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


_NOT_THIS_AGENT = (
    "Another machine or a later start holds this identity; an operator decides which one is right."
)
# The database or the key is not there, or somebody was faster: the same message may come again.
_PASSING = (OperationalError, InterfaceError, HandOutLostError, SigningKeyError)
# Input that no check of ours foresaw is the sender's all the same.
_UNFORESEEN = (RecursionError, OverflowError, UnicodeError, DataError)


class AgentView(View):
    """A POST with one reading of the clock, whose errors are problem documents."""

    def dispatch(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Answer, whatever happens."""
        try:
            if request.method != "POST":
                raise MethodNotAllowed(request.method or "")
            return self.answer(request, timezone.now())
        except _PASSING:
            return _problem(Unavailable())
        except NotThisAgentError:
            return _problem(Conflict(_NOT_THIS_AGENT))
        except (APIException, *_UNFORESEEN) as error:
            return _problem(error)

    @abstractmethod
    def answer(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer a POST."""


def _problem(error: Exception) -> HttpResponse:
    response = problem_response(error, {})
    assert response is not None  # all that is caught has a document
    if isinstance(error, MethodNotAllowed):
        response["Allow"] = "POST"
    return response


class Enrol(AgentView):
    """`POST enrol`: a token becomes an agent and its credential. Open to whoever has a token."""

    def answer(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer 201 with the credential, which is shown this once.

        Only who is refused uses the allowance of its address up: thousands of PCs may enrol from
        behind one, as many as their token is for.
        """
        address = _address(request)
        limits.ADDRESSES.require(address)
        if not limits.ENROLLING.acquire(blocking=False):
            raise Throttled(wait=Unavailable.wait)
        try:
            return self._enrolled(request, address, now)
        except APIException:
            limits.ADDRESSES.spend(address)
            raise
        finally:
            limits.ENROLLING.release()

    def _enrolled(self, request: HttpRequest, address: str, now: datetime) -> HttpResponse:
        newcomer = read_newcomer(read_body(request, max_bytes=MAX_ENROLMENT), address=address)
        signer = server_signer()
        try:
            enrolled = enrol(newcomer, now=now)
        except EnrolmentRefusedError:
            raise EnrolmentRefused from None
        body = {
            "agent_id": enrolled.agent.uuid_text,
            "credential": enrolled.credential,
            "server_id": str(signer.server_id),
            "server_key": b64encode(signer.public_key).decode(),
            "server_epoch": signer.epoch,
            "server_time": now.isoformat(),
            "state": enrolled.agent.state,
        }
        return JsonResponse(body, status=HTTPStatus.CREATED)


class Exchange(AgentView):
    """`POST exchange`: news up, commands and the freeze down. For agents alone."""

    def answer(self, request: HttpRequest, now: datetime) -> HttpResponse:
        """Answer 200; 409 for a machine that is not this agent's."""
        caller = authenticated(request, now=now)
        limits.AGENTS.spend(caller.uuid, length_of(request))
        try:
            report = read_report(read_body(request, max_bytes=MAX_EXCHANGE))
        except ReportError as error:
            raise ValidationError({error.field or "non_field_errors": [str(error)]}) from error
        answer = exchange(caller, report, most_bytes=ROOM_FOR_COMMANDS, now=now)
        body = _told(answer, caller.pk, now)
        if caller.is_due_for_rotation:
            credential = offer_credential(caller, caller.uuid, now=now)
            if credential is not None:
                body["credential"] = credential
        return JsonResponse(body)


def _address(request: HttpRequest) -> str:
    """Return the sender's address as the site's proxies tell it."""
    throttle: Any = BaseThrottle()
    return str(throttle.get_ident(request) or "")[:64]


def _told(answer: Answer, agent_id: int, now: datetime) -> dict[str, object]:
    return {
        "server_time": now.isoformat(),
        "epoch": answer.epoch,
        "wait_ticket": write_ticket(Ticket(agent_id, now), key=ticket_key()),
        "verdicts": answer.verdicts,
        "commands": answer.envelopes,
        "kill": answer.kill,
        "freeze": _freeze(answer.freeze),
        "schedules_etag": answer.bundle.etag,
        "schedules": answer.bundle.envelopes,
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
