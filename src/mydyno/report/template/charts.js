// Draws the charts over time: every trial faint, the median of each treatment bold.
const overlaid = (() => {
  "use strict";
  const { DASHES, byId, colour } = drawing;

  function median(tracks, i) {
    const seen = tracks.map((t) => t[i]).filter((x) => x !== null).sort((a, b) => a - b);
    const half = seen.length >> 1;
    if (!seen.length) return null;
    return seen.length % 2 ? seen[half] : (seen[half - 1] + seen[half]) / 2;
  }
  function lines(chart, tracks, treatments) {
    const time = Array.from({ length: chart.length }, (_, i) => i * chart.step);
    const data = [time], series = [{}];
    const add = (of, columns, about) => { data.push(columns); series.push({ treatment: of, points: { show: false }, show: treatments[of][3], ...about }); };
    treatments.forEach(([, tone], of) => {
      const own = tracks.filter((t) => t.of === of);
      if (own.length < 2) return;
      for (const t of own) add(of, t.values, { stroke: () => colour(`--c${tone}`) + colour("--faint"), width: 1, faint: true });
    });
    treatments.forEach(([name, tone, dash], of) => {
      const own = tracks.filter((t) => t.of === of).map((t) => t.values);
      if (!own.length) return;
      add(of, time.map((_, i) => median(own, i)), { label: name, stroke: () => colour(`--c${tone}`), width: 2, dash: DASHES[dash] });
    });
    return { data, series };
  }
  function draw(chart, tracks, treatments) {
    const place = byId(chart.id);
    const range = chart.scale.log ? (u, a, b) => [(a || 1e-3) * 0.85, (b || 1) * 1.15] : (u, a, b) => [Math.min(a || 0, 0), (b || 1) * 1.06];
    return drawing.plot({ ...chart, log: chart.scale.log }, place, lines(chart, tracks, treatments), { sync: place.dataset.sync, range });
  }
  function toggle(button, plots) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    for (const u of plots) u.batch(() => u.series.forEach((s, i) => { if (s.treatment === Number(button.dataset.treatment)) u.setSeries(i, { show: on }); }));
  }
  return async () => {
    const { treatments, charts } = JSON.parse(byId("key").textContent);
    if (!charts.length) return [];
    const deltas = await drawing.codes(byId("data").textContent);
    let start = 0;
    const plots = charts.map((chart) => {
      const tracks = chart.tracks.map(([of]) => { const at = start; start += chart.length; return { of, values: drawing.values(deltas, at, chart.length, chart.scale) }; });
      return draw(chart, tracks, treatments);
    });
    for (const hidden of document.querySelectorAll("#time .toggles, #time .hint")) hidden.hidden = false;
    for (const button of document.querySelectorAll(".toggles button")) button.addEventListener("click", () => toggle(button, plots));
    return plots;
  };
})();
