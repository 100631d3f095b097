// @ts-check
"use strict";

/** @typedef {Record<string, any>} Row */

const form = /** @type {HTMLFormElement} */ (document.getElementById("form"));
const WAIT_MS = 30; // after the last key, before the page asks
const USUAL = /** @type {Row} */ ({ method: "full", software: "typical", optimize: "cost", weights: "auto" }); // not worth saying
const NARROW = window.matchMedia("screen and (max-width: 52rem)");
const NS = "http://www.w3.org/2000/svg";
const TABS = ["train", "serve", "own", "fit"];
const QUESTION = /** @type {Row} */ ({ train: "plan", serve: "serve", own: "own", fit: "fit" });
const MOST_BESIDE = 4;
const FAR = 4; // times the most of what can be ordered: what lies beyond is not drawn
const held = document.getElementById("kept"); // answers inside a copy of the page
const copies = /** @type {Row|null} */ (held ? JSON.parse(held.textContent || "{}") : null);

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
const tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const two = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });
const three = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

let coin = { code: "USD", usd: 1, on: "", sign: "$" }; // what amounts are written in: USD for one, its day
/** An amount, from USD. @param {number} value */
const usd = (value) => amount(value / coin.usd);
/** @param {number} value */
const amount = (value) => (Math.abs(value) >= 100 ? money.format(value) : Math.abs(value) >= 1 ? cents.format(value) : three.format(value));
/** An amount to the hundredth, from USD. @param {number} value */
const exact = (value) => cents.format(value / coin.usd);
/** An amount in a chart, from USD. @param {number} value */
const charted = (value) => dollars(value / coin.usd).replace("$", coin.sign);
/** @param {number} value */
const gb = (value) => (value >= 1 ? tenths.format(value) : two.format(value));
/** A number of days, in the digits of `lasting`. @param {number} days */
const inDays = (days) => (days >= 1 ? tenths : three).format(days);
/** How long a run takes. @param {number} days */
const lasting = (days) => (days >= 1 ? `${tenths.format(days)} days` : `${tenths.format(days * 24)} hours`);
/** @param {number} value */
const short = (value) => three.format(value);
/** @param {number} value */
const percent = (value) => (value > 0 && value < 0.001 ? "<0.1%" : value < 0.1 ? `${two.format(value * 100)}%` : `${Math.round(value * 100)}%`);
/** Write money in a chart: three digits, no prefix below a thousand (gpucost/render/money.py). @param {number} value */
function dollars(value) {
  const size = Number(Math.abs(value).toPrecision(3));
  const power = size >= 1000 ? Math.min(Math.floor(Math.log10(size) / 3 + 1e-9), 4) : 0;
  return `${value < 0 && size ? "-" : ""}$${three.format(size / 1000 ** power)}${["", "k", "M", "B", "T"][power]}`;
}
/** @param {string} word */
const plain = (word) => word.replaceAll("_", " ");
/** @param {Row} row */
const bought = (row) => plain(row.option) + (row.term_months ? `, ${row.term_months} months` : "");
/** @param {Row} row */
const machines = (row) => `${row.gpus.toLocaleString("en-US")} × ${row.gpu}`;

let tab = "train";
let copied = ""; // the question of a copy in sight
let beside = /** @type {string[]} */ ([]); // other questions, side by side with this one

/** What is asked, as the address holds it: only what differs from an empty page. */
function asked() {
  if (copies) return new URLSearchParams(copied); // its fields only show what was asked
  const found = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (String(value).trim() && value !== USUAL[name]) found.set(name, String(value).trim());
  return found;
}

/** The whole address: the question, the tab, and what it is compared with. */
function address() {
  const found = asked();
  if (tab !== "train") found.set("tab", tab);
  if (coin.code !== "USD") found.set("currency", coin.code);
  for (const other of beside) found.append("beside", other);
  return `?${found}`;
}

/** Fill the form from an address. @param {string} search */
function restore(search) {
  form.reset();
  usual();
  const all = new URLSearchParams(search);
  for (const [name, value] of all) {
    const field = form.elements.namedItem(name);
    if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true";
    else if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value;
  }
  for (const name of ["own_gpu", "own_gpus"]) if (!all.has(name)) /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = "";
  beside = all.getAll("beside").slice(0, MOST_BESIDE);
  mint(all.get("currency") || "USD");
  choose(TABS.includes(all.get("tab") || "") ? String(all.get("tab")) : "train");
  slide();
}

/** @param {string} name @param {URLSearchParams} query @param {AbortSignal} [signal] @returns {Promise<Row>} */
async function get(name, query, signal) {
  if (copies) {
    const kept = (copies[String(query)] || Object.values(copies)[0])[name];
    if (kept.error) throw Object.assign(new Error(kept.error), { said: kept.said, nearest: [] });
    return kept;
  }
  const answer = await fetch(`api/${name}?${query}`, { signal });
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error || "the server does not answer."), found);
  return found;
}

const shown = /** @type {Row} */ ({}); // the last answer of each tab, to draw again
const answers = /** @type {Row} */ ({}); // what each tab shows now: the question behind it
let running = new AbortController();
let timer = 0;
let settled = true; // whether the next change is a step that Back undoes

/** Ask again what the tab in sight shows; what was asked before is dropped. @param {boolean} [again] */
async function ask(again = false) {
  const query = asked();
  links(query);
  const name = tab;
  if (!again && answers[name] === String(query)) {
    show(name);
    return compare();
  }
  running.abort();
  running = new AbortController();
  at("answer").setAttribute("aria-busy", "true");
  try {
    const found = await get(QUESTION[name], query, running.signal);
    answers[name] = String(query);
    shown[name] = found;
    show(name);
  } catch (error) {
    const failure = /** @type {any} */ (error);
    if (failure.name === "AbortError") return;
    fail(failure);
  }
  at("answer").setAttribute("aria-busy", "false");
  await compare();
}

/** @param {URLSearchParams} query */
function links(query) {
  for (const name of ["xlsx", "html"]) at(name).setAttribute("href", `export/estimate.${name}?${query}`);
  at("toml").setAttribute("href", `export/scenario.toml?${query}`);
  at("alone").setAttribute("href", `export/plan.html?${query}`);
}

const FREED = /** @type {Row} */ ({ deadline: "No deadline", budget: "No budget", gpus: "Any number of GPUs", strict_prices: "Old prices too", option: "Any way to buy", gpu: "Any GPU", tpot: "Any time per token", tokens_per_month: "Any load" });

/** Say why there is no answer, dim the old one, and offer the nearest questions that have one. @param {any} error */
function fail(error) {
  at("error").textContent = `${error.said || error.message}`.replace(/^\w/, (letter) => letter.toUpperCase());
  at("refused").hidden = false;
  at("shown").classList.add("stale");
  at("shown").hidden = !shown[tab];
  for (const id of ["headline", "rest"]) at(id).textContent = "";
  const offers = (error.nearest || []).map((/** @type {Row} */ change) => {
    const what = change.value && change.value !== "none" ? `${named(change.field)}: ${change.value}` : FREED[change.field] || `Any ${named(change.field).toLowerCase()}`;
    const button = make("button", { type: "button", class: "act" }, what);
    button.addEventListener("click", () => set(change.field, change.value));
    return make("span", { class: "offer" }, button, ` ${SAYS[tab](change.answer)}${change.orderable ? "" : " Nobody has listed this offer lately: ask the seller before you plan on it."}`);
  });
  at("nearest").replaceChildren(...offers);
  at("nearest").hidden = !offers.length;
  const flag = /^--([a-z-]+)/.exec(error.message);
  const advised = (error.nearest || [])[0];
  const field = form.elements.namedItem(flag ? flag[1].replaceAll("-", "_") : advised ? advised.field : "");
  if (field instanceof HTMLElement) field.setAttribute("aria-invalid", "true");
}

/** The label of a field. @param {string} name */
function named(name) {
  const field = form.elements.namedItem(name);
  const label = field instanceof HTMLElement ? field.closest("label") : null;
  return label ? String(label.firstChild?.textContent).trim() || plain(name) : plain(name);
}

/** Set a field as a person would. @param {string} name @param {string} value */
function set(name, value) {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = Boolean(value);
  else if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value;
  if (field instanceof HTMLElement) field.dispatchEvent(new Event("input", { bubbles: true }));
  settled = true;
}

/** @param {string} name */
function show(name) {
  at("refused").hidden = true;
  at("error").textContent = "";
  at("nearest").replaceChildren();
  at("shown").classList.remove("stale");
  at("shown").hidden = false;
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  /** @type {Row} */ ({ train: showPlan, serve: showServe, own: showOwn, fit: showFit })[name](shown[name]);
  showShared(shown[name]);
  describe(shown[name]).catch(() => {}); // the answer stands without it
  slide();
}

/** What every tab has: its headline, warnings, sources, command. @param {Row|undefined} found */
function showShared(found) {
  if (!found) return;
  const rest = sentences(found.run ? `Kept busy with other work as well: ${found.headline}` : found.headline || found.lead).slice(found.run ? 0 : 1);
  at("headline").textContent = SAYS[tab](found);
  at("rest").textContent = rest.filter((text) => coin.code === "USD" || !/USD|\$/.test(text)).join(" "); // those amounts are dollars
  if (copies && found.as_of) stamp(found);
  at("command").textContent = found.command || "";
  at("warnings").hidden = !found.warnings.length;
  at("warnings").replaceChildren(...found.warnings.map((/** @type {string} */ text) => make("li", {}, text)));
  at("sources-part").hidden = !found.sources;
  if (found.sources) showSources(found.sources, found.rows);
}

/** @param {string} text */
const sentences = (text) => text.split(/(?<=[.!?])\s+(?=\S)/);
/** @param {Row} row */
const offered = (row) => `${machines(row)} at ${row.provider}${row.region ? ` in ${row.region}` : ""}, ${bought(row)}`;

/** The answer of each tab in a sentence, in the figures of its cards. */
const SAYS = /** @type {Record<string, (found: Row) => string>} */ ({
  train: ({ rows: [best] }) => `${offered(best)}: about ${usd(best.cost_usd)} ${coin.code} and ${lasting(best.days)}.`,
  serve: ({ rows: [best] }) => `${offered(best)}: about ${usd(best.usd_per_month)} ${coin.code} a month, ${usd(best.usd_per_mtok)} ${coin.code} per million tokens.`,
  own: ({ run, headline }) => {
    if (!run) return sentences(headline)[0];
    const pays = run.runs === null ? "owning them is never as cheap" : run.runs <= 1 ? "owning them pays with this run alone" : `owning them pays from ${money.format(Math.ceil(run.runs))} such runs on; for this run alone, rent`;
    return `This run keeps ${machines(run)} busy for ${lasting(run.days)}, ${percent(run.share_fraction)} of ${short(run.years)} years, and costs ${usd(run.cost_usd)} ${coin.code} rented at ${run.provider}: ${pays}.`;
  },
  fit: (found) => `${found.fits ? "Fits" : "Does not fit"}: ${gb(found.needed_gb)} of ${gb(found.usable_gb)} GB usable on each of ${machines(found)}.`,
});

/** Say of which day the prices are. @param {Row} found */
function stamp(found) {
  at("stamp").textContent = `Prices as of ${found.as_of}${found.catalog_version ? `, catalog ${found.catalog_version}` : ""}.`;
}

/** @param {string} id @param {[string, string, string?][]} cards */
function showCards(id, cards) {
  at(id).replaceChildren(...cards.map(([label, value, small]) => make("div", {}, make("dt", {}, label), make("dd", {}, value, ...(small ? [make("small", {}, small)] : [])))));
}

/** @param {Row} found */
function showPlan(found) {
  const best = found.rows[0];
  at("lead").textContent = found.lead.slice(found.headline.length).trim() || found.lead;
  at("found").textContent = `${Math.min(found.rows.length, found.found)} of ${found.found} options; ranges are 80 %.`;
  showCards("train-cards", [
    ["Cost of the run", `${usd(best.cost_usd)} ${coin.code}`, `${usd(best.cost_low_usd)} to ${usd(best.cost_high_usd)}`],
    ["Budget", `${usd(best.budget_usd)} ${coin.code}`, "enough in nine of ten cases"],
    ["Time", lasting(best.days), `${lasting(best.days_low)} to ${lasting(best.days_high)}`],
    ["On", machines(best), `${best.provider}, ${bought(best)}`],
    ["A GPU-hour", `${exact(best.usd_per_gpu_hour)} ${coin.code}`, `seen ${best.age_days} days ago`],
    ["Speed", `${percent(best.mfu_fraction)} MFU`, `of the peak, in training steps`],
  ]);
  showQuoted(found.quoted);
  showOffers(found.rows, found.sources);
  showPoints("pareto", "train-said", "pareto-table", found.points, "days", "cost_usd", ["days", `cost, ${coin.code}`], found.quoted);
  showCurve(found.curve);
  showMap("map", found.places, "cost_usd", coin.code);
  showRegions("regions", found.regions, "cost_usd", `Cost, ${coin.code}`, "days", "Days");
}

/** Write the cheapest offer of each country with a bar. @param {string} id @param {Row[]} regions @param {string} figure @param {string} title @param {string} other @param {string} second */
function showRegions(id, regions, figure, title, other, second) {
  const seen = regions.slice(0, 40);
  const most = Math.max(...seen.map((row) => row[figure])) || 1;
  const rows = seen.map((row) => {
    const bar = draw("svg", { width: 90, height: 14, viewBox: "0 0 90 14", "aria-hidden": "true" });
    bar.append(draw("rect", { class: row.orderable ? "bar" : "bar unsure", x: 0, y: 2, width: Math.max((89 * row[figure]) / most, 1), height: 10 }));
    return [placed(row), usd(row[figure]), bar, short(row[other]), machines(row), row.provider, `${row.offers.toLocaleString("en-US")}${row.orderable ? "" : ", none verified"}`];
  });
  table(id, ["Where", title, "", second, "Cluster", "Provider", "Offers"], rows, [1, 3, 6], [2, 5, 6]);
  at(id).querySelectorAll("th")[2].append(make("span", { class: "unseen" }, `${title}, as a bar`));
}

const [MAP_WIDTH, MAP_HEIGHT] = [720, 280]; // of the outline in the page: half a degree is a unit

/**
 * Draw the regions on the map, the cheaper the bluer; the cheapest are named where there is room.
 * @param {string} id @param {Row} places @param {string} figure @param {string} unit
 */
function showMap(id, places, figure, unit) {
  at(id).closest("section")?.toggleAttribute("hidden", !places.rows.length);
  if (!places.rows.length) return;
  const rows = named_rows(places);
  const [width] = room(id);
  const scale = width / MAP_WIDTH, key = 40, height = MAP_HEIGHT * scale + key;
  const x = (/** @type {Row} */ row) => 2 * (row.longitude + 180) * scale, y = (/** @type {Row} */ row) => 2 * (80 - row.latitude) * scale;
  const figures = rows.map((row) => row[figure]);
  const [low, high] = [Math.min(...figures), Math.max(...figures)];
  const share = (/** @type {number} */ value) => (high > low ? Math.log(value / low) / Math.log(high / low) : 0);
  const first = rows.find((row) => row.orderable) ?? rows[0];
  const text = `${rows.length} regions with offers bound to them; the cheapest that can be ordered is ${first.region} with ${usd(first[figure])} ${unit} at ${first.provider}, the dearest costs ${usd(high)} ${unit}. An offer that holds in any region stands in the table alone; a ring is a quote that nobody verified.`;
  at(`${id}-said`).textContent = text;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text });
  svg.append(draw("use", { href: "#land", class: "land", width, height: MAP_HEIGHT * scale }));
  const radius = NARROW.matches ? 4 : 6;
  for (const row of [...rows].sort((a, b) => b[figure] - a[figure])) {
    const dot = draw("circle", { class: "place", cx: x(row), cy: y(row), r: radius });
    const color = hue(share(row[figure]));
    dot.style.stroke = row.orderable ? "var(--card)" : color;
    dot.style.fill = row.orderable ? color : "none";
    dot.append(draw("title", {}, `${row.region}: ${usd(row[figure])} ${unit}, ${machines(row)} at ${row.provider}, ${plain(row.option)}${row.orderable ? "" : ", not verified"}`));
    svg.append(dot);
  }
  const taken = /** @type {[number, number][]} */ ([]);
  for (const row of rows.filter((one) => one.orderable).slice(0, NARROW.matches ? 4 : 40)) {
    const [left, top] = [x(row) + radius + 3, y(row) + 4];
    const free = taken.every(([other, line]) => Math.abs(other - left) > 58 || Math.abs(line - top) > 14) && left + 50 < width;
    const clear = rows.every((one) => one === row || x(one) + radius < left || x(one) - radius > left + 46 || Math.abs(y(one) - y(row)) > 12);
    if (!free || !(clear || row === first)) continue;
    svg.append(draw("text", { class: row === first ? "name" : "price", x: left, y: top }, charted(row[figure])));
    taken.push([left, top]);
  }
  const legend = NARROW.matches ? 120 : 220;
  for (let part = 0; part < 11; part++) {
    const cell = draw("rect", { x: 10 + (part * legend) / 11, y: height - 30, width: legend / 11 + 0.5, height: 9 });
    cell.style.fill = hue(part / 10);
    svg.append(cell);
  }
  svg.append(draw("text", { class: "tick", x: 10, y: height - 7 }, charted(low)), draw("text", { class: "tick", x: 10 + legend, y: height - 7, "text-anchor": "end" }, charted(high)), draw("text", { class: "tick", x: 18 + legend, y: height - 21 }, unit));
  at(id).replaceChildren(svg);
}

/** The colour between cheap and dear, which any eye can tell apart. @param {number} share */
const hue = (share) => (share < 0.5 ? `color-mix(in oklab, var(--own) ${Math.round(100 - 200 * share)}%, var(--between))` : `color-mix(in oklab, var(--between) ${Math.round(200 - 200 * share)}%, var(--rent))`);

/** Rows that came without their names. @param {Row} columns @returns {Row[]} */
const named_rows = (columns) => columns.rows.map((/** @type {any[]} */ cells) => Object.fromEntries(columns.names.map((/** @type {string} */ name, /** @type {number} */ number) => [name, cells[number]])));

const places = new Intl.DisplayNames(["en"], { type: "region", fallback: "code" });

/** The name of a country or region, with the region that is cheapest there. @param {Row} row */
function placed(row) {
  const name = /^[A-Z]{2}$/.test(row.place) ? places.of(row.place) || row.place : row.place;
  return row.region && row.region !== row.place && row.region !== name ? `${name} (${row.region})` : name;
}

/** @param {Row|null} quoted */
function showQuoted(quoted) {
  at("quoted").hidden = !quoted;
  if (!quoted) return;
  const than = quoted.saving_usd >= 0 ? `${usd(quoted.saving_usd)} ${coin.code} less` : `${usd(-quoted.saving_usd)} ${coin.code} more`;
  at("quoted").textContent =
    `At your ${quoted.usd_per_gpu_hour} USD per GPU-hour the first option's ${quoted.gpus} × ${quoted.gpu} would cost ` +
    `${usd(quoted.cost_usd)} ${coin.code} (${usd(quoted.cost_low_usd)} to ${usd(quoted.cost_high_usd)}), ${than} than listed.`;
}

/** @param {string[]} names @param {number[]} [right] @returns {HTMLElement} */
const headings = (names, right = []) =>
  make("thead", {}, make("tr", {}, ...names.map((name, column) => make("th", { scope: "col", class: right.includes(column) ? "number" : null }, name))));

/**
 * Write a table of texts; a narrow screen leaves out the columns `less`.
 * @param {string} id @param {string[]} names @param {(string|Node)[][]} rows @param {number[]} right @param {number[]} [less]
 */
function table(id, names, rows, right, less = []) {
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, column) => make("td", { class: right.includes(column) ? "number" : null }, cell)))));
  at(id).replaceChildren(headings(names, right), body);
  leave(id, less);
}

/** Mark the columns that a narrow screen leaves out. @param {string} id @param {number[]} less */
function leave(id, less) {
  for (const row of /** @type {HTMLTableElement} */ (at(id)).rows) for (const column of less) if (row.cells.length > column) row.cells[column].classList.add("less");
}

/** @param {Row[]} rows @param {Row} sources */
function showOffers(rows, sources) {
  const body = make("tbody");
  const look = (/** @type {Row} */ row) => [usd(row.cost_usd), machines(row), row.provider, bought(row), row.region].join();
  const alike = (/** @type {Row} */ row) => rows.filter((other) => look(other) === look(row)).length > 1; // only its machine tells it apart
  for (const row of rows) {
    const bill = make("tr", { class: "bill", id: `bill-${row.rank}`, hidden: "" }, make("td", { colspan: 9 }, billOf(row, sources)));
    const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": bill.id, "aria-label": `Bill of option ${row.rank}` }, "bill");
    button.addEventListener("click", () => {
      bill.hidden = !bill.hidden;
      button.setAttribute("aria-expanded", String(!bill.hidden));
    });
    body.append(
      make("tr", {},
        make("td", { class: "number", "data-usd": row.cost_usd, title: `${exact(row.cost_usd)} ${coin.code}` }, usd(row.cost_usd)),
        make("td", { class: "number" }, inDays(row.days)),
        make("td", { class: "whole" }, machines(row), ...(alike(row) ? [make("small", {}, row.instance_type)] : [])),
        make("td", {}, row.provider),
        make("td", {}, bought(row)),
        make("td", { class: "number" }, `${usd(row.cost_low_usd)} to ${usd(row.cost_high_usd)}`),
        make("td", {}, row.region || "any region"),
        make("td", { class: "number", title: `seen on ${row.price_observed_on}` }, `${row.age_days} d`),
        make("td", { class: "screen" }, button)),
      bill);
  }
  const heads = headings([`Cost, ${coin.code}`, "Days", "Cluster", "Provider", "Purchase", `Range, ${coin.code}`, "Region", "Price seen", "Bill"], [0, 1, 5, 7]);
  heads.querySelectorAll("th")[8].classList.add("screen");
  at("offers").replaceChildren(heads, body);
  leave("offers", [4, 5, 6, 7]);
}

/** @param {Row} row @param {Row} sources @returns {HTMLElement} */
function billOf(row, sources) {
  const lines = row.lines.map((/** @type {Row} */ line) => {
    const source = sources[line.source_id];
    const from = source ? `${source.publisher}, ${source.published_on || source.accessed_on || "undated"}` : line.status;
    return make("li", {}, `${line.name}: ${exact(line.cost_usd)} ${coin.code} = ${line.quantity.toLocaleString("en-US", { maximumSignificantDigits: 6 })} ${line.unit} × ${coin.usd === 1 ? line.unit_price_usd : usd(line.unit_price_usd)} ${coin.code} (${from})`);
  });
  const notes = row.notes.map((/** @type {string} */ text) => make("li", {}, text));
  return make("ul", {}, ...lines, ...notes, make("li", {}, `Together ${exact(row.cost_usd)} ${coin.code}; ${percent(row.mfu_fraction)} MFU; ${exact(row.usd_per_gpu_hour)} ${coin.code} per GPU-hour, seen on ${row.price_observed_on}.`));
}

/** Where a source stands, as a link where it has an address. @param {Row} source @returns {Node|string} */
function linked(source) {
  if (!source.href) return source.locator || "";
  return make("a", { href: source.href, rel: "noreferrer noopener", target: "_blank" }, source.locator);
}

/** @param {Row} sources @param {Row[]} rows */
function showSources(sources, rows) {
  at("sources").replaceChildren(...Object.entries(sources).map(([id, source]) => {
    const used = rows.filter((row) => row.source_ids.includes(id)).map((row) => row.rank);
    const on = source.published_on || source.accessed_on || "undated";
    return make("li", {}, `${source.publisher}: ${source.title} (${on}); option${used.length > 1 ? "s" : ""} ${used.join(", ")}. `, linked(source));
  }));
}

/** Ticks of a logarithmic axis, at least two however short it is. @param {number} low @param {number} high */
function ticks(low, high) {
  for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); power++)
      for (const step of steps) {
        const value = Number((step * 10 ** power).toPrecision(3));
        if (value >= low && value <= high) found.push(value);
      }
    if (found.length >= 4) return found;
  }
  const step = 10 ** Math.floor(Math.log10((high - low) / 2));
  const fine = [];
  const each = (high - low) / step > 8 ? 2 * step : step;
  for (let value = Math.ceil(low / each) * each; value <= high; value += each) fine.push(Number(value.toPrecision(6)));
  return fine.length > 1 ? fine : [low, high];
}

/** Width and height of a chart in its place, in pixels. @param {string} id @returns {[number, number]} */
const room = (id) => [Math.max(280, at(id).clientWidth || at("answer").clientWidth - 10), NARROW.matches ? 280 : 360];

/**
 * Make a chart with two logarithmic axes, its grid and its labels.
 * @param {string} id @param {[number, number]} xs @param {[number, number]} ys @param {string[]} titles @param {string} label
 * @param {(value: number) => string} write
 */
function axes(id, xs, ys, titles, label, write = charted) {
  const [[width, height], left, bottom, top, right] = [room(id), 74, 46, 30, 24];
  const [[x0, x1], [y0, y1]] = [xs, ys];
  const x = (/** @type {number} */ value) => left + ((Math.log(value) - Math.log(x0)) / (Math.log(x1) - Math.log(x0))) * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - ((Math.log(value) - Math.log(y0)) / (Math.log(y1) - Math.log(y0))) * (height - bottom - top);
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  let last = -Infinity;
  for (const value of ticks(x0, x1)) {
    svg.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom }));
    if (x(value) - last < 44) continue;
    svg.append(draw("text", { class: "tick", x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, short(value)));
    last = x(value);
  }
  const scale = write === charted ? coin.usd : 1;
  for (const value of ticks(y0 / scale, y1 / scale).map((one) => one * scale)) svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), draw("text", { class: "tick y", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, write(value)));
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, titles[0]), draw("text", { x: 8, y: 18 }, titles[1]));
  return { svg, x, y, width, right };
}

/**
 * Draw every offer as a point, those that one can order filled, and the front; write them as a table.
 * @param {string} id @param {string} said @param {string} tableId @param {Row} points @param {string} across @param {string} up
 * @param {string[]} titles @param {Row|null} [quoted]
 */
function showPoints(id, said, tableId, points, across, up, titles, quoted = null) {
  const all = named_rows(points);
  const sure = all.filter((/** @type {Row} */ row) => row.orderable);
  const front = all.filter((/** @type {Row} */ row) => row.front).sort((/** @type {Row} */ a, /** @type {Row} */ b) => a[across] - b[across]);
  const low = (/** @type {string} */ key) => Math.min(...all.map((/** @type {Row} */ row) => row[key]));
  const most = (/** @type {Row[]} */ rows, /** @type {string} */ key) => Math.max(...rows.map((row) => row[key]));
  // quotes that nobody verified, far from all that can be ordered, would press the rest together
  const high = (/** @type {string} */ key) => (sure.length ? Math.min(most(all, key), FAR * most(sure, key)) : most(all, key));
  const inside = all.filter((/** @type {Row} */ row) => row[across] <= high(across) && row[up] <= high(up));
  const lowest = Math.min(low(up), quoted ? quoted.cost_usd : Infinity);
  const cheap = front[front.length - 1] || all[0], fast = front[0] || all[0];
  const off = all.length - inside.length;
  const text = `${all.length.toLocaleString("en-US")} points; ${sure.length.toLocaleString("en-US")} can be ordered (filled), the others are quotes that nobody verified. ` +
    (front.length ? `The line joins the best trade-offs (nothing is both cheaper and faster), from ${machines(cheap)} at ${cheap.provider} (${usd(cheap[up])} ${coin.code}, ${short(cheap[across])} ${titles[0]}) to ${machines(fast)} at ${fast.provider} (${usd(fast[up])} ${coin.code}, ${short(fast[across])} ${titles[0]}).` : "") + (off ? ` ${off.toLocaleString("en-US")} of the quotes lie beyond the edge of the picture.` : "");
  at(said).textContent = text;
  const { svg, x, y, width, right } = axes(id, [low(across) / 1.15, high(across) * 1.15], [lowest / 1.25, high(up) * 1.25], titles, text);
  const step = front.map((/** @type {Row} */ row, /** @type {number} */ number) => `${number ? `H${x(row[across])}V${y(row[up])}` : `M${x(row[across])},${y(row[up])}`}`).join("");
  if (front.length > 1) svg.append(draw("path", { class: "front", d: step }));
  for (const row of inside.sort((/** @type {Row} */ a, /** @type {Row} */ b) => Number(a.orderable) - Number(b.orderable) || Number(a.front) - Number(b.front))) {
    const dot = draw("circle", { class: row.orderable ? (row.front ? "dot chosen" : "dot") : "dot quote", cx: x(row[across]), cy: y(row[up]), r: row.front ? 5.5 : 4.5 });
    dot.append(draw("title", {}, `${machines(row)} at ${row.provider}${row.region ? ` in ${row.region}` : ""}, ${plain(row.option)}: ${usd(row[up])} ${coin.code}, ${short(row[across])} ${titles[0]}, price seen ${row.age_days} days ago${row.orderable ? "" : ", not verified"}`));
    svg.append(dot);
  }
  for (const [row, over] of /** @type {[Row, boolean][]} */ (cheap === fast ? [[cheap, false]] : [[cheap, false], [fast, true]])) {
    const px = x(row[across]);
    const anchor = px > width - 150 - right ? "end" : px < 190 ? "start" : "middle";
    svg.append(draw("text", { class: "name", x: anchor === "end" ? px + 8 : anchor === "start" ? px - 4 : px, y: y(row[up]) + (over ? -11 : 20), "text-anchor": anchor }, `${machines(row)}, ${row.provider}`));
  }
  at(id).replaceChildren(svg);
  const box = /** @type {HTMLDetailsElement} */ (at(tableId).closest("details"));
  box.ontoggle = () => { if (box.open) listPoints(tableId, all, across, up, titles); };
  if (box.open) listPoints(tableId, all, across, up, titles);
}

/** Write points as a table, when somebody opens it. @param {string} tableId @param {Row[]} all @param {string} across @param {string} up @param {string[]} titles */
function listPoints(tableId, all, across, up, titles) {
  const listed = [...all].sort((a, b) => a[up] - b[up]).slice(0, 200);
  table(tableId, [titles[1], titles[0], "Cluster", "Provider", "Purchase", "Can be ordered"], listed.map((row) => [usd(row[up]), short(row[across]), machines(row), row.provider, plain(row.option), row.orderable ? (row.front ? "yes, front" : "yes") : "no"]), [0, 1], [4]);
}

/** @param {Row[]} curve */
function showCurve(curve) {
  at("curve-title").closest("section")?.toggleAttribute("hidden", curve.length < 2);
  if (curve.length < 2) return;
  const rows = curve.map((row) => [String(row.gpus), inDays(row.days), usd(row.cost_usd), `${usd(row.cost_low_usd)} to ${usd(row.cost_high_usd)}`]);
  table("curve-table", ["GPUs", "Days", `Cost, ${coin.code}`, "Range"], rows, [0, 1, 2, 3]);
  const xs = curve.map((row) => row.days);
  const best = curve.find((row) => row.chosen) || curve[0];
  const label = `Cost against days of the first offer at ${curve.length} sizes, from ${short(Math.min(...xs))} to ${short(Math.max(...xs))} days; ${best.gpus} GPUs take ${short(best.days)} days and ${usd(best.cost_usd)} ${coin.code}.`;
  const { svg, x, y } = axes("curve", [Math.min(...xs) / 1.2, Math.max(...xs) * 1.2], [Math.min(...curve.map((row) => row.cost_low_usd)) / 1.1, Math.max(...curve.map((row) => row.cost_high_usd)) * 1.1], ["days", `cost, ${coin.code}`], label);
  let last = -Infinity;
  for (const row of [...curve].sort((one, other) => one.days - other.days)) {
    svg.append(draw("line", { class: "range", x1: x(row.days), x2: x(row.days), y1: y(row.cost_low_usd), y2: y(row.cost_high_usd) }));
    const dot = draw("circle", { class: row.chosen ? "dot chosen" : "dot", cx: x(row.days), cy: y(row.cost_usd), r: row.chosen ? 7 : 5 });
    dot.append(draw("title", {}, `${row.gpus} GPUs: ${short(row.days)} days, ${charted(row.cost_usd)}`));
    svg.append(dot);
    if (x(row.days) - last > 44 || row.chosen) {
      svg.append(draw("text", { x: x(row.days) + 9, y: y(row.cost_usd) - 9 }, `${row.gpus}`));
      last = x(row.days);
    }
  }
  at("curve").replaceChildren(svg);
}

// --- Scenarios side by side.

const PLAIN = /** @type {Row} */ ({
  strict_prices: () => "no old prices",
  gpu: (/** @type {string} */ value) => value,
  gpus: (/** @type {string} */ value) => `${value} GPU${value === "1" ? "" : "s"}`,
  option: plain, region: (/** @type {string} */ value) => `in ${value}`, provider: (/** @type {string} */ value) => `at ${value}`,
});

/** Say in a few words what is asked. @param {URLSearchParams} query */
function named_question(query) {
  const parts = [query.get("model") || "", query.get("tokens") || ""];
  for (const [name, value] of query) if (!["model", "tokens"].includes(name)) parts.push((PLAIN[name] || ((/** @type {string} */ text) => `${named(name).toLowerCase()} ${text}`))(value));
  return parts.filter(Boolean).join(", ");
}

/** What a tab sets side by side: the figure that decides with its range and unit, and the cells beside it. */
const BESIDE = () => /** @type {Record<string, {heads: string[], right: number[], less: number[], of: (found: Row) => {value: number, low: number, high: number, unit: string, cells: string[], also: (other: Row) => string}}>} */ ({
  train: {
    heads: [`Cost, ${coin.code}`, "Days", "On"], right: [1, 2], less: [],
    of: ({ rows: [best] }) => ({ value: best.cost_usd, low: best.cost_low_usd, high: best.cost_high_usd, unit: coin.code, cells: [usd(best.cost_usd), inDays(best.days), `${machines(best)}, ${best.provider}`], also: ({ rows: [here] }) => apart(best.days - here.days, here.days, "days", "later", "sooner") }),
  },
  serve: {
    heads: [`${coin.code} per million tokens`, `${coin.code} a month`, "ms per token", "On"], right: [1, 2, 3], less: [2],
    of: ({ rows: [best] }) => ({ value: best.usd_per_mtok, low: best.usd_per_mtok_low, high: best.usd_per_mtok_high, unit: `${coin.code} per million tokens`, cells: [usd(best.usd_per_mtok), usd(best.usd_per_month), short(best.tpot_ms), `${machines(best)}, ${best.provider}`], also: ({ rows: [here] }) => apart(best.tpot_ms - here.tpot_ms, here.tpot_ms, "ms per token", "slower", "faster") }),
  },
  own: {
    heads: [`Owned, ${coin.code} per GPU-hour`, `Rented, ${coin.code} per GPU-hour`, "Such runs until owning pays", "On"], right: [1, 2, 3], less: [],
    of: (found) => ({ value: found.own_usd_per_gpu_hour, low: found.own_usd_per_gpu_hour, high: found.own_usd_per_gpu_hour, unit: `${coin.code} per owned GPU-hour`, cells: [exact(found.own_usd_per_gpu_hour), exact(found.rent_usd_per_gpu_hour), found.run ? (found.run.runs === null ? "never" : short(Math.ceil(found.run.runs))) : "–", found.gpu ? machines(found) : "–"], also: (here) => apart(found.rent_usd_per_gpu_hour - here.rent_usd_per_gpu_hour, here.rent_usd_per_gpu_hour, `${coin.code} per rented GPU-hour`, "more", "less") }),
  },
  fit: {
    heads: ["GB needed", "GB usable", "Fits", "On"], right: [1, 2], less: [],
    of: (found) => ({ value: found.needed_gb, low: found.needed_low_gb, high: found.needed_high_gb, unit: "GB on each GPU", cells: [gb(found.needed_gb), gb(found.usable_gb), found.fits ? "yes" : "no", machines(found)], also: () => "" }),
  },
});

/** Say how far a figure is from another one, or nothing where they look the same. @param {number} by @param {number} from @param {string} unit @param {string} more @param {string} less */
function apart(by, from, unit, more, less) {
  if (!from || Math.abs(by / from) < 0.0005) return "";
  return `${unit.startsWith(coin.code) ? usd(Math.abs(by)) : amount(Math.abs(by))} ${unit} ${by > 0 ? more : less}`;
}

/** Tell whether two addresses ask the same, in whatever order. @param {string} one @param {string} other */
function same(one, other) {
  const [a, b] = [one, other].map((text) => new URLSearchParams(text));
  a.sort();
  b.sort();
  return String(a) === String(b);
}

/** Name what two questions differ in. @param {URLSearchParams} other @param {URLSearchParams} now */
function differences(other, now) {
  const low = (/** @type {string} */ name) => (name === "gpus" ? "number of GPUs" : name === "gpu" ? "GPU" : named(name).toLowerCase());
  const names = [...new Set([...other.keys(), ...now.keys()])].filter((name) => (other.get(name) || "") !== (now.get(name) || ""));
  const said = (/** @type {string} */ name, /** @type {URLSearchParams} */ query) => {
    const field = form.elements.namedItem(name), value = query.get(name) || USUAL[name];
    if (name === "strict_prices") return value ? "left out" : "in";
    return value ? plain(value) : (field instanceof HTMLInputElement && field.placeholder) || "any";
  };
  return names.map((name) => `${name === "strict_prices" ? "old prices" : low(name)} ${said(name, other)} instead of ${said(name, now)}`).join("; ");
}

/** Show this question and those kept beside it, each with what the tab in sight answers. */
async function compare() {
  const now = String(asked()), name = tab;
  const others = beside.filter((other) => !same(other, now)), kept = others.length < beside.length;
  /** @type {HTMLButtonElement} */ (at("keep")).disabled = kept || beside.length >= MOST_BESIDE;
  at("keep").textContent = kept ? "Kept: change something to compare" : beside.length >= MOST_BESIDE ? `${MOST_BESIDE} are kept: remove one first` : "Keep this one to compare";
  at("beside").classList.toggle("empty", !others.length);
  if (!others.length) return at("beside-table").replaceChildren();
  const signal = running.signal;
  const rows = await Promise.all([now, ...others].map(async (text) => {
    const query = new URLSearchParams(text);
    try {
      const found = text === now && answers[name] === now ? shown[name] : await get(QUESTION[name], query, signal);
      return { text, query, found, why: "" };
    } catch (error) {
      const failure = /** @type {any} */ (error);
      return { text, query, found: null, why: failure.name === "AbortError" ? "" : String(failure.said || failure.message) };
    }
  }));
  if (signal.aborted || name !== tab) return;
  const { heads, right, less, of } = BESIDE()[name];
  const here = rows[0].found && of(rows[0].found);
  const most = Math.max(...rows.map(({ found }) => (found ? of(found).high : 0))) || 1;
  const cells = rows.map(({ text, query, found, why }, number) => {
    const label = make("span", {}, make("strong", {}, named_question(query)), number ? make("small", {}, differences(query, rows[0].query) || "the same") : " (this one)");
    const acts = make("span", { class: "screen" });
    if (number && !copies) {
      const open = make("button", { type: "button", "aria-label": `Open ${named_question(query)}` }, "open");
      open.addEventListener("click", () => { step(); const kept = beside, where = tab, paid = coin.code; restore(`?${text}`); beside = kept; mint(paid); choose(where); note(); ask(); });
      const drop = make("button", { type: "button", "aria-label": `Remove ${named_question(query)}` }, "remove");
      drop.addEventListener("click", () => { step(); beside = beside.filter((other) => other !== text); note(); compare(); });
      acts.append(open, " ", drop);
    }
    if (!found) return [label, ...heads.map(() => "–"), why || "–", "", acts];
    const one = of(found);
    const bar = draw("svg", { width: 160, height: 16, viewBox: "0 0 160 16", "aria-hidden": "true" });
    const scale = 158 / most;
    bar.append(draw("rect", { class: number ? "bar" : "bar chosen", x: 0, y: 3, width: one.value * scale, height: 10 }), draw("line", { class: "reach", x1: one.low * scale, x2: one.high * scale, y1: 8, y2: 8 }));
    const by = here ? one.value - here.value : 0;
    const against = !number || !here ? "" : [`${apart(by, here.value, one.unit, "more", "less")}${apart(by, here.value, "", "", "") ? ` (${by > 0 ? "+" : "−"}${percent(Math.abs(by / here.value))})` : ""}`, one.also(rows[0].found)].filter(Boolean).join(", ") || "the same";
    return [label, ...one.cells.map((cell, column) => (column === heads.indexOf("On") ? make("span", { class: "whole" }, cell) : cell)), against, bar, acts];
  });
  const last = heads.length + 1;
  table("beside-table", ["Question", ...heads, "Against this one", BARS[name], "Act"], cells, right, [...less, last + 1]);
  for (const row of /** @type {HTMLTableElement} */ (at("beside-table")).rows) {
    row.cells[last + 2].classList.add("screen");
    row.cells[last + 2].hidden = Boolean(copies);
  }
}

const BARS = /** @type {Row} */ ({ train: "Cost and its range", serve: "Cost and its range", own: "Owned", fit: "Needed and its range" });

// --- The other tabs.

/** @param {Row} found */
function showServe(found) {
  const best = found.rows[0];
  showCards("serve-cards", [
    ["A month", `${usd(best.usd_per_month)} ${coin.code}`, `budget ${usd(best.budget_usd)} ${coin.code}`],
    ["A million tokens", `${usd(best.usd_per_mtok)} ${coin.code}`, `${usd(best.usd_per_mtok_low)} to ${usd(best.usd_per_mtok_high)}`],
    ["On", machines(best), `${best.provider}, ${bought(best)}`],
    ["Time per output token", `${short(best.tpot_ms)} ms`, best.ttft_ms == null ? "more load than the replicas carry" : `first token after ${short(best.ttft_ms)} ms`],
  ]);
  showPoints("serve-pareto", "serve-said", "serve-table", found.points, "tpot_ms", "usd_per_mtok", ["ms per output token", `${coin.code} per million tokens`]);
  const rows = found.rows.map((/** @type {Row} */ row) => [usd(row.usd_per_month), usd(row.usd_per_mtok), short(row.tpot_ms), machines(row), row.provider, bought(row), row.region || "any region", `${row.age_days} d`]);
  table("serve-offers", [`${coin.code} a month`, `${coin.code} per million tokens`, "ms per token", "Cluster", "Provider", "Purchase", "Region", "Price seen"], rows, [0, 1, 2, 7], [2, 5, 6, 7]);
  showMap("serve-map", found.places, "usd_per_mtok", `${coin.code} per million tokens`);
  showRegions("serve-regions", found.regions, "usd_per_mtok", `${coin.code} per million tokens`, "tpot_ms", "ms per token");
  const hosted = found.hosted.map((/** @type {Row} */ row) => [row.provider, row.model, usd(row.usd_per_mtok), `${usd(row.usd_per_mtok_input)} in, ${usd(row.usd_per_mtok_output)} out`, row.observed_on]);
  table("hosted", ["Provider", "Model", `${coin.code} per million tokens`, "Prompt, output", "Price seen"], hosted, [2], [3]);
  showLevel(found.levels || [], found.knee || [], found.percentile);
  const parts = Object.entries(found.memory || {}).filter(([key, value]) => key.endsWith("_gb") && Number(value) > 0 && !/usable|free|total|needed|memory/.test(key));
  at("serve-memory-part").hidden = !parts.length;
  if (parts.length) bars("serve-memory", parts.map(([key, value]) => [plain(key.replace(/_gb$/, "")), Number(value)]), found.memory.memory_gb || null);
}

/**
 * Show what keeps the service level on each accelerator, and how the percentiles of a replica rise with its load.
 * @param {Row[]} levels @param {Row[]} knee @param {number} percentile
 */
function showLevel(levels, knee, percentile) {
  at("serve-level-part").hidden = !levels.length;
  if (!levels.length) return;
  const times = (/** @type {Row} */ row, /** @type {string} */ name, unit = "ms") => [50, 95, 99].map((one) => short(row[`${name}_p${one}_${unit}`])).join(" · ");
  const rows = levels.map((row) => [row.gpu, String(row.replicas), row.layout, short(row.held_requests_per_s), times(row, "ttft"), times(row, "tpot"), times(row, "e2e", "s"), percent(row.goodput_fraction), usd(row.usd_per_mtok), usd(row.usd_per_1000_requests)]);
  table("serve-levels", ["GPU", "Replicas", "Layout", "A replica holds, requests/s", "First token, ms: p50 · p95 · p99", "Per token, ms", "Answer, s", "Within the level", `${coin.code} per million tokens`, `${coin.code} per 1,000 requests`], rows, [1, 3, 4, 5, 6, 7, 8, 9], [2, 6, 7]);
  const drawn = knee.filter((row) => row.ttft_ms > 0 && row.tpot_ms > 0);
  if (drawn.length < 2) return;
  const figures = drawn.flatMap((row) => [row.ttft_ms, row.tpot_ms]), rates = drawn.map((row) => row.requests_per_s);
  const { svg, x, y } = axes("serve-knee", [Math.min(...rates) / 1.1, Math.max(...rates) * 1.1], [Math.min(...figures) / 1.3, Math.max(...figures) * 1.3], ["requests per second and replica", `${percentile}th percentile, ms`], `How latency rises with the load of a replica: ${drawn.map((row) => `${short(row.requests_per_s)} requests a second, first token ${short(row.ttft_ms)} ms, per token ${short(row.tpot_ms)} ms`).join("; ")}.`, short);
  for (const [name, words, side] of [["ttft_ms", "first token", "own"], ["tpot_ms", "per token", "rent"]]) {
    svg.append(draw("polyline", { class: `line-${side}`, points: drawn.map((row) => `${x(row.requests_per_s)},${y(row[name])}`).join(" ") }));
    svg.append(draw("text", { x: x(rates[0]) + 6, y: y(drawn[0][name]) - 8 }, words));
  }
  at("serve-knee").replaceChildren(svg);
}

/** Draw memory part by part, each where the one before it ends, GB, up to what is usable. @param {string} id @param {[string, number][]} parts @param {number|null} limit */
function bars(id, parts, limit) {
  const [width] = room(id);
  const left = NARROW.matches ? 96 : 120, each = 26, top = 26, right = 60, height = top + (parts.length + 1) * each + 40;
  const sum = parts.reduce((total, [, value]) => total + value, 0);
  const most = Math.max(sum, limit || 0, 1e-9);
  const x = (/** @type {number} */ value) => left + (value / most) * (width - left - right);
  const whole = `together ${gb(sum)}${limit ? ` of ${gb(limit)} usable` : ""}`;
  const label = `Memory by component, GB: ${parts.map(([name, value]) => `${name} ${gb(value)}`).join(", ")}; ${whole}.`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const floor = top + (parts.length + 1) * each;
  for (const value of even(most)) svg.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: floor }), draw("text", { class: "tick", x: x(value), y: floor + 16, "text-anchor": "middle" }, short(value)));
  let from = 0;
  [...parts, /** @type {[string, number]} */ (["together", sum])].forEach(([name, value], row) => {
    const y = top + row * each, last = row === parts.length, begin = last ? 0 : from;
    const over = last && limit && sum > limit;
    svg.append(draw("text", { class: last ? "name" : "tick", x: left - 8, y: y + 17, "text-anchor": "end" }, name), draw("rect", { class: over ? "bar over" : last ? "bar sum" : "bar", x: x(begin), y: y + 3, width: Math.max(x(begin + value) - x(begin), 1.5), height: each - 8 }), draw("text", { class: "name", x: x(begin + value) + 6, y: y + 17 }, gb(value)));
    from += value;
  });
  if (limit) svg.append(draw("line", { class: "limit", x1: x(limit), x2: x(limit), y1: top - 4, y2: floor }), draw("text", { x: x(limit), y: top - 9, "text-anchor": x(limit) > width - 80 ? "end" : "middle" }, `${gb(limit)} usable`));
  svg.append(draw("text", { x: left, y: height - 6 }, "GB"));
  at(id).replaceChildren(svg);
}

/** Even steps from nothing up to a figure. @param {number} most */
function even(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const each = [1, 2, 5, 10].map((one) => one * power).find((one) => most / one <= 6) || power;
  return Array.from({ length: Math.floor(most / each) + 1 }, (_, number) => number * each);
}

const WAYS = /** @type {Row} */ ({ tensor: "tensor-parallel", pipeline: "pipeline stages", context: "context-parallel", expert: "expert-parallel", data: "copies" });

/** @param {Row} found */
function showFit(found) {
  const spare = found.usable_gb - found.needed_gb;
  showCards("fit-cards", [
    [found.fits ? "It fits" : "It does not fit", `${gb(found.needed_gb)} GB`, `of ${gb(found.usable_gb)} GB usable on each GPU`],
    [spare >= 0 ? "To spare" : "Missing", `${gb(Math.abs(spare))} GB`, `needed ${gb(found.needed_low_gb)} to ${gb(found.needed_high_gb)} GB`],
    ["On", machines(found), Object.entries(WAYS).filter(([name]) => Number(found.layout[name]) > 1).map(([name, words]) => `${found.layout[name]} ${words}`).join(" × ") || "one GPU holds it all"],
  ]);
  bars("memory", found.components.filter((/** @type {Row} */ row) => row.needed_gb > 0).map((/** @type {Row} */ row) => [plain(row.component), row.needed_gb]), found.usable_gb);
  table("memory-table", ["Component", "GB", "Share", "How it follows", "In numbers"], found.components.filter((/** @type {Row} */ row) => row.needed_gb > 0).map((/** @type {Row} */ row) => [plain(row.component), gb(row.needed_gb), percent(row.share_fraction), row.formula, row.numbers]), [1, 2], [4]);
  const fewest = (/** @type {number|null} */ gpus) => (gpus === null ? "none fits" : String(gpus));
  table("sizes", ["Model of", "Full training", "LoRA", "QLoRA"], found.sizes.map((/** @type {Row} */ row) => [row.size, fewest(row.full_gpus), fewest(row.lora_gpus), fewest(row.qlora_gpus)]), [1, 2, 3]);
  table("changes", ["Change", "GB needed", "Fits", "At the price of"], found.changes.map((/** @type {Row} */ row) => [row.change, gb(row.needed_gb), row.fits ? "yes" : "no", row.cost]), [1]);
  if (!found.changes.length) at("changes").replaceChildren(make("tbody", {}, make("tr", {}, make("td", {}, "Nothing needed: it fits as it is."))));
}

/** @param {Row} found */
function showOwn(found) {
  const run = found.run, even = found.breakeven.utilisation_fraction;
  showCards("own-cards", [
    ["Owned", `${exact(found.own_usd_per_gpu_hour)} ${coin.code}`, "per GPU-hour in use, all costs over the years"],
    ["Rented", `${exact(found.rent_usd_per_gpu_hour)} ${coin.code}`, "per GPU-hour in use, all costs over the years"],
    ["As cheap at", even === null ? "no use" : percent(even), "of all hours in use"],
    ...(run && run.runs !== null ? [/** @type {[string, string, string]} */ (["Such runs", money.format(Math.ceil(run.runs)), `in ${short(run.years)} years make owning as cheap`])] : []),
  ]);
  const points = found.by_utilisation.filter((/** @type {Row} */ row) => row.own !== undefined && row.rent !== undefined);
  table("own-table", ["Hours in use", `Own, ${coin.code} per GPU-month`, `Rent, ${coin.code} per GPU-month`], points.map((/** @type {Row} */ row) => [percent(row.utilisation_fraction), usd(row.own), usd(row.rent)]), [1, 2]);
  const [[width, height], left, bottom, top, right] = [room("own"), 66, 46, 30, 24];
  const most = Math.max(...points.map((/** @type {Row} */ row) => Math.max(row.own, row.rent))) * 1.05 || 1;
  const x = (/** @type {number} */ value) => left + value * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - (value / most) * (height - bottom - top);
  const label = even === null ? "Owning and renting by hours in use; the lines do not cross." : `Owning and renting by hours in use; owning is cheaper above ${percent(even)}.`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const now = run ? run.share_fraction : null;
  for (let share = 0; share <= 1.0001; share += 0.2) svg.append(draw("line", { class: "grid", x1: x(share), x2: x(share), y1: top, y2: height - bottom }), draw("text", { class: "tick", x: x(share), y: height - bottom + 18, "text-anchor": "middle" }, `${Math.round(share * 100)}%`));
  const power = 10 ** Math.floor(Math.log10(most / coin.usd));
  const step = (power / (most / coin.usd / power < 3 ? 2 : 1)) * coin.usd;
  for (let value = 0; value <= most; value += step) svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), draw("text", { class: "tick y", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, charted(value)));
  for (const side of ["own", "rent"]) {
    svg.append(draw("polyline", { class: `line-${side}`, points: points.map((/** @type {Row} */ row) => `${x(row.utilisation_fraction)},${y(row[side])}`).join(" ") }));
    const end = points[points.length - 1];
    svg.append(draw("text", { x: width - right - 4, y: y(end[side]) - 8, "text-anchor": "end" }, side));
  }
  if (even !== null && even <= 1) {
    const side = even > 0.6 ? { x: x(even) - 5, "text-anchor": "end" } : { x: x(even) + 5 };
    svg.append(draw("line", { class: "mark", x1: x(even), x2: x(even), y1: top, y2: height - bottom }), draw("text", { ...side, y: height - bottom - 8 }, `even at ${percent(even)}`));
  }
  if (now !== null && now < 1) svg.append(draw("line", { class: "mark this", x1: x(now), x2: x(now), y1: top, y2: height - bottom }), draw("text", { class: "name", x: x(now) + 6, y: top + 14, "text-anchor": now > 0.7 ? "end" : "start" }, `this run alone, ${percent(now)}`));
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "hours in use"), draw("text", { x: 8, y: 18 }, `${coin.code} per GPU-month`));
  at("own").replaceChildren(svg);
}

// --- Tabs, sliders, and the address.

/** Show a tab and the fields that it asks. @param {string} name */
function choose(name) {
  tab = name;
  for (const one of TABS) {
    at(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    at(`tab-${one}`).tabIndex = one === name ? 0 : -1;
    at(`panel-${one}`).hidden = one !== name;
  }
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-tabs]"))) part.hidden = !String(part.dataset.tabs).split(" ").includes(name);
}

const SIGNS = /** @type {[number, string][]} */ ([[1e12, "t"], [1e9, "b"], [1e6, "m"]]);

/** Write a number of tokens as a person does. @param {number} value */
function counted(value) {
  const [unit, sign] = SIGNS.find(([unit_]) => value >= unit_ * 0.9995) || [1, ""];
  return `${Number((value / unit).toPrecision(2))}${sign}`;
}

/** What a slider writes into its field, and where it stands for what the field holds. */
const SLIDES = /** @type {Record<string, {write: (value: number) => string, read: (text: string) => number}>} */ ({
  tokens: { write: (value) => counted(10 ** value), read: (text) => Math.log10(parsed(text)) },
  tokens_per_month: { write: (value) => counted(10 ** value), read: (text) => Math.log10(parsed(text)) },
  deadline: { write: (value) => `${value}d`, read: (text) => parseFloat(text || "30") },
  tpot: { write: (value) => `${value}ms`, read: (text) => parseFloat(text || "300") },
  mfu: { write: (value) => `${value}%`, read: (text) => (text ? parseFloat(text) * (text.includes("%") || parseFloat(text) > 1 ? 1 : 100) : 100 * (shown.train?.rows[0].mfu_fraction || 0.4)) },
  overhead: { write: (value) => `${value}%`, read: (text) => parseFloat(text || "20") },
  utilisation: { write: (value) => `${value}%`, read: (text) => parseFloat(text || "70") },
  own_price: { write: (value) => String(value), read: (text) => (text ? parseFloat(text) : shown.train?.rows[0].usd_per_gpu_hour || 2.5) },
});

/** @param {string} text */
function parsed(text) {
  const found = /^([\d.]+)\s*([kmbt]?)/i.exec(text || "20b");
  const units = /** @type {Row} */ ({ k: 1e3, m: 1e6, b: 1e9, t: 1e12 });
  return found ? parseFloat(found[1]) * (units[found[2].toLowerCase()] || 1) : 1e11;
}

/** Put every slider where its field says. */
function slide() {
  for (const slider of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input[type=range]"))) {
    const name = String(slider.dataset.for);
    const field = /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
    const value = SLIDES[name].read(field.value.trim());
    if (Number.isFinite(value) && document.activeElement !== slider) slider.value = String(value);
    slider.setAttribute("aria-valuetext", field.value || "as assumed");
  }
}

/** Begin a step that Back undoes. */
function step() {
  if (!settled) return;
  history.pushState(null, "", location.href);
  settled = false;
}

/** Write the question into the address. */
function note() {
  if (!copies) history.replaceState(null, "", address());
  settled = true;
}

// --- The pickers: what the names mean, to choose from.

let facts = /** @type {Row|null} */ (null);
/** @param {number} value */
const counts = (value) => (value >= 1e9 ? `${three.format(value / 1e9)}B` : `${three.format(value / 1e6)}M`);
const unknown = "–";

/** What a picker lists of each row. */
const PICKS = /** @type {Record<string, {title: string, said: string, heads: () => string[], right: number[], less: number[], cells: (row: Row) => string[]}>} */ ({
  model: {
    title: "Models", said: "A size such as 11b can be typed as well, and the path of a config.json where gpucost serve was started with --files.",
    heads: () => ["Model", "Parameters", "Active", "Layers", "Context, tokens", "Family", "Licence"], right: [1, 2, 3, 4], less: [3, 5, 6],
    cells: (row) => [row.id, counts(row.parameters), counts(row.active_parameters), String(row.layers), row.max_sequence_tokens ? money.format(row.max_sequence_tokens) : unknown, row.family || unknown, row.licence || unknown],
  },
  gpu: {
    title: "GPUs", said: "Dense TFLOP/s in bf16. The price is the cheapest one on demand that was listed within 60 days.",
    heads: () => ["GPU", "Memory, GiB", "Memory, GB/s", "TFLOP/s", `${coin.code} per GPU-hour`, "Seller", "Year"], right: [1, 2, 3, 4, 6], less: [2, 5, 6],
    cells: (row) => [row.id, ...[row.memory_gib, row.hbm_gb_per_s, row.bf16_tflops].map((value) => (value === null ? unknown : amount(value).replace(/\.00$/, ""))), row.usd_per_gpu_hour === null ? unknown : exact(row.usd_per_gpu_hour), row.provider ? `${row.provider}, ${row.age_days} days ago` : unknown, String(row.year || unknown)],
  },
});

/** Let somebody choose a model or a GPU from all of them. @param {string} name */
async function pick(name) {
  facts ??= await get("facts", new URLSearchParams());
  const { title, said, heads, right, less, cells } = PICKS[name];
  const dialog = /** @type {HTMLDialogElement} */ (at("picker")), find = /** @type {HTMLInputElement} */ (at("picker-find"));
  const list = () => {
    const words = find.value.toLowerCase().split(/\s+/);
    const rows = /** @type {Row} */ (facts)[`${name}s`].map(cells).filter((/** @type {string[]} */ row) => words.every((word) => row.join(" ").toLowerCase().includes(word)));
    table("picker-table", heads(), rows.map((/** @type {string[]} */ [id, ...others]) => {
      const button = make("button", { type: "button" }, id);
      button.addEventListener("click", () => { dialog.close(); set(name, id); });
      return [button, ...others];
    }), right, less);
    at("picker-said").textContent = `${rows.length} of ${/** @type {Row} */ (facts)[`${name}s`].length}. ${said}`;
  };
  at("picker-title").textContent = title;
  find.value = "";
  find.oninput = list;
  list();
  dialog.showModal();
  find.focus();
}

/** Say what the model of an answer is. @param {Row} found */
async function describe(found) {
  if (copies || !found.model) return;
  facts ??= await get("facts", new URLSearchParams());
  const row = facts.models.find((/** @type {Row} */ one) => one.id === found.model);
  at("model-facts").textContent = !row ? found.model : `${row.id}: ${counts(row.parameters)} parameters${row.active_parameters < 0.9 * row.parameters ? `, ${counts(row.active_parameters)} active` : ""}, ${row.layers} layers${row.max_sequence_tokens ? `, ${money.format(row.max_sequence_tokens)} tokens of context` : ""}${row.licence ? `, ${row.licence}` : ""}`;
}

let rates = /** @type {Row[]} */ ([]);

/** Write amounts in a currency from now on. @param {string} code */
function mint(code) {
  const rate = rates.find((one) => one.code === code) || { code: "USD", usd: 1, on: "" };
  const parts = new Intl.NumberFormat("en-US", { style: "currency", currency: rate.code }).formatToParts(0);
  coin = { code: rate.code, usd: rate.usd, on: rate.on, sign: parts.filter((part) => ["currency", "literal"].includes(part.type)).map((part) => part.value).join("") };
  /** @type {HTMLSelectElement} */ (at("currency")).value = coin.code;
  at("rate").textContent = coin.code === "USD" ? "" : `1 ${coin.code} = ${short(coin.usd)} USD, European Central Bank, ${coin.on}`;
}

/** @param {Row} choices */
function fill(choices) {
  for (const name of ["model", "gpu", "region", "provider"]) at(`${name}-list`).replaceChildren(...choices[name].map((/** @type {string} */ value) => make("option", { value })));
  for (const name of ["method", "software", "option", "optimize", "weights"]) {
    const select = /** @type {HTMLSelectElement} */ (form.elements.namedItem(name));
    select.append(...choices[name].map((/** @type {string} */ value) => make("option", { value }, plain(value))));
  }
  const currency = /** @type {HTMLSelectElement} */ (at("currency"));
  currency.append(...choices.currencies.map((/** @type {Row} */ { code }) => make("option", {}, code)));
  currency.addEventListener("change", () => { step(); mint(currency.value); note(); again(); compare(); });
  rates = choices.currencies;
  stamp(choices);
  usual();
}

/** Choose what is usual where nothing is said. */
function usual() {
  for (const [name, value] of Object.entries(USUAL)) /** @type {HTMLSelectElement} */ (form.elements.namedItem(name)).value = value;
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", (event) => {
  const target = /** @type {HTMLInputElement} */ (event.target);
  if (!copies) step();
  if (target.type === "range") {
    const name = String(target.dataset.for);
    /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = SLIDES[name].write(Number(target.value));
  }
  slide();
  if (!copies) history.replaceState(null, "", address());
  clearTimeout(timer);
  timer = window.setTimeout(ask, WAIT_MS);
});
form.addEventListener("change", () => { settled = true; });
at("link").addEventListener("click", async () => {
  let said = "Copied: the link opens on this machine while gpucost serve runs.";
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    said = `This browser does not let a page copy. The link: ${location.href}`;
  }
  at("linked").textContent = said;
});
for (const name of ["model", "gpu"]) at(`pick-${name}`).addEventListener("click", () => pick(name).catch(fail));
at("picker-close").addEventListener("click", () => /** @type {HTMLDialogElement} */ (at("picker")).close());
at("keep").addEventListener("click", () => { step(); beside = [...new Set([...beside, String(asked())])]; note(); compare(); });
for (const name of TABS) {
  at(`tab-${name}`).addEventListener("click", () => { step(); choose(name); note(); ask(); });
  at(`tab-${name}`).addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const next = TABS[(TABS.indexOf(name) + move + TABS.length) % TABS.length];
    at(`tab-${next}`).focus();
    at(`tab-${next}`).click();
  });
}
/** Draw what the tab in sight shows anew, as wide as there is room. */
function again() { if (shown[tab]) show(tab); }
window.addEventListener("resize", again);
if (NARROW.matches) for (const part of form.querySelectorAll("details")) part.open = false;
window.addEventListener("popstate", () => { clearTimeout(timer); settled = true; restore(location.search); ask(); });

if (copies) {
  const keys = Object.keys(copies);
  for (const id of ["take", "keep", "money", "pick-model", "pick-gpu"]) at(id).hidden = true;
  at("copy").hidden = false;
  const select = /** @type {HTMLSelectElement} */ (at("copied"));
  const words = (/** @type {string} */ key) => named_question(new URLSearchParams(key));
  const open = (/** @type {string} */ key) => {
    copied = key;
    const query = new URLSearchParams(key);
    for (const name of ["method", "software", "option", "optimize", "weights"]) {
      const value = query.get(name) || USUAL[name];
      if (value) /** @type {HTMLSelectElement} */ (form.elements.namedItem(name)).replaceChildren(make("option", { value }, plain(value)));
    }
    const now = tab;
    restore(`?${key}`);
    choose(now);
    beside = keys.filter((other) => other !== key);
    for (const name of TABS) delete answers[name];
    for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input, select"))) field.disabled = true;
    ask();
  };
  select.append(...keys.map((key) => make("option", { value: key }, words(key))));
  select.addEventListener("change", () => open(select.value));
  const first = new URLSearchParams(location.search);
  if (TABS.includes(first.get("tab") || "")) tab = String(first.get("tab"));
  for (const name of ["tab", "beside", "currency"]) first.delete(name);
  select.value = keys.includes(String(first)) ? String(first) : keys[0];
  select.closest("label")?.toggleAttribute("hidden", keys.length < 2);
  open(select.value);
} else {
  get("choices", new URLSearchParams()).then((choices) => { fill(choices); restore(location.search); return ask(); }).catch(fail);
}
