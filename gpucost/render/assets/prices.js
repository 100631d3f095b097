"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const LAND = [ // rough outlines, longitude and latitude: enough to find one's way
  [[-168,66],[-140,70],[-95,72],[-80,62],[-56,52],[-66,45],[-75,38],[-81,26],[-97,26],[-97,18],[-88,16],[-83,9],[-78,8],[-92,14],[-106,22],[-114,31],[-124,40],[-125,49],[-150,60]],
  [[-78,8],[-62,10],[-50,1],[-35,-7],[-40,-22],[-58,-38],[-68,-54],[-74,-45],[-71,-20],[-81,-5]],
  [[-10,36],[-9,43],[-1,46],[-4,49],[4,52],[9,57],[6,62],[20,70],[40,67],[60,69],[105,77],[140,73],[180,68],[162,60],[142,54],[131,43],[122,39],[121,30],[110,20],[106,10],[100,3],[98,16],[90,22],[80,8],[73,20],[58,25],[52,13],[43,13],[35,29],[36,36],[27,37],[18,40],[12,44],[3,42]],
  [[-17,15],[-6,36],[10,37],[32,31],[43,11],[51,12],[40,-10],[35,-25],[20,-35],[13,-18],[9,4],[-8,5]],
  [[114,-22],[131,-12],[142,-11],[153,-27],[149,-38],[137,-33],[116,-35]],
  [[131,33],[141,36],[142,45],[138,38]], [[-6,50],[1,52],[-3,58],[-6,55]], [[95,5],[106,-6],[115,-8],[103,0]], [[173,-35],[178,-38],[168,-46]],
];
const TOP = 78, BOTTOM = -56;
const room = (id, most) => Math.min(at(id).clientWidth || most, most);  // one unit of a picture is one pixel: words keep their size
const across = (longitude) => (longitude + 170) / 350 * room("map", 1120);
const down = (latitude) => (TOP - latitude) / (TOP - BOTTOM) * 0.46 * room("map", 1120);
const usd = (value) => value >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "");
const families = ["on demand", "preemptible"];

function made(name, attributes, text) {
  const found = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

function chosen() {
  return { gpu: at("gpu").value, family: at("family").value, day: Number(at("day").value) };
}

function pointsOf(gpu, family) {
  return data.points.filter((point) => point[0] === gpu && point[1] === family);
}

function color(share) { // blue is cheap, vermilion is dear
  const mix = (a, b) => Math.round(a + (b - a) * share);
  return `rgb(${mix(0, 213)},${mix(114, 94)},${mix(178, 0)})`;
}

function drawMap(all, day) {
  const width = room("map", 1120);
  const svg = made("svg", { viewBox: `0 0 ${width} ${0.46 * width}`, role: "img", "aria-labelledby": "said" });
  for (const shape of LAND) svg.append(made("polygon", { class: "land", points: shape.map(([x, y]) => `${across(x)},${down(y)}`).join(" ") }));
  const prices = all.filter((point) => point[3]).map((point) => point[4]), low = Math.min(...prices), high = Math.max(...prices);
  const best = new Map();
  for (const point of all.filter((one) => one[5] === day)) {
    const place = data.places[point[3]] || data.places[String(point[3] || "").toUpperCase()];
    if (!place) continue;
    const key = place.join();
    if (!best.has(key) || point[4] < best.get(key).point[4]) best.set(key, { place, point });
  }
  const shown = [...best.values()].sort((a, b) => a.point[4] - b.point[4]).map((one) => ({ ...one, x: across(one.place[1]), y: down(one.place[0]) }));
  const taken = [];
  for (const { x, y, point } of shown) {
    const share = high > low ? Math.log(point[4] / low) / Math.log(high / low) : 0;
    const dot = made("circle", { cx: x, cy: y, r: width < 600 ? 4 : 7, fill: color(share), stroke: "#fff" });
    dot.append(made("title", {}, `${point[3]}: ${usd(point[4])} USD at ${point[2]}`));
    svg.append(dot);
  }
  for (const { x, y, point } of shown) {  // a price stands where no other price and no other circle is
    const free = shown.every((other) => other.x <= x || other.x > x + 46 || Math.abs(other.y - y) > 13);
    if (free && x + 40 < width && taken.every(([left, top]) => Math.abs(left - x) > 38 || Math.abs(top - y) > 13)) {
      svg.append(made("text", { x: x + 9, y: y + 4 }, usd(point[4])));
      taken.push([x, y]);
    }
  }
  at("map").replaceChildren(svg);
  const now = all.filter((one) => one[5] === day);
  const first = now.length ? now.reduce((a, b) => (b[4] < a[4] ? b : a)) : null;
  at("said").textContent = first
    ? `${data.days[day]}: ${best.size} places on the map; the cheapest GPU-hour is ${usd(first[4])} USD at ${first[2]}${first[3] ? ` in ${first[3]}` : ""}.`
    : `${data.days[day]}: no price is known.`;
}

function drawHistory(all, day) {
  const rows = data.days.map((_, number) => {
    const found = all.filter((point) => point[5] === number).map((point) => point[4]).sort((a, b) => a - b);
    return found.length ? [found[0], found[Math.floor(found.length / 2)], found[found.length - 1]] : null;
  });
  const width = room("history", 1120), every4 = Math.ceil(data.days.length / (width / 70) / 4) * 4;
  const svg = made("svg", { viewBox: `0 0 ${width} 260`, role: "img", "aria-label": "Cheapest, median and dearest price by quarter" });
  const every = rows.filter(Boolean).flat(), high = Math.max(...every, 0.01), low = Math.min(...every, high);
  const x = (number) => 60 + number / (data.days.length - 1) * (width - 90);
  const y = (value) => 220 - (high > low ? Math.log(value / low) / Math.log(high / low) : 0.5) * 200;
  svg.append(made("line", { class: "axis", x1: 60, x2: width - 30, y1: 225, y2: 225 }));
  for (const value of every.length ? [low, Math.sqrt(low * high), high] : []) svg.append(made("text", { x: 4, y: y(value) + 4 }, `$${usd(value)}`));
  data.days.forEach((name, number) => { if ((data.days.length - 1 - number) % every4 === 0) svg.append(made("text", { x: x(number) - 24, y: 245 }, name.slice(0, 7))); });
  ["#0072b2", "#6b6b6b", "#d55e00"].forEach((paint, part) => {
    const line = rows.map((row, number) => row && `${x(number)},${y(row[part])}`).filter(Boolean);
    svg.append(made("polyline", { points: line.join(" "), fill: "none", stroke: paint, "stroke-width": 2 }));
    rows.forEach((row, number) => { if (row) svg.append(made("circle", { cx: x(number), cy: y(row[part]), r: 3, fill: paint })); });
  });
  svg.append(made("line", { class: "now", x1: x(day), x2: x(day), y1: 10, y2: 225 }));
  at("history").replaceChildren(svg);
}

function draw() {
  const { gpu, family, day } = chosen(), all = pointsOf(gpu, family);
  at("shown-day").textContent = data.days[day];
  drawMap(all, day);
  drawHistory(all, day);
}

let order = [data.columns.indexOf("usd_per_gpu_hour"), 1];
function list() {
  const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const gpu = at("gpu").value, chip = data.columns.indexOf("gpu");
  const rows = data.offers.filter((row) => {  // words are sought among all accelerators
    const text = row.join(" ").toLowerCase();
    return words.length ? words.every((word) => text.includes(word)) : row[chip] === gpu;
  });
  const [place, sign] = order;
  rows.sort((a, b) => sign * (a[place] < b[place] ? -1 : a[place] > b[place] ? 1 : 0));
  at("found").textContent = `${rows.length} offers${words.length ? "" : ` of ${gpu}`}`;
  at("offers").replaceChildren(...rows.slice(0, 400).map((row) => {
    const line = document.createElement("tr");
    row.forEach((cell, number) => {
      const box = document.createElement("td");
      const name = data.columns[number];
      box.textContent = cell === null ? "–" : name === "usd_per_gpu_hour" ? usd(cell) : name === "stale" ? (cell ? "old" : "") : String(cell);
      box.className = typeof cell === "number" ? "number" : name;
      line.append(box);
    });
    return line;
  }));
}

const HEADS = { instance_type: "instance", usd_per_gpu_hour: "price ($/GPU-h)", observed_on: "seen", gpus: "GPUs", gpu: "GPU", stale: "age" };
data.columns.forEach((name, number) => {
  const head = document.createElement("th"), button = document.createElement("button");
  head.scope = "col";
  button.type = "button";
  button.textContent = HEADS[name] || name;
  button.addEventListener("click", () => {
    order = [number, order[0] === number ? -order[1] : 1];
    for (const other of at("heads").children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order[1] > 0 ? "ascending" : "descending");
    list();
  });
  head.append(button);
  at("heads").append(head);
});
for (const gpu of data.gpus) at("gpu").append(new Option(gpu, gpu));
at("day").max = data.days.length - 1;
at("day").value = data.days.length - 1;
for (const id of ["gpu", "family", "day"]) at(id).addEventListener("input", draw);
at("gpu").addEventListener("input", list);
addEventListener("resize", draw);
at("find").addEventListener("input", list);
draw();
list();
