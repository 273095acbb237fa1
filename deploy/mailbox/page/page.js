// The page works without this script. It adds: times of the reader's own zone,
// new messages by themselves, the button that empties the mailbox, and arrow
// keys in the list. Text from messages goes into the page as text only.
"use strict";
(() => {
  const interval = 3000;
  const path = "/_mailbox";
  const page = document.body.dataset;
  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  const live = byId("live");

  const today = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const earlier = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
  function localise(time) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) return;
    const isToday = at.toDateString() === new Date().toDateString();
    const format = time.classList.contains("long") ? whole : isToday ? today : earlier;
    time.textContent = format.format(at);
    time.title = time.dateTime;
  }
  document.querySelectorAll("time").forEach(localise);

  function row(message) {
    const item = byId("blank").content.firstElementChild.cloneNode(true);
    item.dataset.id = message.id;
    item.classList.add("fresh");
    item.querySelector("a").setAttribute("href", path + "/" + encodeURIComponent(message.id));
    item.querySelector(".kind").dataset.kind = message.kind;
    item.querySelector(".to").textContent = message.to.join(", ");
    item.querySelector(".subject").textContent = message.subject || message.text || "(no subject)";
    const time = item.querySelector("time");
    time.dateTime = message.receivedAt;
    localise(time);
    return item;
  }

  // show brings the list to the given messages and leaves the rows that stay
  // where they are, so that the keyboard's place in the list is not lost.
  function show(messages) {
    const wanted = new Set(messages.map((message) => message.id));
    for (const item of [...list.children]) if (!wanted.has(item.dataset.id)) item.remove();
    let added = 0;
    messages.forEach((message, at) => {
      if (list.children[at]?.dataset.id === message.id) return;
      list.insertBefore(row(message), list.children[at] ?? null);
      added++;
    });
    return added;
  }

  let version = '"' + page.version + '"';
  async function look() {
    const answer = await fetch(path + "?summary=true&limit=" + page.limit, {
      headers: { Accept: "application/json", "If-None-Match": version },
      cache: "no-store",
    });
    if (answer.status === 304) {
      if (live.dataset.trouble) say("");
      return;
    }
    if (!answer.ok) throw new Error("status " + answer.status);
    const { messages } = await answer.json();
    version = answer.headers.get("ETag");
    if (!list || messages.length === 0) {
      // From nothing to something or back is another page.
      if (Boolean(list) !== messages.length > 0) location.replace(path);
      return;
    }
    const added = show(messages);
    const count = Number(answer.headers.get("X-Total-Count"));
    byId("count").textContent = count + (count === 1 ? " message" : " messages");
    say(added === 0 ? "" : added === 1 ? "1 new message" : added + " new messages");
  }
  function say(text, trouble) {
    live.textContent = text;
    live.dataset.trouble = trouble ? "yes" : "";
  }
  let timer;
  async function watch() {
    if (document.hidden) return; // Coming back starts it again.
    try {
      await look();
    } catch {
      say("The mailbox does not answer. Trying again …", true);
    }
    clearTimeout(timer);
    timer = setTimeout(watch, interval);
  }
  if (!("part" in page)) {
    timer = setTimeout(watch, interval);
    document.addEventListener("visibilitychange", watch);
  }

  const empty = byId("empty");
  const sure = byId("sure");
  empty.hidden = false;
  empty.addEventListener("click", () => sure.showModal());
  byId("keep").addEventListener("click", () => sure.close());
  byId("delete").addEventListener("click", async () => {
    try {
      const answer = await fetch(path, { method: "DELETE" });
      if (!answer.ok) throw new Error("status " + answer.status);
      location.assign(path);
    } catch {
      sure.close();
      say("The mailbox could not be emptied.", true);
    }
  });

  // The view that was chosen last is chosen in the next message too.
  for (const view of document.querySelectorAll("input[name=view]")) {
    if (sessionStorage.getItem("view") === view.value) view.checked = true;
    view.addEventListener("change", () => sessionStorage.setItem("view", view.value));
  }

  if (!list) return;
  list.querySelector(".current")?.scrollIntoView({ block: "nearest" });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
    if (!next) return;
    event.preventDefault();
    next.querySelector("a").focus();
  });
})();
