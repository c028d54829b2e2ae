// Comforts; every page works without them.
const same = { credentials: "same-origin" };
// 1. A study's page keeps itself up to date.
const live = document.querySelector("[data-live]");
const DRAFT = "dpfda: a new study";
if (live) {
  const title = new Map(JSON.parse(localStorage.getItem(DRAFT) ?? "[]")).get("title-0");
  if (title && document.querySelector("h1").textContent === title.trim()) localStorage.removeItem(DRAFT);
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(live.dataset.live, same);
      if (answer.redirected) location.reload();
      else if (answer.status === 404) location.href = "/"; // it was deleted
      else if (answer.ok) live.innerHTML = await answer.text();
    } catch { /* the next one may arrive */ }
  }, 3000);
}
// 2. The form shows what people would be asked, and what it would be worth, with the facts in it.
const form = document.querySelector("form[data-planned]");
if (form) {
  const outlook = document.querySelector("#outlook");
  const aside = (name) => ["csrf", "sample"].includes(name) || name.startsWith("information-"); // of no forecast
  // One request at a time, and after it another if something was typed meanwhile.
  const keepUp = (address, place, pause) => {
    let waiting, busy = false, again = false, turn = 0;
    const ask = async () => {
      if (busy) { again = true; return; }
      busy = true;
      again = false;
      const mine = turn;
      const values = new URLSearchParams(new FormData(form));
      [...values.keys()].filter(aside).forEach((name) => values.delete(name));
      try {
        const answer = await fetch(address + "?" + values, same);
        const text = await answer.text();
        if (answer.redirected) location.reload();
        else if (mine !== turn) again = false; // the button was pressed: its answer is the better one
        else if (answer.ok) place.innerHTML = text;
        else if (answer.status === 429) { again = true; await new Promise((done) => setTimeout(done, 1000)); }
      } catch { /* the next one may arrive */ }
      busy = false;
      if (again) ask();
      else place.removeAttribute("aria-busy"); // until then what is shown is about the form as it was
    };
    const soon = () => {
      clearTimeout(waiting);
      place.setAttribute("aria-busy", "true");
      waiting = setTimeout(ask, pause);
    };
    const stop = () => { clearTimeout(waiting); again = false; turn += 1; };
    return { soon, stop };
  };
  const planned = keepUp(form.dataset.planned, document.querySelector("#planned"), 250);
  const worth = keepUp(form.dataset.outlook, outlook, 500);
  form.addEventListener("input", (event) => {
    if (event.target.type === "file" || event.target.name.startsWith("read-") || aside(event.target.name)) return;
    planned.soon();
    if (!form.elements.sample.files.length) worth.soon();
  });
  if (!outlook.querySelector("svg, .error")) worth.soon();
  // What is in the form is kept in this browser until a study of that title exists.
  if (!("edits" in form.dataset)) form.addEventListener("input", () => {
    const values = [...new FormData(form)].filter(([name, value]) => name !== "csrf" && typeof value === "string");
    localStorage.setItem(DRAFT, JSON.stringify(values));
  });
  const draft = new Map(JSON.parse(localStorage.getItem(DRAFT) ?? "[]"));
  const offer = document.querySelector("#draft");
  if ("fresh" in form.dataset && draft.size) {
    offer.hidden = false;
    offer.querySelector("span").textContent = draft.get("title-0") || "without a title";
    offer.querySelector("button").addEventListener("click", () => {
      for (const field of form.elements) {
        if (!field.name || ["csrf", "sample"].includes(field.name)) continue;
        if (["radio", "checkbox"].includes(field.type)) field.checked = draft.get(field.name) === field.value;
        else if (draft.has(field.name)) field.value = draft.get(field.name);
      }
      offer.hidden = true;
      planned.soon();
      worth.soon();
    });
  }
  // 3. A forecast leaves the form as it is, with the file that was chosen in it.
  form.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!button || !button.formAction.endsWith("/forecast")) return;
    event.preventDefault();
    const file = form.elements.sample.files[0];
    if (file && file.size > form.elements.sample.dataset.most) {
      outlook.textContent = "The file is too large for this form. Use dpfda plan --sample FILE instead.";
      return;
    }
    button.disabled = true;
    worth.stop();
    outlook.removeAttribute("aria-busy");
    outlook.textContent = "Studies are being simulated …";
    try {
      const sent = { method: "POST", body: new FormData(form), ...same };
      const answer = await fetch(button.formAction, sent);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelector("#outlook");
      if (found) outlook.innerHTML = found.innerHTML;
      else outlook.textContent = "There is no forecast now. Try again in a moment, or sign in again.";
    } catch {
      outlook.textContent = "The server could not be reached.";
    }
    button.disabled = false;
  });
}
// 4. Texts to copy, where the browser lets a page copy.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
      button.textContent = "Copied";
    } catch {
      document.getElementById(button.dataset.copy).select();
    }
  });
}
