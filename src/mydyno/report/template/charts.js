// Draws the charts over time from the page's own data; without it the page is still complete.
(async () => {
  "use strict";
  const TOP = 32766, GAP = -1;
  const byId = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const CLOCK = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600];
  const DASHES = [[], [8, 3], [2, 2.5], [8, 3, 2, 3], [4, 3]];

  // -- numbers as the rest of the page shows them

  const figures = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(3))));
  function scaled(x, unit, steps) {
    const [factor, prefix] = steps.find(([f]) => Math.abs(x) >= f * 0.9995) || steps[steps.length - 1];
    return `${figures(x / factor)} ${prefix}${unit}`;
  }
  function quantity(x, unit) {
    if (x === 0) return unit.endsWith("/s") ? `0 ${unit}` : "0";
    if (unit === "s") return scaled(x, "", [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
    if (unit === "ratio" || unit === "") return figures(x);
    if (unit.startsWith("B")) return scaled(x, unit, [[2 ** 30, "Gi"], [2 ** 20, "Mi"], [1024, "Ki"], [1, ""]]);
    return scaled(x, unit, [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]);
  }

  // -- data

  async function codes(text) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const view = new DataView(await new Response(stream).arrayBuffer());
    return Int16Array.from({ length: view.byteLength / 2 }, (_, i) => view.getInt16(2 * i, true));
  }
  function values(deltas, start, chart) {
    const { log, low, high } = chart.scale;
    const found = new Array(chart.length);
    for (let i = 0, code = 0; i < chart.length; i++) {
      code += deltas[start + i];
      const part = code / TOP;
      found[i] = code === GAP ? null : log ? low * (high / low) ** part : low + part * (high - low);
    }
    return found;
  }
  function median(tracks, i) {
    const seen = tracks.map((t) => t[i]).filter((x) => x !== null).sort((a, b) => a - b);
    const half = seen.length >> 1;
    if (!seen.length) return null;
    return seen.length % 2 ? seen[half] : (seen[half - 1] + seen[half]) / 2;
  }

  // -- one chart: every trial faint, the median of each treatment bold

  function lines(chart, tracks, treatments) {
    const time = Array.from({ length: chart.length }, (_, i) => i * chart.step);
    const data = [time], series = [{}];
    const add = (of, columns, about) => { data.push(columns); series.push({ treatment: of, points: { show: false }, show: treatments[of][3], ...about }); };
    treatments.forEach(([, tone], of) => {
      const own = tracks.filter((t) => t.of === of);
      if (own.length < 2) return;
      for (const t of own) add(of, t.values, { stroke: () => colour(`--c${tone}`), width: 1, alpha: 0.3, faint: true });
    });
    treatments.forEach(([name, tone, dash], of) => {
      const own = tracks.filter((t) => t.of === of).map((t) => t.values);
      if (!own.length) return;
      add(of, time.map((_, i) => median(own, i)), { label: name, stroke: () => colour(`--c${tone}`), width: 2, dash: DASHES[dash] });
    });
    return { data, series };
  }
  function shade(u, chart) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const at = (t) => Math.min(Math.max(u.valToPos(t, "x", true), bbox.left), bbox.left + bbox.width);
    const [first, last] = chart.warm;
    ctx.save();
    ctx.fillStyle = colour("--wash");
    ctx.fillRect(bbox.left, bbox.top, at(first) - bbox.left, bbox.height);
    ctx.globalAlpha = 0.5;
    ctx.fillRect(at(first), bbox.top, at(last) - at(first), bbox.height);
    ctx.fillRect(at(chart.end), bbox.top, bbox.left + bbox.width - at(chart.end), bbox.height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ctx.fillStyle = colour("--soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash([]); // uPlot leaves its own behind when it draws again
    const y = bbox.top - 5 * ratio, from = at(last), to = at(chart.end);
    ctx.beginPath();
    for (const x of [from, to]) { ctx.moveTo(x, y - 3 * ratio); ctx.lineTo(x, y + 3 * ratio); }
    ctx.moveTo(from, y); ctx.lineTo(to, y);
    ctx.stroke();
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${11 * ratio}px ${colour("--sans")}`;
    const say = (text, a, b) => { if (b - a > ctx.measureText(text).width + 8 * ratio) ctx.fillText(text, a, y - 6 * ratio); };
    say("measured window", from, to);
    say("warm-up", bbox.left, at(first));
    ctx.restore();
  }
  function ticks(u, axis, low, high) {
    const found = [];
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) {
      for (const m of high / low > 1e4 ? [1] : high / low < 6 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]) if (m * ten >= low && m * ten <= high) found.push(m * ten);
    }
    return found.length > 1 ? found : [low, Math.sqrt(low * high), high];
  }
  function options(chart, place, series, readout) {
    const font = `12px ${colour("--sans")}`;
    const axis = { stroke: () => colour("--soft"), font, grid: { stroke: () => colour("--hair"), width: 1 }, ticks: { show: false } };
    const log = chart.scale.log;
    return {
      width: place.clientWidth, height: place.clientHeight, padding: [24, 24, 0, 0], series,
      legend: { show: false }, focus: { alpha: 0.35 },
      cursor: { sync: { key: place.dataset.sync }, y: false, points: { size: 6 }, drag: { x: true, y: false } },
      scales: {
        x: { time: false },
        y: log ? { distr: 3, range: (u, a, b) => [(a || 1e-3) * 0.85, (b || 1) * 1.15] } : { range: (u, a, b) => [Math.min(a || 0, 0), (b || 1) * 1.06] },
      },
      axes: [
        { ...axis, size: 30, incrs: CLOCK, values: (u, all) => all.map((t) => `${Number(t.toFixed(3))} s`) },
        { ...axis, size: 62, values: (u, all) => all.map((x) => (x === null ? "" : quantity(x, chart.unit))), ...(log ? { splits: ticks, filter: (u, all) => all } : {}) },
      ],
      hooks: { drawClear: [(u) => shade(u, chart)], setCursor: [(u) => read(u, chart, readout)] },
    };
  }
  function read(u, chart, readout) {
    const i = u.cursor.idx;
    readout.replaceChildren();
    if (i === null || i === undefined) return;
    const say = (name, text) => {
      const part = document.createElement("span"), bold = document.createElement("b");
      bold.textContent = text;
      part.append(name ? `${name} ` : "", bold);
      readout.append(part, " ");
    };
    say("at", `${Number(u.data[0][i].toFixed(3))} s`);
    u.series.forEach((s, n) => { if (n && s.show && !s.faint && u.data[n][i] !== null) say(s.label, quantity(u.data[n][i], chart.unit)); });
  }

  // -- keys, toggles, paper

  function keys(u, place, readout) {
    place.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (event.key === "Escape") u.setData(u.data, true);
      if (!step) return;
      event.preventDefault();
      readout.setAttribute("aria-live", "polite");
      const last = u.data[0].length - 1, now = u.cursor.idx ?? (step > 0 ? 0 : last);
      const next = Math.min(Math.max(now + step, 0), last);
      u.setCursor({ left: u.valToPos(u.data[0][next], "x"), top: 1 });
    });
    place.addEventListener("pointermove", () => readout.setAttribute("aria-live", "off"));
  }
  function toggle(button, plots) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    for (const u of plots) u.batch(() => u.series.forEach((s, i) => { if (s.treatment === Number(button.dataset.treatment)) u.setSeries(i, { show: on }); }));
  }
  function draw(chart, tracks, treatments) {
    const place = byId(chart.id), readout = place.nextElementSibling;
    place.hidden = false;
    const { data, series } = lines(chart, tracks, treatments);
    const u = new uPlot(options(chart, place, series, readout), data, place);
    keys(u, place, readout);
    new ResizeObserver(() => { if (place.clientWidth) u.setSize({ width: place.clientWidth, height: place.clientHeight }); }).observe(place);
    return u;
  }
  function onPaper() {
    let shut = [];
    addEventListener("beforeprint", () => { shut = [...document.querySelectorAll("details:not([open])")]; shut.forEach((d) => { d.open = true; }); });
    addEventListener("afterprint", () => shut.forEach((d) => { d.open = false; }));
  }
  function copying() {
    const button = byId("copy"), command = byId("command");
    button.hidden = false;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(command);
      try { await navigator.clipboard.writeText(command.textContent); byId("copied").textContent = button.textContent = "Copied"; }
      catch { byId("copied").textContent = button.textContent = "Selected"; }
    });
  }

  copying();
  onPaper();
  const { treatments, charts } = JSON.parse(byId("key").textContent);
  if (!charts.length || !("DecompressionStream" in window)) return;
  const deltas = await codes(byId("data").textContent);
  let start = 0;
  const plots = charts.map((chart) => {
    const tracks = chart.tracks.map(([of]) => { const at = start; start += chart.length; return { of, values: values(deltas, at, chart) }; });
    return draw(chart, tracks, treatments);
  });
  for (const hidden of document.querySelectorAll(".toggles, .hint")) hidden.hidden = false;
  for (const button of document.querySelectorAll(".toggles button")) button.addEventListener("click", () => toggle(button, plots));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((u) => u.redraw()));
  document.documentElement.classList.add("drawn");
})();
