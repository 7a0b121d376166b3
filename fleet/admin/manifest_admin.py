"""Editing a manifest in the admin: by fields or as YAML, always through the verb that saves it."""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from fleet.admin.base import now_of
from fleet.admin.errors import show_refusal
from fleet.admin.manifest_form import CodeArea
from fleet.admin.verbs import Call, Done, Verb, VerbAdmin, VerbForm
from fleet.rules.document_writer import dump_yaml
from fleet.rules.documents import Document, DocumentError, load_yaml
from fleet.rules.refusals import Invalid, Refusal
from scheduler.admin.acting import actor_of

M = TypeVar("M", bound=Model)
REFUSAL = "kanade.refusal"


def deletion(model: type[M], delete: Callable[..., None], text: str) -> Verb[M]:
    """The act that deletes: one object from its page, or many from the list."""
    name = model.__name__.lower()

    def act(call: Call[M]) -> Done:
        delete(call.obj, actor=call.actor, now=call.now)
        return Done(f"{call.obj} is deleted.", reverse(f"admin:fleet_{name}_changelist"))

    return Verb(
        name="delete",
        title="Delete",
        text=text,
        permissions=(f"fleet.view_{name}", f"fleet.delete_{name}"),
        act=act,
        form=VerbForm,
        look="danger",
    )


class YamlForm(forms.Form):
    """A whole manifest as text."""

    text = forms.CharField(
        label="Manifest",
        strip=False,
        widget=CodeArea(28),
        help_text="YAML or JSON, the same as in files for apply and in the API.",
    )

    def clean_text(self) -> Document:
        """Return the one document of the text."""
        try:
            documents = load_yaml(self.cleaned_data["text"])
        except DocumentError as error:
            raise forms.ValidationError(str(error)) from error
        if len(documents) != 1:
            raise forms.ValidationError(f"write one document, not {len(documents)}")
        return documents[0]


class ManifestAdmin(VerbAdmin[M]):
    """A model whose content is a manifest."""

    change_form_template = "kanade/manifest_form.html"
    # Saves a document; given by the model.
    save_verb: Callable[..., M]
    delete_verb: Callable[..., None]

    def document_of(self, obj: M) -> dict[str, object]:
        """The stored document."""
        raise NotImplementedError

    def store(self, request: HttpRequest, document: object, *, must_be_new: bool) -> M:
        """Call the verb that saves."""
        return type(self).save_verb(
            document, actor=actor_of(request), now=now_of(request), must_be_new=must_be_new
        )

    # --- the form of fields ---------------------------------------------------------------------

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show or save the form; what the verb refuses is shown in the form as it was typed."""
        context = {**self.links(request, object_id), **(extra_context or {})}
        try:
            return super().changeform_view(request, object_id, form_url, context)
        except Refusal as refusal:
            # Its transaction is undone. The form is built once more, and shows why.
            request.META[REFUSAL] = refusal
            return super().changeform_view(request, object_id, form_url, context)

    def links(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        """The pages beside the form."""
        if object_id is None:
            return {"yaml_url": reverse(self.url_name("add_yaml"))}
        found = self.get_visible(request, unquote(object_id))
        return {
            "yaml_url": reverse(self.url_name("yaml"), args=[found.pk]),
            "overview_url": self.object_url(found),
        }

    def get_form(
        self, request: HttpRequest, obj: M | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Return the form, which knows what the verb has answered to this request already."""
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"refusal": request.META.get(REFUSAL)})

    def save_model(self, request: HttpRequest, obj: M, form: Any, change: bool) -> None:
        """Save the manifest, not the row."""
        saved = self.store(request, form.manifest.document, must_be_new=not change)
        obj.__dict__.update(
            {key: value for key, value in saved.__dict__.items() if key != "_state"}
        )
        for warning in form.manifest.warnings:
            messages.warning(request, f"To know: {warning}")

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Save nothing more: the verb has saved it all."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the acts, with our way to delete many in place of Django's."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_model(self, request: HttpRequest, obj: M) -> None:
        """Delete by the verb, whoever asks."""
        type(self).delete_verb(obj, actor=actor_of(request), now=now_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[M]) -> None:
        """Delete each by the verb, whoever asks."""
        for obj in queryset:
            self.delete_model(request, obj)

    # --- the form of text -----------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """Return the pages of the text, and the admin's own."""
        return [
            self.own_url("add/yaml/", self.yaml_add_view, "add_yaml"),
            self.own_url("<path:object_id>/yaml/", self.yaml_view, "yaml"),
            *super().get_urls(),
        ]

    def yaml_add_view(self, request: HttpRequest) -> HttpResponse:
        """Create an object from a text."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self._yaml_page(request, None)

    def yaml_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show an object as text; save it for those who may."""
        found = self.get_visible(request, object_id)
        if request.method == "POST" and not self.has_change_permission(request, found):
            raise PermissionDenied
        return self._yaml_page(request, found)

    def _yaml_page(self, request: HttpRequest, obj: M | None) -> HttpResponse:
        initial = {"text": dump_yaml([self.document_of(obj)]) if obj else ""}
        form = YamlForm(request.POST if request.method == "POST" else None, initial=initial)
        if form.is_bound and form.is_valid():
            saved = self._saved(request, form, obj)
            if saved is not None:
                messages.success(request, f"{saved} is saved.")
                return HttpResponseRedirect(self.object_url(saved))
        name = self.opts.verbose_name
        context = {
            "title": f"{obj} as YAML" if obj else f"New {name} from YAML",
            "form": form,
            "may_save": obj is None or self.has_change_permission(request, obj),
            "back": self.object_url(obj) if obj else reverse(self.url_name("changelist")),
        }
        return self.page(request, "kanade/yaml.html", obj, context)

    def _saved(self, request: HttpRequest, form: YamlForm, obj: M | None) -> M | None:
        """The saved object; None when it was refused, which the form then shows."""
        document: Document = form.cleaned_data["text"]
        value = document.value
        if obj and isinstance(value, dict) and value.get("id") != str(obj):
            form.add_error("text", f"id: this page saves {obj}; make another one for another id")
            return None
        try:
            return self.store(request, value, must_be_new=obj is None)
        except Invalid as refusal:
            for problem in refusal.problems:
                form.add_error("text", f"line {document.line_of(problem.path)}: {problem}")
        except Refusal as refusal:
            show_refusal(form, refusal)
        return None
