// Tells the server in which zone this viewer reads times; no more than the zone's name.
"use strict";
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  const isKept = () => document.cookie.split("; ").includes("kanade_zone=" + zone);
  const known = isKept();
  document.cookie = "kanade_zone=" + zone + "; Path=/; Max-Age=31536000; SameSite=Lax" + secure;
  // The first page was drawn in the server's zone: draw it again, once, if nothing was typed yet.
  const isForm = document.querySelector("form[method=post]:not(#logout-form)");
  if (!known && isKept() && !isForm && document.querySelector("time")) location.reload();
})();
