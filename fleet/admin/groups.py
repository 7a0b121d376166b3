"""Groups of PCs."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from fleet.admin.document_fields import Document, Field, Kind
from fleet.admin.manifest_admin import ManifestAdmin, deletion
from fleet.admin.manifest_form import ManifestForm, Parsed
from fleet.models import Group
from fleet.operations.groups import delete_group, group_document, save_group
from fleet.rules.manifest import parse_group

DELETED = "PCs leave it. A group that a schedule or an enrolment token names is not deleted."


class GroupForm(ManifestForm):
    """A group's id, its words, and its members by name."""

    table: ClassVar[tuple[Field, ...]] = (
        Field("ident", "id"),
        Field("about", "description"),
        Field("members", "members", Kind.WORDS),
    )

    ident = forms.CharField(
        label="Id", required=False, help_text="Letters, digits, dots, dashes. It stays for ever."
    )
    about = forms.CharField(
        label="Description", required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    members = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text="Names or uuids of PCs, on lines of their own or separated by commas.",
    )

    class Meta:
        model = Group
        fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            # A disabled field is not believed when it is posted.
            self.fields["ident"].disabled = True

    def stored(self) -> Document:
        """The stored group, members by name."""
        return group_document(self.instance)

    def shown(self, document: Document) -> dict[str, object]:
        """What the fields show, one member a line."""
        shown = super().shown(document)
        return {**shown, "members": str(shown["members"]).replace(", ", "\n")}

    def parse(self, document: Document) -> Parsed:
        """The group that the fields describe."""
        return parse_group(document)


@admin.register(Group)
class GroupAdmin(ManifestAdmin[Group]):
    """Sets of PCs that schedules and runs can name."""

    form = GroupForm
    fieldsets = ((None, {"fields": ("ident", "about", "members")}),)
    verbs = (deletion(Group, delete_group, DELETED),)
    save_verb = staticmethod(save_group)
    delete_verb = staticmethod(delete_group)
    search_fields = ("slug",)
    list_display = ("slug", "size", "about")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        """Return the groups with the number of their members."""
        return super().get_queryset(request).annotate(members=Count("memberships"))

    @admin.display(description="PCs")
    def size(self, group: Group) -> int:
        """Return how many PCs are in it."""
        return int(group.__dict__.get("members", 0))

    @admin.display(description="description")
    def about(self, group: Group) -> str:
        """Return what it is for."""
        return group.description

    def document_of(self, obj: Group) -> dict[str, object]:
        """Return the group as its manifest."""
        return group_document(obj)
