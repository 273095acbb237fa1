// The search: it shows the operations that have every word that is typed.
"use strict";
const input = document.getElementById("search");
const groups = [...document.querySelectorAll("nav details")];
const opened = groups.map((group) => group.open);

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  groups.forEach((group, i) => {
    let here = 0;
    for (const item of group.querySelectorAll("li")) {
      item.hidden = !words.every((word) => item.dataset.terms.includes(word));
      here += item.hidden || item.dataset.terms === "" ? 0 : 1;
    }
    group.hidden = here === 0;
    group.open = words.length > 0 ? here > 0 : opened[i];
    found += here;
  });
  document.getElementById("nothing").hidden = found > 0;
}

input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    document.querySelector("nav details:not([hidden]) li:not([hidden]) a")?.click();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
});
