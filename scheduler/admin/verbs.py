"""Acts on an object: a page that says what will happen and asks, and the same for many at once.

One description serves the button on an object's page, its confirmation page, and the action of
the list. Rights are asked in all three places, and again for each object.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse

from scheduler.admin.acting import actor_of
from scheduler.admin.lists import BoundedAdmin, now_of
from scheduler.public import Actor

M = TypeVar("M", bound=Model)
# More at once is a matter for the command line, which shows how far it is.
MOST_AT_ONCE = 200
CONFIRMED = "confirmed"


class VerbForm(forms.Form):
    """What an act needs to be told. `user` may narrow what is offered, `target` is its object."""

    def __init__(self, *args: Any, user: Any, target: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.target = target


class ReasonForm(VerbForm):
    """An act that may be explained; the words stay in the audit log."""

    reason = forms.CharField(required=False, max_length=500, help_text="Kept in the audit log.")


@dataclass(frozen=True, slots=True)
class Call(Generic[M]):
    """One act on one object by one person at one moment, with what the form was told."""

    obj: M
    data: Mapping[str, Any]
    actor: Actor
    now: datetime
    user: Any


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, in words, and the page to go to (by default the object's own)."""

    message: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Verb(Generic[M]):
    """An act: its name in addresses, its words, who may, and what is called."""

    name: str
    title: str
    text: str
    permissions: tuple[str, ...]
    act: Callable[[Call[M]], Done]
    form: type[VerbForm] = ReasonForm
    look: str = ""
    # The button is shown where the act makes sense now; the verb itself judges again.
    fits: Callable[[M], bool] = field(default=lambda _obj: True)
    for_many: bool = True

    def is_allowed(self, request: HttpRequest) -> bool:
        """Whether this person holds the rights."""
        return bool(request.user.has_perms(self.permissions))


class VerbAdmin(BoundedAdmin[M]):
    """A model with acts."""

    verbs: Sequence[Verb[M]] = ()
    # What verbs raise when they do not do it; everything else is a fault of ours.
    refusals: ClassVar[tuple[type[Exception], ...]] = ()

    def show_refusal(self, form: forms.BaseForm, refusal: Exception) -> None:
        """Say in the form why it was not done."""
        form.add_error(None, str(refusal))

    def get_urls(self) -> list[Any]:
        """Return a page for each act, and the admin's own."""
        return [*(self._verb_url(verb) for verb in self.verbs), *super().get_urls()]

    def _verb_url(self, verb: Verb[M]) -> URLPattern:
        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            return self.verb_view(request, object_id, verb)

        return self.own_url(f"<path:object_id>/{verb.name}/", view, verb.name)

    def object_url(self, obj: M) -> str:
        """The page of an object."""
        return reverse(self.url_name("change"), args=[obj.pk])

    def buttons(self, request: HttpRequest, obj: M) -> list[dict[str, str]]:
        """The acts that this person may do and that make sense for the object now."""
        return [
            {
                "title": verb.title,
                "url": reverse(self.url_name(verb.name), args=[obj.pk]),
                "look": verb.look,
            }
            for verb in self.verbs
            if verb.is_allowed(request) and verb.fits(obj)
        ]

    def verb_view(self, request: HttpRequest, object_id: str, verb: Verb[M]) -> HttpResponse:
        """Ask before the act, do it, and go where it leads."""
        found = self.get_visible(request, object_id)
        if not verb.is_allowed(request):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else None
        form = verb.form(posted, user=request.user, target=found)
        if form.is_bound and form.is_valid():
            try:
                done = verb.act(self.call(request, found, form))
            except self.refusals as refusal:
                self.show_refusal(form, refusal)
            else:
                messages.success(request, done.message)
                return HttpResponseRedirect(done.url or self.object_url(found))
        context = {
            "title": f"{verb.title}: {found}",
            "verb": verb,
            "form": form,
            "back": self.object_url(found),
        }
        return self.page(request, "kanade/verb.html", found, context)

    def call(self, request: HttpRequest, obj: M, form: VerbForm) -> Call[M]:
        """The act with what the form was told."""
        return Call(obj, form.cleaned_data, actor_of(request), now_of(request), request.user)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the acts for many, for those who may; none in pop-ups, as Django has it."""
        actions: dict[str, Any] = dict(super().get_actions(request))
        if IS_POPUP_VAR in request.GET:
            return actions
        for verb in self.verbs:
            if verb.for_many and verb.is_allowed(request):
                actions[verb.name] = (_action_of(verb), verb.name, verb.title)
        return actions

    def verb_on_many(
        self, request: HttpRequest, queryset: QuerySet[M], verb: Verb[M]
    ) -> HttpResponse | None:
        """Ask once for all, then do each for itself: one refusal does not stop the others."""
        if not verb.is_allowed(request):
            raise PermissionDenied
        chosen = list(queryset[: MOST_AT_ONCE + 1])
        if len(chosen) > MOST_AT_ONCE:
            messages.error(request, f"Choose at most {MOST_AT_ONCE} at once; nothing was done.")
            return None
        posted = request.POST if CONFIRMED in request.POST else None
        form = verb.form(posted, user=request.user)
        if form.is_bound and form.is_valid():
            self._do_each(request, chosen, verb, form)
            return None
        context = {
            "title": f"{verb.title}: {len(chosen)} {self.opts.verbose_name_plural}",
            "verb": verb,
            "form": form,
            "chosen": chosen,
            "back": request.get_full_path(),
        }
        return self.page(request, "kanade/verb.html", None, context)

    def _do_each(
        self, request: HttpRequest, chosen: list[M], verb: Verb[M], form: VerbForm
    ) -> None:
        done = 0
        for obj in chosen:
            if not self.has_view_permission(request, obj):
                raise PermissionDenied
            try:
                verb.act(self.call(request, obj, form))
            except self.refusals as refusal:
                messages.error(request, f"{obj}: {refusal}")
            else:
                done += 1
        if done:
            messages.success(request, f"{verb.title}: done for {done} of {len(chosen)}.")


def _action_of(verb: Verb[Any]) -> Callable[..., HttpResponse | None]:
    def action(
        modeladmin: VerbAdmin[Any], request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        return modeladmin.verb_on_many(request, queryset, verb)

    return action
