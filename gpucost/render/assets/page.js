"use strict";
(() => {
  const root = document.documentElement;
  const media = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (media.matches ? "dark" : "light")) === "dark";

  const config = () => {
    const style = getComputedStyle(root);
    const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
    const accent = style.getPropertyValue("--accent").trim();
    return {
      background: "transparent", font: "system-ui, sans-serif", aria: false, view: { stroke: null },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, labelSeparation: 6 },
      axisX: innerWidth < 640 ? { titleAnchor: "end", titleLimit: innerWidth - 80 } : {},
      legend: { labelColor: ink, titleColor: ink, orient: "bottom", labelFontSize: 12, labelLimit: 260, columns: innerWidth < 640 ? 1 : 3 },
      bar: { color: accent }, line: { color: accent, strokeWidth: 2 }, point: { color: accent }, rule: { color: ink }, text: { color: ink }, title: { color: ink },
      range: { category: JSON.parse(document.getElementById("colors").textContent) },
    };
  };

  const lead = document.querySelector(".lead");
  const asDelivered = lead?.textContent;
  const follow = ({ view }) => {  // the words at the top say what the sliders say; as delivered where none was moved
    if (!lead || !("lead" in view.getState().signals)) return;
    const say = (_, text) => { lead.textContent = text || asDelivered; };
    view.addSignalListener("lead", say);
    say("lead", view.signal("lead"));
  };

  let views = [];
  const embed = (place) => {
    const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
    const bind = document.getElementById(place.dataset.spec + "-controls");
    if (bind) bind.textContent = "";
    vegaEmbed(place, spec, { actions: false, renderer: "svg", config: config(), bind: bind || undefined }).then((made) => {
      place.querySelector("svg")?.setAttribute("aria-hidden", "true");  // its place has the words, its figures a table
      views.push(made.view);
      follow(made);
    });
  };
  const draw = () => {  // what is folded has no width yet: it is drawn once it is opened
    views = [];
    for (const place of document.querySelectorAll(".chart")) {
      place.textContent = "";
      if (!place.closest(".fold:not([open])")) embed(place);
    }
  };
  const folds = [...document.querySelectorAll(".fold")];
  for (const fold of folds) {
    fold.addEventListener("toggle", () => {
      if (fold.open) for (const place of fold.querySelectorAll(".chart")) if (!place.firstChild) embed(place);
    });
  }
  const unfold = () => {  // what a link leads to
    const place = document.getElementById(location.hash.slice(1)), fold = place?.closest(".fold");
    if (!fold || fold.open) return;
    fold.open = true;
    place.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  const button = document.querySelector(".theme");
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; draw(); });
  media.addEventListener("change", draw);
  draw();

  const every = document.getElementById("all-parts");  // there where paper shows the answer alone
  if (every) {
    const follow = () => {
      root.dataset.print = every.checked ? "all" : "answer";
      if (every.checked) for (const fold of folds) fold.open = true;
    };
    every.addEventListener("change", follow);
    every.checked = /[?&#]print=all\b/.test(location.href);
    follow();
  }
  const FIRST = 9;  // columns of a table of the answer
  const COLUMNS = 7, PART = 5;  // what paper holds; a wider table is printed in parts, each with the first column
  const PAPER = 640;  // pixels between the margins of a sheet, so that words in a picture keep their size
  addEventListener("beforeprint", () => {
    for (const view of views) if (view.width() > PAPER) view.width(PAPER).run();
    for (const table of document.querySelectorAll(".wide > table:not(.part)")) {
      const rest = table.tHead.rows[0].cells.length - 1;
      if (rest < COLUMNS) continue;
      if (root.dataset.print === "answer" && !table.closest(".board")) {  // what says least stays in the file
        const gone = new Set(leaving(table).slice(0, Math.max(0, rest + 1 - FIRST)));
        const part = table.cloneNode(true);
        part.removeAttribute("id");
        part.classList.add("part");
        for (const row of part.rows) [...row.cells].forEach((cell, at) => gone.has(at) && cell.remove());
        table.before(part);
        table.classList.add("whole");
        continue;
      }
      const each = Math.ceil(rest / Math.ceil(rest / PART));
      for (let from = 1; from <= rest; from += each) {
        const part = table.cloneNode(true);
        part.removeAttribute("id");
        part.classList.add("part");
        for (const row of part.rows) [...row.cells].forEach((cell, at) => at && (at < from || at >= from + each) && cell.remove());
        table.before(part);
      }
      table.classList.add("whole");
    }
  });
  addEventListener("afterprint", () => {
    dispatchEvent(new Event("resize"));
    document.querySelectorAll("table.part").forEach((part) => part.remove());
    document.querySelectorAll("table.whole").forEach((table) => table.classList.remove("whole"));
  });

  const KEPT = 2;  // columns that always stay
  function leaving(table) {  // columns in the order in which they leave: those that say least first
    const heads = [...table.tHead.rows[0].cells];
    const ranked = heads.map((head, column) => [Number(head.dataset.leaves || 0), column]).filter(([rank]) => rank);
    ranked.sort(([a, at], [b, other]) => b - a || other - at);
    const money = heads.findIndex((head) => /\(\$/.test(head.textContent));  // it stays, and what names the row
    const rest = heads.map((head, column) => [head, column]).filter(([head, column]) => column >= KEPT && column !== money && !head.dataset.leaves);
    const words = rest.filter(([head]) => !head.classList.contains("number")), figures = rest.filter(([head]) => head.classList.contains("number"));
    return [...ranked, ...words, ...figures.reverse()].map(([, column]) => column);
  }
  const all = new Set();  // tables whose reader asked for all columns
  const fold = (table) => {  // a table that is too wide hides what says least, as a terminal does; a button shows it
    const heads = [...table.tHead.rows[0].cells], box = table.parentElement;
    const show = (column, shown) => { for (const row of table.rows) row.cells[column]?.classList.toggle("folded", !shown); };
    heads.forEach((_, column) => show(column, true));
    const next = leaving(table);
    const gone = [];
    while (!all.has(table) && next.length && box.clientWidth && box.scrollWidth > box.clientWidth) {
      const column = next.shift();
      show(column, false);
      gone.push(column);
    }
    const inside = getComputedStyle(box.parentElement).display === "grid";  // beside it a button would take a cell
    const near = inside ? box.lastElementChild : box.nextElementSibling;
    let button = near?.classList.contains("more") ? near : null;
    if (!button && gone.length) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "more";
      button.addEventListener("click", () => { all.has(table) ? all.delete(table) : all.add(table); fold(table); });
      inside ? box.append(button) : box.after(button);
    }
    if (!button) return;
    button.hidden = !gone.length && !all.has(table);
    const names = gone.sort((a, b) => a - b).map((column) => heads[column].textContent).join(", ");
    button.textContent = all.has(table) ? "Fewer columns" : `${gone.length} more column${gone.length > 1 ? "s" : ""}: ${names}`;
  };
  const foldAll = () => document.querySelectorAll(".wide > table:not(.part)").forEach(fold);
  foldAll();
  addEventListener("resize", foldAll);
  document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", () => part.querySelectorAll(".wide > table").forEach(fold)));

  for (const table of document.querySelectorAll(".wide > table")) {  // money off the edge stands beside its label
    const heads = [...table.tHead.rows[0].cells], edge = table.parentElement.getBoundingClientRect().right;
    const summed = [...(table.tFoot?.rows[0].cells ?? [])].findIndex((cell, column) => column && cell.textContent.trim());
    const at = summed > 0 ? summed : heads.findIndex((head) => /\(\$\)$/.test(head.textContent));
    if (at < 2 || heads[at].getBoundingClientRect().right <= edge) continue;
    for (const row of table.rows) if (row.cells.length > at) row.insertBefore(row.cells[at], row.cells[1]);
  }

  const value = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.value;
    return raw === undefined ? cell.textContent.trim().toLowerCase() : raw === "" ? null : Number(raw);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);  // missing values stay at the end
          return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
    const input = document.getElementById(table.id + "-filter");
    const count = document.getElementById(table.id + "-count");
    input?.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
    });
  }
})();
