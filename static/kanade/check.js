// "Check" on the form of a schedule: asks the server what the form would do, and saves nothing.
"use strict";
(() => {
  function clear(form) {
    form.querySelectorAll("[data-check-error]").forEach((item) => item.remove());
    form.querySelectorAll("[aria-invalid]").forEach((item) => item.removeAttribute("aria-invalid"));
  }

  function mark(form, error) {
    const field = form.elements[error.field];
    const input = field instanceof RadioNodeList ? field[0] : field;
    if (!input) return;
    input.setAttribute("aria-invalid", "true");
    const note = document.createElement("ul");
    note.className = "errorlist";
    note.dataset.checkError = "";
    const line = document.createElement("li");
    line.textContent = error.message;
    note.append(line);
    (input.closest(".form-row") || input.parentElement).prepend(note);
  }

  async function check(button) {
    const form = button.form || document.querySelector("form[id$=_form]");
    const place = document.getElementById(button.dataset.checkResult);
    clear(form);
    button.disabled = true;
    try {
      const answer = await fetch(button.dataset.check, {
        method: "POST", body: new FormData(form), redirect: "error",
        headers: { "X-Requested-With": "fetch" },
      });
      if (!answer.ok) throw new Error(String(answer.status));
      const told = await answer.json();
      place.innerHTML = told.html;
      told.errors.forEach((error) => mark(form, error));
    } catch {
      place.textContent = "The server does not answer; nothing was checked.";
    }
    button.disabled = false;
  }

  document.querySelectorAll("[data-check]").forEach((button) => {
    button.addEventListener("click", () => check(button));
  });

  // Only the texts of the chosen kind of "when" are shown.
  const NEEDS = {
    "per_pc every": ["when_every"], "per_target every": ["when_every"],
    "calendar at": ["when_at", "when_days"], "calendar cron": ["when_cron"],
  };
  const shape = document.getElementById("id_when_shape");
  if (shape) {
    const all = ["when_every", "when_at", "when_days", "when_cron"];
    const show = () => all.forEach((name) => {
      const row = document.querySelector(".field-" + name);
      if (row) row.hidden = !(NEEDS[shape.value] || []).includes(name) && !row.querySelector(".errorlist");
    });
    shape.addEventListener("change", show);
    show();
  }
})();
