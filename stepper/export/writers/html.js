"use strict";
const root = document.documentElement;
const at = id => document.getElementById(id);
const slider = at("iteration"), shown = at("shown"), told = at("told"), aloud = at("aloud"), player = at("play");
const space = "http://www.w3.org/2000/svg";
const numbers = DATA.ranges.flatMap(([first, last]) => Array.from({length: last - first + 1}, (_, k) => first + k));
let now = 0, timer = null;

// --- what an iteration looks like -----------------------------------------------------------------------------------

function made(name, look, attributes) {
  const element = document.createElementNS(space, name);
  element.setAttribute("class", look);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function drawLine(place, shades, x, y, width, height) {
  const step = width / (shades.length - 1);
  let path = "", down = false;
  shades.forEach((shade, index) => {
    if (shade !== null) path += `${down ? "L" : "M"}${x + index * step} ${y + (1 - shade) * height}`;
    down = shade !== null;
  });
  place.append(made("path", "spark", {d: path}));
}

function drawShades(place, rows, x, y, width, height) {
  const high = height / rows.length;
  rows.forEach((shades, row) => {
    const wide = Math.min(width / shades.length, 2 * high);
    const left = x + (width - wide * shades.length) / 2;
    shades.forEach((shade, column) => place.append(made("rect", shade === null ? "mark" : "shade", {
      x: left + column * wide, y: y + row * high, width: wide, height: high,
      opacity: shade === null ? 1 : .06 + .94 * shade,
    })));
  });
}

function draw(place, rows) {
  place.replaceChildren();
  const area = place.dataset.area.split(" ").map(Number);
  if (rows && rows.length === 1 && rows[0].length > 1) drawLine(place, rows[0], ...area);
  else if (rows) drawShades(place, rows, ...area);
}

const state = one => one.states[one.at ? one.at[now] : 0];

function showBody() {
  for (const [id, one] of Object.entries(DATA.frames)) {
    const [look, title] = state(one), frame = at(id);
    frame.setAttribute("class", look);
    frame.querySelector("text").textContent = title;
  }
  const heard = [];
  for (const [id, one] of Object.entries(DATA.boxes)) {
    const {look, lines, picture} = state(one), box = at(id);
    box.setAttribute("class", look);
    box.querySelectorAll("text").forEach((line, index) => {
      const [kind, text] = lines[index] || ["small", ""];
      line.setAttribute("class", kind);
      line.textContent = text;
    });
    const place = box.querySelector(".picture");
    if (place) draw(place, picture);
    if (/^(parameter|result)/.test(look)) heard.push(lines.map(line => line[1]).join(", "));
  }
  return heard.join("; ");
}

function showRun() {
  const step = DATA.run.findIndex(([begin, end]) => begin <= numbers[now] && numbers[now] < end);
  for (const group of document.querySelectorAll("[data-steps]")) {
    const [begin, end] = group.dataset.steps.split(" ").map(Number);
    group.setAttribute("visibility", begin <= step && step < end ? "visible" : "hidden");
  }
}

// --- going to an iteration ------------------------------------------------------------------------------------------

function go(index, word = "") {
  now = Math.max(0, Math.min(numbers.length - 1, index));
  const label = `iteration ${numbers[now]} of 0..${DATA.last}`;
  slider.value = now;
  shown.textContent = label;
  told.textContent = word;
  slider.setAttribute("aria-valuetext", label);
  for (const [id, ends] of [["first", now === 0], ["before", now === 0],
                            ["after", now === numbers.length - 1], ["last", now === numbers.length - 1]])
    at(id).setAttribute("aria-disabled", ends);
  const values = showBody();
  showRun();
  if (timer === null) aloud.textContent = `${label}. ${values}`;
}

function goByHand(index) {
  stop();
  go(index);
  writeAddress();
}

const words = () => location.hash.slice(1).split("&").filter(Boolean);

function writeAddress() {
  const kept = words().filter(word => !word.startsWith("i="));
  try {
    history.replaceState(null, "", `#${[...kept, `i=${numbers[now]}`].join("&")}`);
  } catch { /* a page without an address of its own, such as srcdoc */ }
}

function readAddress() {
  const options = new URLSearchParams(location.hash.slice(1)), query = new URLSearchParams(location.search);
  root.classList.toggle("embed", DATA.embed || options.has("embed") || query.has("embed"));
  const theme = options.get("theme") || query.get("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const wanted = options.get("i") || query.get("i");
  if (!wanted || !/^\d+$/.test(wanted)) return go(now);
  const index = numbers.indexOf(Number(wanted));
  if (index >= 0) return go(index);
  const near = numbers.findLastIndex(number => number <= Number(wanted));
  go(near, Number(wanted) > DATA.last ? `there is no iteration ${wanted}` : `iteration ${wanted} is not drawn`);
}

// --- playing --------------------------------------------------------------------------------------------------------

function stop() {
  if (timer === null) return;
  clearInterval(timer);
  timer = null;
  player.classList.remove("playing");
  player.setAttribute("aria-label", "play");
  go(now);
  writeAddress();
}

function play() {
  if (timer !== null) return stop();
  player.classList.add("playing");
  player.setAttribute("aria-label", "pause");
  timer = setInterval(() => {
    go(now + 1);
    if (now === numbers.length - 1) stop();
  }, 1000 * DATA.pace);
  go(now === numbers.length - 1 ? 0 : now);
}

// --- keys and clicks ------------------------------------------------------------------------------------------------

const MOVES = {ArrowLeft: () => now - 1, ArrowRight: () => now + 1, Home: () => 0, End: () => numbers.length - 1};
slider.addEventListener("input", () => goByHand(Number(slider.value)));
at("first").addEventListener("click", () => goByHand(0));
at("before").addEventListener("click", () => goByHand(now - 1));
at("after").addEventListener("click", () => goByHand(now + 1));
at("last").addEventListener("click", () => goByHand(numbers.length - 1));
player.addEventListener("click", play);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  if (event.key === " " && event.target.tagName !== "BUTTON") play();
  else if (event.key in MOVES && event.target !== slider) goByHand(MOVES[event.key]());
  else return;
  event.preventDefault();
});
document.addEventListener("click", event => {
  const hit = event.target.closest("[data-go]");
  if (hit) goByHand(numbers.findIndex(number => number >= Number(hit.dataset.go)));
});
addEventListener("hashchange", () => { stop(); readAddress(); });
addEventListener("beforeprint", stop);

at("controls").hidden = false;
slider.max = numbers.length - 1;
readAddress();
