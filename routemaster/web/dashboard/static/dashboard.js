// The pages are made on the server and work without this. Here they are kept fresh: the page asks
// for itself again, and what changed in it (elements with data-live and an id) takes its new place.
"use strict";

const EVERY_MS = 2000;
// Charts change once a minute: the rounds between leave them out.
const FULL_EVERY = 15;
const PART = { "X-Routemaster-Part": "now" };

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Times, in the reader's own zone.

const HOUR = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const DAY = { year: "numeric", month: "short", day: "numeric" };
const CLOCK = new Intl.DateTimeFormat(undefined, HOUR);
const MOMENT = new Intl.DateTimeFormat(undefined, { ...DAY, ...HOUR, second: "2-digit" });

function localTime(root) {
  for (const time of all("time[data-ms]", root)) {
    const format = time.dataset.as === "clock" ? CLOCK : MOMENT;
    time.textContent = format.format(new Date(Number(time.dataset.ms)));
  }
  for (const zone of all(".zone", root)) zone.textContent = "";
}

// Freshness.

let isLive = true;
let round = 0;

function isInUse(element) {
  const chosen = getSelection();
  const isSelected = chosen && !chosen.isCollapsed && chosen.containsNode(element, true);
  const active = document.activeElement;
  const isTyping = element.contains(active) && active.matches("input, select, textarea");
  return isSelected || isTyping || element.querySelector(".tip:not([hidden])") !== null;
}

function keepOpen(old, fresh) {
  for (const open of all("details[open][id]", old)) {
    const same = fresh.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = true;
  }
  if (old.matches("details[open]")) fresh.open = true;
}

function placeOf(focused) {
  if (focused.id) return `#${CSS.escape(focused.id)}`;
  const href = focused.getAttribute("href");
  return href ? `a[href="${CSS.escape(href)}"]` : focused.localName;
}

function renew(old, fresh) {
  localTime(fresh);
  keepOpen(old, fresh);
  if (old.outerHTML === fresh.outerHTML || isInUse(old)) return;
  const focused = document.activeElement;
  const place = old.contains(focused) ? placeOf(focused) : null;
  const scrolled = all(".scroll", old).map((box) => [box.scrollLeft, box.scrollTop]);
  old.replaceWith(fresh);
  all(".scroll", fresh).forEach((box, n) => scrolled[n] && box.scrollTo(...scrolled[n]));
  if (place) (fresh.matches(place) ? fresh : fresh.querySelector(place))?.focus();
}

function take(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const fresh of all("[data-live][id]", page)) {
    const old = document.getElementById(fresh.id);
    if (old) renew(old, document.adoptNode(fresh));
  }
}

function say(problem) {
  const line = document.getElementById("offline");
  if (line) {
    line.hidden = !problem;
    if (line.textContent !== problem) line.textContent = problem;
  } else if (!problem) {
    location.reload(); // the page that said so: all is well again
  }
}

async function refresh() {
  const isPart = ++round % FULL_EVERY !== 0;
  const answer = await fetch(location.href, { headers: isPart ? PART : {}, redirect: "manual" });
  if (answer.type === "opaqueredirect") location.reload(); // signed out, or the session is over
  else if (answer.status === 503) say("Redis cannot be reached. These numbers are old; trying again.");
  else if (!answer.ok) say(`The bus answers ${answer.status}. These numbers are old; trying again.`);
  else {
    const text = await answer.text();
    say("");
    take(text);
  }
}

async function turn() {
  if (isLive && document.visibilityState === "visible") {
    try {
      await refresh();
    } catch {
      say("The bus does not answer. These numbers are old; trying again.");
    }
  }
  setTimeout(turn, EVERY_MS);
}

function setUpToggle(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    isLive = !isLive;
    button.setAttribute("aria-pressed", String(isLive));
  });
}

// Values of a chart, under the pointer and by arrow keys.

function read(box, place) {
  const { times, texts, names } = JSON.parse(box.dataset.chart);
  const last = times.length - 1;
  const n = Math.max(0, Math.min(last, place));
  box.dataset.place = n;
  const x = (1000 * n) / last;
  box.querySelector(".cursor").setAttribute("d", `M${x} 0 L${x} 100`);
  const lines = names.map((name, i) => `${name}: ${texts[n][i]}`);
  const tip = box.querySelector(".tip");
  tip.textContent = [CLOCK.format(new Date(times[n])), ...lines].join("\n");
  tip.hidden = false;
  const left = (box.clientWidth * n) / last;
  tip.style.left = `${left > box.clientWidth / 2 ? left - tip.offsetWidth - 10 : left + 10}px`;
  return tip.textContent;
}

function leave(box) {
  box.querySelector(".cursor").setAttribute("d", "");
  box.querySelector(".tip").hidden = true;
  delete box.dataset.place;
}

function setUpCharts() {
  const boxOf = (event) => event.target.closest?.("[data-chart]");
  document.addEventListener("pointermove", (event) => {
    const box = boxOf(event);
    for (const other of all("[data-place]")) if (other !== box) leave(other);
    if (!box) return;
    const { times } = JSON.parse(box.dataset.chart);
    const { left, width } = box.getBoundingClientRect();
    read(box, Math.round(((event.clientX - left) / width) * (times.length - 1)));
  });
  document.addEventListener("keydown", (event) => {
    const box = boxOf(event);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (box && event.key === "Escape") leave(box);
    if (!box || !step) return;
    event.preventDefault();
    const place = Number(box.dataset.place ?? JSON.parse(box.dataset.chart).times.length) + step;
    box.querySelector(".said").textContent = read(box, place).replaceAll("\n", ", ");
  });
  document.addEventListener("focusout", (event) => boxOf(event) && leave(boxOf(event)));
}

localTime(document);
setUpCharts();
const toggle = document.getElementById("live-toggle");
const isRenewed = document.querySelector("[data-live]") !== null;
if (toggle && isRenewed) setUpToggle(toggle);
if (isRenewed || document.getElementById("unavailable")) {
  setTimeout(turn, EVERY_MS);
}
