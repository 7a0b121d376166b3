// Parts of a page that renew themselves: <div data-live="/address" data-every="2">.
// The server draws the part; a part marked data-ended is not asked for again.
"use strict";
(() => {
  const SLOWEST = 60;

  function show(part, html) {
    if (part.dataset.shown === html) return;
    part.dataset.shown = html;
    const open = [...part.querySelectorAll("details[open][id]")].map((item) => item.id);
    const log = part.querySelector("[data-tail]");
    const follows = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 24;
    const focused = document.activeElement && part.contains(document.activeElement)
      ? document.activeElement.id : "";
    part.innerHTML = html;
    open.forEach((id) => { const item = document.getElementById(id); if (item) item.open = true; });
    const next = part.querySelector("[data-tail]");
    if (next && follows) next.scrollTop = next.scrollHeight;
    if (focused) { const item = document.getElementById(focused); if (item) item.focus(); }
  }

  function watch(part) {
    const every = Number(part.dataset.every || 5);
    let wait = every;
    const again = () => setTimeout(ask, wait * 1000);

    async function ask() {
      if (document.hidden) { again(); return; }
      try {
        const answer = await fetch(part.dataset.live, {
          headers: { "X-Requested-With": "fetch" }, redirect: "error", cache: "no-store",
        });
        if (!answer.ok) throw new Error(String(answer.status));
        show(part, await answer.text());
        part.classList.remove("stale");
        wait = every;
      } catch {
        // The server is away or the session ended: say so, and ask less often.
        part.classList.add("stale");
        wait = Math.min(Math.max(wait, 1) * 2, SLOWEST);
      }
      if (!part.querySelector("[data-ended]")) again();
    }
    const log = part.querySelector("[data-tail]");
    if (log) log.scrollTop = log.scrollHeight;
    if (!part.querySelector("[data-ended]")) again();
  }

  document.querySelectorAll("[data-live]").forEach(watch);
})();
