// Three comforts; every page works without them.
// 1. A study's page keeps itself up to date.
const live = document.querySelector("[data-live]");
if (live) {
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(live.dataset.live, { credentials: "same-origin" });
    if (answer.ok) live.innerHTML = await answer.text();
  }, 3000);
}
// 2. The form shows what people would be asked with the facts that are in it.
const form = document.querySelector("form[data-planned]");
if (form) {
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const values = new URLSearchParams(new FormData(form));
      ["csrf", "sample"].forEach((name) => values.delete(name));
      const answer = await fetch(form.dataset.planned + "?" + values, { credentials: "same-origin" });
      if (answer.ok) document.querySelector("#planned").innerHTML = await answer.text();
    }, 250);
  });
  // 3. A forecast leaves the form as it is, with the file that was chosen in it.
  form.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!button || !button.formAction.endsWith("/forecast")) return;
    event.preventDefault();
    const outlook = document.querySelector("#outlook");
    const file = form.elements.sample.files[0];
    if (file && file.size > form.elements.sample.dataset.most) {
      outlook.textContent = "The file is too large for this form: dpfda plan --sample takes it.";
      return;
    }
    button.disabled = true;
    outlook.textContent = "Studies are being simulated …";
    try {
      const sent = { method: "POST", body: new FormData(form), credentials: "same-origin" };
      const answer = await fetch(button.formAction, sent);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelector("#outlook");
      if (found) outlook.innerHTML = found.innerHTML;
      else outlook.textContent = "No forecast now: try again in a moment, or sign in again.";
    } catch {
      outlook.textContent = "The server could not be reached.";
    }
    button.disabled = false;
  });
}
