"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const { values, titles, legend } = data;
  const names = Object.keys(titles);
  const total = values.name.length;
  const PAGE = 50, PRINTED = 200, NONE = 255, FEW = 3;
  const AT_NAME = names.indexOf("name");
  const isText = Object.fromEntries(names.map((name) => [name, values[name].some((value) => typeof value === "string")]));
  const view = { rows: [...Array(total).keys()], sort: "rank", descending: false, page: 0 };
  const made = [];

  // Themes. The reader's choice is kept for as long as the page is open.
  const root = document.documentElement;
  const media = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const classColour = (k) => colour(`--c${k % 13}`);
  function setTheme(theme) {
    root.dataset.theme = theme;
    for (const button of document.querySelectorAll(".theme button")) {
      button.setAttribute("aria-pressed", String(button.dataset.theme === theme));
    }
    showKey();
    showPage();
  }

  // What a feature's small plot shows, from its few bytes.
  function bytesOf(i) {
    return Uint8Array.from(atob(data.cells[i]), (letter) => letter.charCodeAt(0));
  }
  function lineOf(cells, k, used) {
    const first = k * (legend.n_bins + 1);
    return [...cells.subarray(first, first + used), cells[first + legend.n_bins]];
  }
  // A bin is drawn as a plateau: x is the bin's edge; missing values stand apart at the right.
  function plateaus(rows, used) {
    const x = [], lines = rows.map(() => []);
    const put = (at, of) => { x.push(at); lines.forEach((line, k) => line.push(of(rows[k]))); };
    for (let bin = 0; bin < used; bin++) {
      put(bin, (row) => row[bin]);
      put(bin + 0.98, (row) => row[bin]);
    }
    if (rows.some((row) => row[used] > 0)) {
      const gap = Math.max(1, used / 8);
      put(used + gap / 2, () => null);
      put(used + gap, (row) => row[used]);
      put(used + gap + Math.max(1, used / 16), (row) => row[used]);
    }
    return [x, ...lines];
  }
  const hasMissing = (rows) => rows.some((row) => row.at(-1) > 0);
  function classLines(i) {
    const cells = bytesOf(i), used = data.used[i], scale = data.scale[i];
    const rows = legend.classes.map((_, k) => lineOf(cells, k, used).map((n) => n * scale));
    if (rows.length <= FEW) {
      const shares = rows.map((row, k) => row.map((n) => n / Math.max(1, legend.class_rows[k])));
      return { data: plateaus(shares, used), hasMissing: hasMissing(rows), stacked: false, y: "share of the class's rows" };
    }
    const sums = rows[0].map((_, bin) => rows.reduce((sum, row) => sum + row[bin], 0));
    const stacked = [];
    rows.reduce((below, row) => {
      const top = row.map((n, bin) => below[bin] + (sums[bin] ? n / sums[bin] : 0));
      stacked.push(top);
      return top;
    }, sums.map(() => 0));
    return { data: plateaus(stacked, used), hasMissing: hasMissing(rows), stacked: true, y: "classes of rows with such values" };
  }
  function numberLines(i) {
    const cells = bytesOf(i), used = data.used[i], n = legend.targets.length;
    const trend = [...cells.subarray(n)].map(
      (mean) => (mean === NONE ? null : legend.low + (legend.high - legend.low) * mean / (NONE - 1)));
    const points = legend.targets.map(
      (target, row) => [cells[row] === NONE ? 1.15 : cells[row] / (NONE - 1), target, null]);
    const at = (bin) => (used === legend.n_bins ? (bin + 0.5) / used : bin / Math.max(1, used - 1));
    for (let bin = 0; bin < used; bin++) points.push([at(bin), null, trend[bin]]);
    if (trend[legend.n_bins] !== null) {
      points.push([1.09, null, null], [1.11, null, trend[legend.n_bins]], [1.19, null, trend[legend.n_bins]]);
    }
    points.sort((a, b) => a[0] - b[0]);
    return { hasMissing: trend[legend.n_bins] !== null, data: [0, 1, 2].map((column) => points.map((point) => point[column])), y: legend.target };
  }

  const small = { axes: [{ show: false }, { show: false }], padding: [2, 2, 2, 2] };
  function whereOf(i) {
    const ends = data.ends[i];
    if (!ends) return "values from lowest to highest";
    if (typeof ends[0] === "string") return ends.join(" · ");
    return ends[0] === ends[1] ? `the only value: ${ends[0]}` : `from ${ends[0]} to ${ends[1]}`;
  }
  function axesOf(y, i, hasMissing) {
    const style = { stroke: colour("--soft"), grid: { stroke: colour("--rule"), width: 1 }, font: "12px sans-serif", labelFont: "13px sans-serif" };
    const where = whereOf(i) + (hasMissing ? "; missing ones at the right" : "");
    return [
      { ...style, label: where, values: () => [], grid: { show: false }, ticks: { show: false }, size: 12 },
      { ...style, label: y, size: 60 },
    ];
  }
  function plot(i, into, width, height, large) {
    const isClasses = legend.classes.length > 0;
    const drawn = isClasses ? classLines(i) : numberLines(i);
    const series = [{}];
    const bands = [];
    if (isClasses) {
      legend.classes.forEach((label, k) => {
        const stroke = classColour(k);
        const fill = drawn.stacked ? stroke : (legend.classes.length === 2 ? stroke + "38" : undefined);
        series.push({ label, stroke, fill, width: drawn.stacked ? 0 : (large ? 2 : 1.4), points: { show: false } });
        if (drawn.stacked && k) bands.push({ series: [k + 1, k], fill: stroke });
      });
    } else {
      const soft = colour("--c12"), strong = classColour(0);
      series.push({ label: "rows", stroke: soft, paths: () => null, points: { show: true, size: large ? 5 : 3, fill: soft, stroke: soft, width: 0 } });
      series.push({ label: "mean", stroke: strong, width: large ? 2.5 : 2, spanGaps: true, points: { show: false } });
    }
    if (!isClasses) {
      // Rows between two means are no gap in the line of means; before the missing ones there is one.
      const [x, , mean] = drawn.data;
      for (let at = 0; at < x.length; at++) if (mean[at] === null && x[at] !== 1.09) mean[at] = undefined;
      series[2].spanGaps = false;
    }
    const options = {
      width, height, series, bands,
      scales: { x: { time: false }, y: isClasses ? { range: (_, low, high) => [0, drawn.stacked ? 1 : (high || 1) * 1.04] } : {} },
      legend: { show: false }, cursor: { show: false }, select: { show: false },
      ...(large ? { axes: axesOf(drawn.y, i, drawn.hasMissing) } : small),
    };
    return new uPlot(options, drawn.data, into);
  }

  // The table.
  const shownOf = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value === "number" && !Number.isInteger(value)) {
      const size = Math.abs(value);
      return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
    }
    return String(value);
  };
  function compare(a, b) {
    const column = values[view.sort], left = column[a], right = column[b];
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    const order = isText[view.sort] ? (left < right ? -1 : Number(left > right)) : left - right;
    return (view.descending ? -order : order) || a - b;
  }
  const limitInput = byId("limit"); // there is none where features have no q-values
  function refresh() {
    const wanted = byId("filter").value.toLowerCase(), limit = parseFloat(limitInput?.value);
    view.rows = [...Array(total).keys()].filter((i) =>
      values.name[i].toLowerCase().includes(wanted)
      && (Number.isNaN(limit) || (values.q_value[i] !== null && values.q_value[i] <= limit)));
    view.rows.sort(compare);
    view.page = 0;
    showPage();
  }
  function forget() {
    while (made.length) made.pop().destroy();
  }
  function rowOf(i) {
    const row = document.createElement("tr");
    for (const name of names) {
      const cell = row.insertCell();
      cell.className = name;
      cell.textContent = shownOf(values[name][i]);
      if (name === "name") cell.title = values.name[i];
    }
    const cell = row.insertCell(AT_NAME + 1);
    cell.className = "plot";
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", `Larger plot of ${values.name[i]}`);
    button.addEventListener("click", () => enlarge(i));
    cell.append(button);
    return [row, button];
  }
  function showRows(rows) {
    forget();
    const body = byId("table").tBodies[0];
    const built = rows.map((i) => [i, ...rowOf(i)]);
    body.replaceChildren(...built.map(([, row]) => row));
    for (const [i, , button] of built) made.push(plot(i, button, 140, 38, false));
  }
  function showPage() {
    const pages = Math.max(1, Math.ceil(view.rows.length / PAGE));
    showRows(view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE));
    byId("count").textContent = `${view.rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} features`;
    byId("page").textContent = `page ${view.page + 1} of ${pages}`;
    byId("previous").disabled = view.page === 0;
    byId("next").disabled = view.page + 1 >= pages;
  }
  function turn(by) {
    view.page += by;
    showPage();
    byId("features").scrollIntoView();
  }
  function headers() {
    for (const head of document.querySelectorAll("#table th[data-column]")) {
      const name = head.dataset.column, button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", name === view.sort ? "ascending" : "none");
      button.addEventListener("click", () => {
        view.descending = view.sort === name && !view.descending;
        view.sort = name;
        for (const other of document.querySelectorAll("#table th[data-column]")) {
          other.setAttribute("aria-sort", other !== head ? "none" : (view.descending ? "descending" : "ascending"));
        }
        refresh();
      });
    }
    const last = document.createElement("th");
    last.scope = "col";
    last.textContent = "against the target";
    document.querySelector('#table th[data-column="name"]').after(last);
  }
  function showKey() {
    const labels = legend.classes.length ? legend.classes : null;
    const parts = labels
      ? labels.map((label, k) => [label, classColour(k)])
      : [["rows", colour("--c12")], [`mean of the ${legend.target}`, classColour(0)]];
    byId("key").replaceChildren(...parts.map(([label, shade]) => {
      const entry = document.createElement("span"), patch = document.createElement("i");
      patch.style.background = shade;
      entry.append(patch, label);
      return entry;
    }));
    byId("key").hidden = false;
  }

  // One feature, larger.
  let enlarged = null;
  function enlarge(i) {
    const dialog = byId("large");
    byId("large-title").textContent = values.name[i];
    byId("large-facts").textContent = names.filter((name) => name !== "name" && values[name][i] !== null)
      .map((name) => `${titles[name]} ${shownOf(values[name][i])}`).join(" · ");
    byId("large-note").textContent = legend.classes.length
      ? `Bins follow the order of the values, not their distances. ${legend.classes.map(
        (label, k) => `${label}: ${legend.class_rows[k]} rows`).join(", ")}.`
      : "Places follow the order of the values, not their distances.";
    dialog.showModal();
    if (enlarged) enlarged.destroy();
    enlarged = plot(i, byId("large-plot"), byId("large-plot").clientWidth, 300, true);
  }

  // CSV of what the filter leaves, in the order shown. A name that a spreadsheet would take for a
  // formula is marked.
  function csv() {
    const cell = (value) => {
      if (value === null) return "";
      const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = view.rows.map((i) => names.map((name) => cell(values[name][i])).join(","));
    return [names.join(","), ...lines].join("\n") + "\n";
  }
  async function copy() {
    const text = csv();
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    byId("count").textContent = done ? `${view.rows.length} rows copied` : "the browser refused to copy";
  }

  headers();
  for (const part of document.querySelectorAll(".tools, .pages")) part.hidden = false;
  byId("filter").addEventListener("input", refresh);
  limitInput?.addEventListener("input", refresh);
  byId("copy").addEventListener("click", copy);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  for (const button of document.querySelectorAll(".theme button")) {
    button.addEventListener("click", () => setTheme(button.dataset.theme));
  }
  media.addEventListener("change", () => setTheme(media.matches ? "dark" : "light"));
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    showKey();
    showRows(view.rows.slice(0, PRINTED));
  });
  addEventListener("afterprint", () => setTheme(before));
  setTheme(media.matches ? "dark" : "light");
})();
