// The events of a topic, as the bus tells them (Server-Sent Events). All of it is text: nothing of
// an event ever becomes markup.
"use strict";

const MOST_ROWS = 200;
const AGAIN_MS = 5000;
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23",
});

const body = document.getElementById("stream");
const state = document.getElementById("stream-state");
const none = document.getElementById("stream-none");
const hold = document.getElementById("stream-hold");
const clear = document.getElementById("stream-clear");

let coming = [];
let seen = 0;
let isHeld = false;

function cell(row, text, kind) {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
}

function rowOf({ id, event }) {
  const row = document.createElement("tr");
  cell(row, id, "n");
  cell(row, Number.isFinite(event.t) ? TIME.format(new Date(event.t)) : "", "n");
  cell(row, String(event.type ?? ""));
  cell(row, String(event.url ?? ""), "mono event");
  cell(row, String(event.facet ?? ""), "mono");
  cell(row, event.data === undefined ? "" : JSON.stringify(event.data), "mono event");
  return row;
}

function gap(words) {
  const row = document.createElement("tr");
  cell(row, words, "none");
  row.cells[0].colSpan = 6;
  return row;
}

// At most once for each picture the screen shows, however many events come.
function draw() {
  if (isHeld || coming.length === 0) return;
  const newest = coming.slice(-MOST_ROWS).reverse();
  coming = [];
  body.prepend(...newest.map((one) => (one.words ? gap(one.words) : rowOf(one))));
  while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
  none.hidden = true;
}

function add(one) {
  coming.push(one);
  if (coming.length > 2 * MOST_ROWS) coming = coming.slice(-MOST_ROWS);
  if (coming.length === 1) requestAnimationFrame(draw);
}

function say(words) {
  if (state.textContent !== words) state.textContent = words;
}

function watch() {
  const source = new EventSource(body.dataset.stream);
  source.onopen = () => say("Watching.");
  source.onmessage = ({ data, lastEventId }) => {
    seen += 1;
    add({ id: lastEventId, event: JSON.parse(data) });
  };
  source.addEventListener("skipped", ({ data }) => {
    add({ words: `${JSON.parse(data).events} events came too fast, and were not shown` });
  });
  source.addEventListener("end", ({ data }) => {
    source.close();
    say(`The stream ended: ${JSON.parse(data).reason}.`);
    setTimeout(watch, AGAIN_MS);
  });
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) return say("Connecting again.");
    say("The stream cannot be opened: you may be signed out, or too many are open. Trying again.");
    setTimeout(watch, AGAIN_MS);
  };
}

function setUpButtons() {
  hold.hidden = clear.hidden = false;
  hold.addEventListener("click", () => {
    isHeld = !isHeld;
    hold.setAttribute("aria-pressed", String(isHeld));
    say(isHeld ? "Held: what comes is shown when you go on." : "Watching.");
    draw();
  });
  clear.addEventListener("click", () => {
    coming = [];
    body.replaceChildren();
    none.hidden = false;
  });
}

if (body) {
  setUpButtons();
  watch();
}
