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
// 2. The form shows what people would be asked with the facts that are in it.
const form = document.querySelector("form[data-planned]");
if (form) {
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const values = new URLSearchParams(new FormData(form));
      values.delete("csrf");
      const answer = await fetch(form.dataset.planned + "?" + values, { credentials: "same-origin" });
      if (answer.ok) document.querySelector("#planned").innerHTML = await answer.text();
    }, 250);
  });
}
