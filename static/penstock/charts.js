// Draw charts from the tables with their figures, so that chart and table cannot differ.
(() => {
  "use strict";
  const charts = new Map();

  // A custom property may be light-dark(...): let the browser resolve it on a probe.
  const colour = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const resolved = window.getComputedStyle(probe).color;
    probe.remove();
    return resolved;
  };
  const base = () => ({
    animation: false,
    aria: { enabled: true, decal: { show: true, decals: [
      { symbol: "none" }, { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 6], rotation: -Math.PI / 4, color: "rgba(255,255,255,.28)" },
      { symbol: "circle", symbolSize: .6, dashArrayX: [[8, 8], [0, 8, 8, 0]], dashArrayY: [6, 0], color: "rgba(255,255,255,.32)" },
      { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [3, 7], color: "rgba(255,255,255,.24)" } ] } },
    textStyle: { fontFamily: window.getComputedStyle(document.body).fontFamily, color: colour("--ink") },
    tooltip: { renderMode: "richText", confine: true, backgroundColor: colour("--surface"), borderColor: colour("--line"), textStyle: { color: colour("--ink"), fontSize: 12 } },
  });
  const time = (row) => Date.parse(row.dataset.at);
  const clock = (ms) => new Date(ms).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" });
  const percent = (share) => `${(share * 100).toFixed(1)} %`;

  const pie = (table) => {
    const slices = [...table.tBodies[0].rows].map((row) => ({
      name: row.dataset.name, value: Number(row.dataset.share), took: row.dataset.took, link: row.querySelector("a")?.href,
      itemStyle: { color: colour(`--${row.dataset.colour}`) },
    })).filter((slice) => slice.value > 0);
    const option = base();
    option.tooltip.formatter = (at) => `${at.name}\n${at.data.took} · ${percent(at.value)}`;
    option.series = [{
      type: "pie", radius: ["48%", "88%"], label: { show: false }, data: slices,
      itemStyle: { borderColor: colour("--surface"), borderWidth: 2 }, emphasis: { scaleSize: 4 },
    }];
    return option;
  };

  const figure = (rows, at, i) => {
    const share = rows[at]?.cells[i + 1].dataset.share;
    return share ? Number(share) : null;
  };
  // A minute between two silent ones has no area: it is shown as points.
  const alone = (rows, at) => figure(rows, at - 1, 0) === null && figure(rows, at + 1, 0) === null;

  const area = (table) => {
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const rows = [...table.tBodies[0].rows];
    const option = base();
    option.tooltip.trigger = "axis";
    option.tooltip.valueFormatter = (share) => (share == null ? "-" : percent(share));
    option.grid = { left: 44, right: 12, top: 12, bottom: 26 };
    option.xAxis = { type: "category", boundaryGap: false, data: rows.map((row) => clock(time(row))), axisLabel: { color: colour("--quiet") }, axisLine: { lineStyle: { color: colour("--line") } }, axisTick: { show: false } };
    option.yAxis = { type: "value", max: 1, axisLabel: { formatter: (share) => `${Math.round(share * 100)} %`, color: colour("--quiet") }, splitLine: { lineStyle: { color: colour("--line") } } };
    option.series = heads.map((head, i) => ({
      type: "line", name: head.dataset.name, stack: "share", symbolSize: 7, showAllSymbol: true, lineStyle: { width: 0 },
      areaStyle: { opacity: 1 }, color: colour(`--${head.dataset.colour}`),
      data: rows.map((_, at) => ({ value: figure(rows, at, i), symbol: alone(rows, at) ? "circle" : "none" })),
    }));
    return option;
  };

  // The plots of a pipe share one table and one time axis. A column names its plot, its colour and its series.
  const GLYPHS = { revision: "▲", ramp: "◆", scaling: "●", alert: "■" };
  const LEAST_LAG_US = 100; // a logarithmic axis has no zero
  const lag = (us) => (us < 1e6 ? `${us / 1e3} ms` : us < 12e7 ? `${Math.round(us / 1e6)} s` : `${Math.round(us / 6e7)} min`);
  const compact = (number) => (number >= 1e6 ? `${number / 1e6}M` : number >= 1e3 ? `${number / 1e3}k` : String(number));
  const rowsOf = (table) => [...(table?.tBodies[0]?.rows ?? [])];
  const stepOf = (rows) => (rows.length > 1 ? time(rows[1]) - time(rows[0]) : 60000);

  const columnsOf = (table, kind) => [...table.tHead.rows[0].cells]
    .map((head, at) => ({ at, ...head.dataset }))
    .filter((column) => column.plot === kind);

  const seriesOf = (column, kind, rows) => {
    const number = (row) => {
      const text = row.cells[column.at].dataset.value;
      if (!text) return null;
      return kind === "lag" ? Math.max(Number(text), LEAST_LAG_US) : Number(text);
    };
    const middle = stepOf(rows) / 2;
    const drawn = { name: column.name, color: colour(`--${column.colour}`), data: rows.map((row) => [time(row) + middle, number(row)]) };
    if (kind === "outcomes") return { ...drawn, type: "bar", stack: "outcomes", barCategoryGap: "15%" };
    return { ...drawn, type: "line", symbol: "circle", symbolSize: 4, lineStyle: { width: 2, type: "dashed" in column ? "dashed" : "solid" } };
  };

  const plot = (kind) => (table, box) => {
    const rows = rowsOf(table);
    const marks = rowsOf(document.getElementById(box.dataset.marks));
    const columns = columnsOf(table, kind);
    const quiet = colour("--quiet");
    const line = { lineStyle: { color: colour("--line") } };
    const option = base();
    option.tooltip.trigger = "axis";
    option.tooltip.formatter = ([point]) => {
      const row = rows[point.dataIndex];
      const within = marks.filter((mark) => time(mark) >= time(row) && time(mark) < time(row) + stepOf(rows));
      return [
        clock(time(row)),
        ...columns.map((column) => `${column.name}: ${row.cells[column.at].textContent.trim()}`),
        ...within.map((mark) => `${GLYPHS[mark.dataset.kind]} ${mark.cells[1].textContent.trim()}`),
      ].join("\n");
    };
    option.grid = { left: 56, right: 12, top: 22, bottom: 24 };
    option.xAxis = {
      type: "time", min: time(rows[0]), max: time(rows.at(-1)) + stepOf(rows),
      axisLabel: { color: quiet, formatter: clock, hideOverlap: true }, axisLine: line, axisTick: { show: false }, splitLine: { show: false },
    };
    option.yAxis = {
      type: kind === "lag" ? "log" : "value", min: kind === "lag" ? undefined : 0, minInterval: kind === "outcomes" ? 1 : undefined,
      axisLabel: { color: quiet, formatter: kind === "lag" ? lag : compact }, splitLine: line,
    };
    option.series = columns.map((column) => seriesOf(column, kind, rows));
    const selected = box.closest("[data-from]");
    if (selected) {
      option.series[0].markArea = {
        silent: true, itemStyle: { color: colour("--tblr-primary"), opacity: .12 },
        data: [[{ xAxis: Date.parse(selected.dataset.from) }, { xAxis: Date.parse(selected.dataset.to) }]],
      };
    }
    option.series[0].markLine = {
      silent: true, symbol: "none", lineStyle: { color: quiet, type: "dashed", width: 1 },
      label: { formatter: (mark) => mark.name, color: colour("--ink") },
      data: marks.map((mark) => ({ xAxis: time(mark), name: GLYPHS[mark.dataset.kind] })),
    };
    return option;
  };

  const KINDS = { pie, area, throughput: plot("throughput"), lag: plot("lag"), outcomes: plot("outcomes") };
  const PLOTS = "pipe-plots"; // charts of one group show the same moment
  const drawn = new Map();

  // Dragging over a plot selects minutes: the page is loaded with them in its URL, in UTC.
  const LEAST_DRAG_PX = 6;
  const MINUTE_MS = 60000;
  const utc = (ms) => new Date(ms).toISOString().slice(0, 16);
  const select = (chart, box, fromPx, toPx) => {
    const rows = rowsOf(document.getElementById(box.dataset.of));
    const [least, most] = [time(rows[0]), time(rows.at(-1)) + stepOf(rows)];
    const [from, to] = [fromPx, toPx].map((px) => Math.min(most, Math.max(least, chart.convertFromPixel({ xAxisIndex: 0 }, px))));
    const url = new URL(window.location.href);
    url.searchParams.set("from", utc(Math.floor(from / MINUTE_MS) * MINUTE_MS));
    url.searchParams.set("to", utc(Math.max(Math.ceil(to / MINUTE_MS), Math.floor(from / MINUTE_MS) + 1) * MINUTE_MS));
    url.hash = "selection";
    window.location.assign(url);
  };
  const selectable = (box, chart) => {
    const band = document.createElement("div");
    band.className = "plot-band";
    band.hidden = true;
    box.append(band);
    let start = null;
    const edges = (event) => {
      const at = Math.min(box.clientWidth, Math.max(0, event.clientX - box.getBoundingClientRect().left));
      return [Math.min(start, at), Math.max(start, at)];
    };
    const move = (event) => {
      const [left, right] = edges(event);
      band.hidden = right - left < LEAST_DRAG_PX;
      band.style.left = `${left}px`;
      band.style.width = `${right - left}px`;
    };
    const end = (event) => {
      document.removeEventListener("mousemove", move);
      const [left, right] = edges(event);
      start = null;
      if (right - left >= LEAST_DRAG_PX) select(chart, box, left, right); else band.hidden = true;
    };
    box.addEventListener("mousedown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault(); // no selection of text
      start = event.clientX - box.getBoundingClientRect().left;
      document.addEventListener("mousemove", move);
      document.addEventListener("mouseup", end, { once: true });
    });
  };

  const chartOf = (box) => {
    if (!charts.has(box)) {
      charts.set(box, window.echarts.init(box, null, { renderer: "svg" }));
      if (box.dataset.marks) {
        charts.get(box).group = PLOTS;
        selectable(box, charts.get(box));
      }
      box.addEventListener("pointerleave", () => draw());
      charts.get(box).on("click", ({ data }) => { if (data?.link) window.location.assign(data.link); });
    }
    return charts.get(box);
  };

  // A chart is drawn again only if its figures have changed, and never under the pointer, where its tooltip is open.
  const draw = ({ redraw = false } = {}) => {
    const isInUse = !redraw && document.querySelector("[data-chart]:hover") !== null;
    for (const box of document.querySelectorAll("[data-chart]")) {
      const table = document.getElementById(box.dataset.of);
      box.hidden = !table;
      if (box.nextElementSibling && "empty" in box.nextElementSibling.dataset) box.nextElementSibling.hidden = Boolean(table);
      if (!table) continue;
      const figures = table.outerHTML + (document.getElementById(box.dataset.marks)?.outerHTML ?? "");
      if (!redraw && drawn.get(box) === figures) continue;
      if (isInUse && drawn.has(box)) continue;
      chartOf(box).setOption(KINDS[box.dataset.chart](table, box), { notMerge: true });
      drawn.set(box, figures);
    }
  };

  document.addEventListener("penstock:refreshed", () => draw());
  document.addEventListener("DOMContentLoaded", () => {
    window.echarts.connect(PLOTS);
    draw();
  });
  document.addEventListener("penstock:theme", () => draw({ redraw: true }));
  window.addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
})();
