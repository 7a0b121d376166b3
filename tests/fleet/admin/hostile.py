"""Words that want to be more than words."""

import itertools

# What would act, if a page took it for markup.
ACTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<body onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<math><mi xlink:href=javascript:alert(1)>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><input name=x>",
    "<object data=x></object>",
    "<details open ontoggle=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<!--<img src=x onerror=alert(1)>-->",
    "<textarea autofocus onfocus=alert(1)>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
)
# What would end the place that the words stand in: an attribute, an element, a comment.
BREAKS = ("", '"', "'", '">', "'>", "</pre>", "</textarea>", "</title>", "-->", "]]>", "\\", "`")
ODD = (
    "{{7*7}}",
    "{% debug %}",
    "${7*7}",
    "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "=cmd|' /C calc'!A0",
    "\u202egnp.exe",
    "a\u200bb\ufeff",
    "\uff1cscript\uff1e",
)
PAYLOADS = tuple(
    f"{before}{act}" for before, act in itertools.product(BREAKS, ACTS)
) + ODD  # fmt: skip
IN_A_GROUP = 45
# A short column takes the beginning of a group, a long one all of it.
GROUPS = tuple(
    " ".join(PAYLOADS[start : start + IN_A_GROUP]) for start in range(0, len(PAYLOADS), IN_A_GROUP)
)
