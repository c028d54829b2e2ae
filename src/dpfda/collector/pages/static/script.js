// Two comforts; every page works without them.
// 1. A study's page keeps itself up to date.
const live = document.querySelector("[data-live]");
if (live) {
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(live.dataset.live, { credentials: "same-origin" });
    if (answer.ok) live.innerHTML = await answer.text();
  }, 3000);
}
// 2. The form shows the noise of the values that are in it.
const form = document.querySelector("form[data-noise]");
if (form) {
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const values = new URLSearchParams(new FormData(form));
      values.delete("csrf");
      const answer = await fetch(form.dataset.noise + "?" + values, { credentials: "same-origin" });
      if (answer.ok) document.querySelector("#noise").innerHTML = await answer.text();
    }, 250);
  });
}
