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
  const percent = (share) => `${(share * 100).toFixed(1)} %`;

  const pie = (table) => {
    const slices = [...table.tBodies[0].rows].map((row) => ({
      name: row.dataset.name, value: Number(row.dataset.share), took: row.dataset.took,
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
    const clock = (row) => new Date(row.dataset.at).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" });
    const option = base();
    option.tooltip.trigger = "axis";
    option.tooltip.valueFormatter = (share) => (share == null ? "-" : percent(share));
    option.grid = { left: 44, right: 12, top: 12, bottom: 26 };
    option.xAxis = { type: "category", boundaryGap: false, data: rows.map(clock), axisLabel: { color: colour("--quiet") }, axisLine: { lineStyle: { color: colour("--line") } }, axisTick: { show: false } };
    option.yAxis = { type: "value", max: 1, axisLabel: { formatter: (share) => `${Math.round(share * 100)} %`, color: colour("--quiet") }, splitLine: { lineStyle: { color: colour("--line") } } };
    option.series = heads.map((head, i) => ({
      type: "line", name: head.dataset.name, stack: "share", symbolSize: 7, showAllSymbol: true, lineStyle: { width: 0 },
      areaStyle: { opacity: 1 }, color: colour(`--${head.dataset.colour}`),
      data: rows.map((_, at) => ({ value: figure(rows, at, i), symbol: alone(rows, at) ? "circle" : "none" })),
    }));
    return option;
  };

  const draw = () => {
    for (const box of document.querySelectorAll("[data-chart]")) {
      const table = document.getElementById(box.dataset.of);
      box.hidden = !table;
      if (box.nextElementSibling && "empty" in box.nextElementSibling.dataset) box.nextElementSibling.hidden = Boolean(table);
      if (!table) continue;
      if (!charts.has(box)) charts.set(box, window.echarts.init(box, null, { renderer: "svg" }));
      charts.get(box).setOption((box.dataset.chart === "pie" ? pie : area)(table), { notMerge: true });
    }
  };
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  document.addEventListener("penstock:theme", draw);
  window.addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
})();
