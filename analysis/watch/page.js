"use strict";
// Asks the watcher for what there is to see, and shows it; all text is put in as text.

const PERIOD_MS = 2000;
const UNKNOWN = "n/a";

function number(value, digits = 0) {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "string") return value;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function unit(value, name, digits = 0) {
  const text = number(value, digits);
  return text === UNKNOWN || text === "lost" ? text : `${text} ${name}`;
}

function duration(seconds) {
  if (seconds === null) return UNKNOWN;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return `${Math.round(seconds)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function tile(name, value, how) {
  const made = element("div", "tile");
  made.append(element("div", "name", name), element("div", "value", value));
  if (how) made.append(element("div", "how", how));
  return made;
}

function list(id, entries) {
  const section = document.getElementById(id);
  section.hidden = entries.length === 0;
  section.querySelector("ul").replaceChildren(...entries.map((entry) => element("li", "", entry)));
}

function curve(times, values, top, className) {
  const first = times[0], length = times[times.length - 1] - first || 1;
  let drawn = "", pen = "M";
  values.forEach((value, place) => {
    const x = 100 * (times[place] - first) / length, y = 40 - 38 * value / top;
    if (value !== null) drawn += `${pen}${x.toFixed(2)},${y.toFixed(2)}`;
    pen = value === null ? "M" : "L"; // what was not measured is a gap
  });
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", drawn);
  line.setAttribute("class", className);
  return line;
}

function curves(caption, times, lines, top) {
  const figure = element("figure");
  const words = element("figcaption", "", `${caption}: `);
  lines.forEach(([name], place) => {
    words.append(place ? ", " : "", element("span", place ? "second-name" : "first-name", name));
  });
  words.append(`, 0 to ${number(top)}, ${number(times[0])} to ${number(times[times.length - 1])} s`);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  lines.forEach(([, values], place) => svg.append(curve(times, values, top, place ? "second" : "")));
  figure.append(words, svg);
  return figure;
}

function progress(cell) {
  const time = unit(cell.sample?.time_s, "s");
  return cell.schedule ? `${time} of ${number(cell.schedule.end_s)} s and drain` : time;
}

function requests(cell) {
  const done = cell.ended.ok ?? 0;
  const others = Object.entries(cell.ended).filter(([status]) => status !== "ok");
  const failed = others.map(([status, count]) => `${number(count)} ${status}`).join(", ");
  const of = cell.schedule ? ` of ${number(cell.schedule.requests)} intended` : "";
  return [`${number(done)} ok`, `${of}, ${failed || "0 failed"}`.replace(/^,? /, "")];
}

function shown(cell) {
  const made = element("article", "cell");
  const source = cell.source ? ` (${cell.source})` : "";
  made.append(element("h2", "", `${cell.label}${source}: ${cell.state}`));
  const sample = cell.sample;
  if (sample || Object.keys(cell.ended).length) {
    const numbers = element("div", "numbers");
    const last = cell.latencies ? `of the last ${cell.latencies} that ended` : "none has ended";
    numbers.append(
      tile("level", number(sample?.level, 2), `${number(sample?.word_budget)} words`),
      tile("waiting / running", `${number(sample?.waiting)} / ${number(sample?.running)}`, "requests"),
      tile("latency p50 / p99", `${unit(cell.p50_s, "s", 1)} / ${unit(cell.p99_s, "s", 1)}`, last),
      tile("requests", ...requests(cell)),
      tile("energy so far", unit(sample?.energy_j, "J"), `warm-up included; now ${unit(sample?.power_w, "W")}`),
      tile("its own time", progress(cell), sample?.phase ?? ""),
    );
    made.append(numbers);
  }
  const times = cell.curves.time_s;
  if (times.length > 1) {
    const both = [...cell.curves.waiting, ...cell.curves.running].filter((value) => value !== null);
    const pictures = element("div", "curves");
    pictures.append(
      curves("level", times, [["level", cell.curves.level]], 1),
      curves("requests", times, [["waiting", cell.curves.waiting], ["running", cell.curves.running]], Math.max(1, ...both)),
    );
    made.append(pictures);
  }
  cell.notes.forEach((note) => made.append(element("p", "how", note)));
  return made;
}

function show(view) {
  document.title = `${view.cells_done}/${view.cells_planned} ${view.title}`;
  for (const name of ["title", "source", "state", "folder", "looked_at"]) {
    document.getElementById(name).textContent = view[name];
  }
  document.getElementById("tiles").replaceChildren(
    tile("cells done", `${view.cells_done} of ${view.cells_planned}`, `planned so far; ${view.cells_failed} failed or cut`),
    tile("time left", duration(view.left_s), view.left_how),
    tile("energy", unit(view.energy_j, "J"), view.energy_text),
  );
  document.getElementById("cells").replaceChildren(...view.open.map(shown));
  list("warnings", view.warnings);
  list("notes", view.notes);
}

async function look() {
  const silence = document.getElementById("silence");
  try {
    const answer = await fetch("view", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    silence.hidden = true;
  } catch (error) {
    silence.textContent = `The watcher does not answer (${error.message}): what stands here is old.`;
    silence.hidden = false;
  }
  setTimeout(look, PERIOD_MS);
}

look();
