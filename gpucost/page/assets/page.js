// @ts-check
"use strict";

/** @typedef {Record<string, any>} Row */

const form = /** @type {HTMLFormElement} */ (document.getElementById("form"));
const WAIT_MS = 60; // after the last key, before the page asks
const USUAL = /** @type {Row} */ ({ method: "full", software: "typical", optimize: "cost" }); // not worth saying
const NARROW = window.matchMedia("(max-width: 52rem)");
const NS = "http://www.w3.org/2000/svg";

/** @param {string} id @returns {HTMLElement} */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Make an element; texts are never read as markup.
 * @param {string} name @param {Row} [attributes] @param {...(Node|string)} children @returns {HTMLElement}
 */
function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** @param {string} name @param {Row} attributes @param {string} [text] @returns {SVGElement} */
function draw(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

const money = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const cents = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** @param {number} value */
const usd = (value) => (value >= 100 ? money : cents).format(value);
/** @param {number} value */
const days = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 3 });
/** @param {number} value */
const percent = (value) => `${Math.round(value * 100)}%`;
/** @param {string} word */
const plain = (word) => word.replaceAll("_", " ");

/** What is asked, as the address holds it: only what differs from an empty page. */
function asked() {
  const found = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (String(value).trim() && value !== USUAL[name]) found.set(name, String(value).trim());
  return found;
}

/** Fill the form from the address. */
function restore() {
  for (const [name, value] of new URLSearchParams(location.search)) {
    const field = form.elements.namedItem(name);
    if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true";
    else if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value;
  }
}

/** @param {string} name @param {URLSearchParams} query @param {AbortSignal} [signal] @returns {Promise<Row>} */
async function get(name, query, signal) {
  const answer = await fetch(`api/${name}?${query}`, { signal });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || "the server does not answer.");
  return found;
}

const shown = /** @type {{plan?: Row, own?: Row}} */ ({}); // the last answers, to draw again
let running = new AbortController();
let timer = 0;

/** Ask again: both questions at once, the older ones dropped. */
async function ask() {
  running.abort();
  running = new AbortController();
  const query = asked();
  history.replaceState(null, "", `?${query}`);
  for (const name of ["xlsx", "html"]) at(name).setAttribute("href", `export/estimate.${name}?${query}`);
  at("toml").setAttribute("href", `export/scenario.toml?${query}`);
  at("answer").setAttribute("aria-busy", "true");
  await Promise.all([
    get("plan", query, running.signal).then(showPlan).catch((error) => fail(error, "error", ["headline", "lead"])),
    get("own", query, running.signal).then(showOwn).catch((error) => fail(error, "own-error", ["own-headline"])),
  ]);
  at("answer").setAttribute("aria-busy", "false");
}

/** @param {Error} error @param {string} where @param {string[]} emptied */
function fail(error, where, emptied) {
  if (error.name === "AbortError") return;
  at(where).textContent = error.message;
  at(where).hidden = false;
  for (const id of emptied) at(id).textContent = "";
  const flag = /^--([a-z-]+)/.exec(error.message);
  const field = flag ? form.elements.namedItem(flag[1].replaceAll("-", "_")) : null;
  if (field instanceof HTMLElement) field.setAttribute("aria-invalid", "true");
}

/** @param {string} where */
function clear(where) {
  at(where).hidden = true;
  at(where).textContent = "";
}

/** @param {Row} found */
function showPlan(found) {
  clear("error");
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  at("headline").textContent = found.headline;
  at("lead").textContent = found.lead.slice(found.headline.length).trim();
  at("stamp").textContent = `Prices as of ${found.as_of}, catalog ${found.catalog_version}. Every change asks again.`;
  at("command").textContent = found.command;
  at("found").textContent = `${Math.min(found.rows.length, found.found)} of ${found.found} options; ranges are 80 %.`;
  showQuoted(found.quoted);
  at("warnings").hidden = !found.warnings.length;
  at("warnings").replaceChildren(...found.warnings.map((/** @type {string} */ text) => make("li", {}, text)));
  shown.plan = found;
  showOffers(found.rows, found.sources);
  showCurve(found.curve);
  showSources(found.sources, found.rows);
}

/** @param {Row|null} quoted */
function showQuoted(quoted) {
  at("quoted").hidden = !quoted;
  if (!quoted) return;
  const than = quoted.saving_usd >= 0 ? `${usd(quoted.saving_usd)} USD less` : `${usd(-quoted.saving_usd)} USD more`;
  at("quoted").textContent =
    `At your ${quoted.usd_per_gpu_hour} USD per GPU-hour the first option's ${quoted.gpus} × ${quoted.gpu} would cost ` +
    `${usd(quoted.cost_usd)} USD (${usd(quoted.cost_low_usd)} to ${usd(quoted.cost_high_usd)}), ${than} than listed.`;
}

/** @param {string[]} names @returns {HTMLElement} */
const headings = (names) =>
  make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name))));

/** @param {Row[]} rows @param {Row} sources */
function showOffers(rows, sources) {
  const body = make("tbody");
  for (const row of rows) {
    const bill = make("tr", { class: "bill", id: `bill-${row.rank}`, hidden: "" }, make("td", { colspan: 9 }, billOf(row, sources)));
    const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": bill.id, "aria-label": `Bill of option ${row.rank}` }, "bill");
    button.addEventListener("click", () => {
      bill.hidden = !bill.hidden;
      button.setAttribute("aria-expanded", String(!bill.hidden));
    });
    body.append(
      make("tr", {},
        make("td", { class: "number", "data-usd": row.cost_usd, title: `${cents.format(row.cost_usd)} USD` }, usd(row.cost_usd)),
        make("td", { class: "number" }, days(row.days)),
        make("td", {}, `${row.gpus} × ${row.gpu}`),
        make("td", {}, row.provider),
        make("td", {}, plain(row.option) + (row.term_months ? `, ${row.term_months} months` : "")),
        make("td", { class: "number" }, `${usd(row.cost_low_usd)} to ${usd(row.cost_high_usd)}`),
        make("td", {}, row.region || "any region"),
        make("td", { class: "number", title: `seen on ${row.price_observed_on}` }, `${row.age_days} d`),
        make("td", {}, button)),
      bill);
  }
  at("offers").replaceChildren(headings(["Cost, USD", "Days", "Cluster", "Provider", "Purchase", "Range, USD", "Region", "Price seen", "Bill"]), body);
}

/** @param {Row} row @param {Row} sources @returns {HTMLElement} */
function billOf(row, sources) {
  const lines = row.lines.map((/** @type {Row} */ line) => {
    const source = sources[line.source_id];
    const from = source ? `${source.publisher}, ${source.published_on || source.accessed_on || "undated"}` : line.status;
    return make("li", {}, `${line.name}: ${cents.format(line.cost_usd)} USD = ${line.quantity.toLocaleString("en-US", { maximumSignificantDigits: 6 })} ${line.unit} × ${line.unit_price_usd} USD (${from})`);
  });
  const notes = row.notes.map((/** @type {string} */ text) => make("li", {}, text));
  return make("ul", {}, ...lines, ...notes, make("li", {}, `Together ${cents.format(row.cost_usd)} USD; ${percent(row.mfu_fraction)} MFU; ${row.usd_per_gpu_hour} USD per GPU-hour, seen on ${row.price_observed_on}.`));
}

/** @param {Row} sources @param {Row[]} rows */
function showSources(sources, rows) {
  at("sources").replaceChildren(...Object.entries(sources).map(([id, source]) => {
    const used = rows.filter((row) => row.source_ids.includes(id)).map((row) => row.rank);
    const on = source.published_on || source.accessed_on || "undated";
    return make("li", {}, `${source.publisher}: ${source.title} (${on}); option${used.length > 1 ? "s" : ""} ${used.join(", ")}. ${source.locator || ""}`);
  }));
}

/** Ticks of a logarithmic axis. @param {number} low @param {number} high */
function ticks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of [1, 2, 5]) {
      const value = step * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  return found;
}

/** Width and height of a chart in its place, in pixels. @param {string} id @returns {[number, number]} */
const room = (id) => [Math.max(300, at(id).clientWidth), NARROW.matches ? 280 : 360];

/** @param {Row[]} curve */
function showCurve(curve) {
  const [[width, height], left, bottom, top, right] = [room("curve"), 70, 46, 30, 24];
  const body = make("tbody", {}, ...curve.map((row) => make("tr", {}, make("td", {}, String(row.gpus)), make("td", { class: "number" }, days(row.days)), make("td", { class: "number" }, usd(row.cost_usd)), make("td", { class: "number" }, `${usd(row.cost_low_usd)} to ${usd(row.cost_high_usd)}`))));
  at("curve-table").replaceChildren(headings(["GPUs", "Days", "Cost, USD", "Range"]), body);
  if (!curve.length) return at("curve").replaceChildren("No other size can be bought here.");
  const xs = curve.map((row) => row.days);
  const [x0, x1] = [Math.min(...xs) / 1.15, Math.max(...xs) * 1.15];
  const [y0, y1] = [Math.min(...curve.map((row) => row.cost_low_usd)) / 1.1, Math.max(...curve.map((row) => row.cost_high_usd)) * 1.1];
  const x = (/** @type {number} */ value) => left + ((Math.log(value) - Math.log(x0)) / (Math.log(x1) - Math.log(x0))) * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - ((Math.log(value) - Math.log(y0)) / (Math.log(y1) - Math.log(y0))) * (height - bottom - top);
  const best = curve.find((row) => row.chosen) || curve[0];
  const label = `Cost against days of the first offer at ${curve.length} sizes, from ${days(Math.min(...xs))} to ${days(Math.max(...xs))} days; ${best.gpus} GPUs take ${days(best.days)} days and ${usd(best.cost_usd)} USD.`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const value of ticks(x0, x1)) svg.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom }), draw("text", { class: "tick", x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, days(value)));
  for (const value of ticks(y0, y1)) svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), draw("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, usd(value)));
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "days"), draw("text", { x: 8, y: 18 }, "cost, USD"));
  let last = -Infinity;
  for (const row of [...curve].sort((one, other) => one.days - other.days)) {
    svg.append(draw("line", { class: "range", x1: x(row.days), x2: x(row.days), y1: y(row.cost_low_usd), y2: y(row.cost_high_usd) }));
    const dot = draw("circle", { class: row.chosen ? "dot chosen" : "dot", cx: x(row.days), cy: y(row.cost_usd), r: row.chosen ? 7 : 5 });
    dot.append(draw("title", {}, `${row.gpus} GPUs: ${days(row.days)} days, ${cents.format(row.cost_usd)} USD`));
    svg.append(dot);
    if (x(row.days) - last > 44 || row.chosen) {
      svg.append(draw("text", { x: x(row.days) + 9, y: y(row.cost_usd) - 9 }, `${row.gpus}`));
      last = x(row.days);
    }
  }
  at("curve").replaceChildren(svg);
}

/** @param {Row} found */
function showOwn(found) {
  clear("own-error");
  shown.own = found;
  at("own-headline").textContent = found.headline;
  const points = found.by_utilisation.filter((/** @type {Row} */ row) => row.own !== undefined && row.rent !== undefined);
  const body = make("tbody", {}, ...points.map((/** @type {Row} */ row) => make("tr", {}, make("td", {}, percent(row.utilisation_fraction)), make("td", { class: "number" }, usd(row.own)), make("td", { class: "number" }, usd(row.rent)))));
  at("own-table").replaceChildren(headings(["Hours in use", "Own, USD per GPU-month", "Rent, USD per GPU-month"]), body);
  const [[width, height], left, bottom, top, right] = [room("own"), 60, 46, 30, 24];
  const most = Math.max(...points.map((/** @type {Row} */ row) => Math.max(row.own, row.rent))) * 1.05 || 1;
  const x = (/** @type {number} */ value) => left + value * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - (value / most) * (height - bottom - top);
  const even = found.breakeven.utilisation_fraction;
  const label = even === null ? "Owning and renting by hours in use; the lines do not cross." : `Owning and renting by hours in use; owning is cheaper above ${percent(even)}.`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (let share = 0; share <= 1.0001; share += 0.2) svg.append(draw("line", { class: "grid", x1: x(share), x2: x(share), y1: top, y2: height - bottom }), draw("text", { class: "tick", x: x(share), y: height - bottom + 18, "text-anchor": "middle" }, percent(share)));
  const step = 10 ** Math.floor(Math.log10(most)) / (most / 10 ** Math.floor(Math.log10(most)) < 3 ? 2 : 1);
  for (let value = 0; value <= most; value += step) svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), draw("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, money.format(value)));
  for (const side of ["own", "rent"]) {
    svg.append(draw("polyline", { class: `line-${side}`, points: points.map((/** @type {Row} */ row) => `${x(row.utilisation_fraction)},${y(row[side])}`).join(" ") }));
    const end = points[points.length - 1];
    svg.append(draw("text", { x: width - right - 4, y: y(end[side]) - 8, "text-anchor": "end" }, side));
  }
  if (even !== null && even <= 1) {
    const side = even > 0.6 ? { x: x(even) - 5, "text-anchor": "end" } : { x: x(even) + 5 };
    svg.append(draw("line", { class: "mark", x1: x(even), x2: x(even), y1: top, y2: height - bottom }), draw("text", { ...side, y: height - bottom - 8 }, `even at ${percent(even)}`));
  }
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "hours in use"), draw("text", { x: 8, y: 18 }, "USD per GPU-month"));
  at("own").replaceChildren(svg);
}

/** @param {Row} choices */
function fill(choices) {
  for (const name of ["model", "gpu", "region", "provider"]) at(`${name}-list`).replaceChildren(...choices[name].map((/** @type {string} */ value) => make("option", { value })));
  for (const name of ["method", "software", "option", "optimize"]) {
    const select = /** @type {HTMLSelectElement} */ (form.elements.namedItem(name));
    select.append(...choices[name].map((/** @type {string} */ value) => make("option", { value }, plain(value))));
    if (name === "software") select.value = "typical";
  }
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = window.setTimeout(ask, WAIT_MS);
});
window.addEventListener("resize", () => {
  if (shown.plan) showCurve(shown.plan.curve);
  if (shown.own) showOwn(shown.own);
});
if (NARROW.matches) for (const part of form.querySelectorAll("details")) part.open = false;
window.addEventListener("popstate", () => { restore(); ask(); });
get("choices", new URLSearchParams()).then((choices) => { fill(choices); restore(); return ask(); }).catch((error) => fail(error, "error", []));
