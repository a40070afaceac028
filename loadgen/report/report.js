"use strict";
// Hover read-outs on one shared time, and hiding of runs. The page is complete without it.
(() => {
  const data = JSON.parse(document.getElementById("series").textContent);
  const root = document.documentElement;
  root.classList.add("js");

  const MB = 1048576;
  const digits = (value, places) =>
    value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  const formats = {
    bytes: (v) => (v >= 9.95 * MB ? digits(v / MB, 0) + " MB" : v >= 0.1 * MB ? digits(v / MB, 1) + " MB"
      : v === 0 ? "0 MB" : Math.max(1, Math.round(v / 1024)) + " kB"),
    count: (v) => digits(v, 0),
    cores: (v) => digits(v, 2) + " cores",
    seconds: (v) => (v >= 9.95 ? digits(v, 1) + " s" : v >= 0.9995 ? digits(v, 2) + " s"
      : digits(v * 1000, 0) + " ms"),
  };

  // The last point not after x, by halving.
  const valueAt = (points, x) => {
    let low = 0, high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= x) low = middle + 1; else high = middle;
    }
    const ended = points.length && x > points[points.length - 1][0] && low === points.length;
    return low && !ended ? points[low - 1][1] : null;
  };

  const panels = [...document.querySelectorAll(".panel[data-panel]")]
    .filter((figure) => data[figure.dataset.panel])
    .map((figure) => ({ figure, area: figure.querySelector(".area"), ...data[figure.dataset.panel] }));

  const cursorOf = (panel) => {
    if (!panel.cursor) {
      panel.cursor = document.createElement("div");
      panel.cursor.className = "cursor";
      panel.cursor.append(document.createElement("b"));
      panel.area.append(panel.cursor);
    }
    return panel.cursor;
  };

  const show = (panel, x, share) => {
    const cursor = cursorOf(panel);
    cursor.hidden = false;
    cursor.style.left = share * 100 + "%";
    cursor.classList.toggle("left", share > 0.75);
    cursor.firstChild.textContent = panel.axis === "time" ? digits(x, 1) + " s"
      : digits((1 - 10 ** -x) * 100, x > 2 ? 2 : 1) + " %";
    panel.figure.querySelectorAll(".readout li").forEach((item) => {
      const output = item.querySelector("output");
      const points = panel.series[item.dataset.run];
      if (!points || !points.length) return;
      const value = valueAt(points, x);
      output.textContent = value === null ? "–" : formats[panel.unit](value);
    });
  };

  const rest = (panel) => {
    if (panel.cursor) panel.cursor.hidden = true;
    panel.figure.querySelectorAll("output").forEach((output) => {
      output.textContent = output.dataset.summary;
    });
  };

  for (const panel of panels) {
    const peers = panels.filter((other) => other.axis === panel.axis);
    const point = (event) => {
      const box = panel.area.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const x = panel.low + share * (panel.high - panel.low);
      peers.forEach((peer) => show(peer, x, share));
    };
    panel.area.addEventListener("pointermove", point);
    panel.area.addEventListener("pointerdown", point);
    panel.area.addEventListener("pointerleave", () => peers.forEach(rest));
  }

  document.querySelectorAll(".legend button").forEach((button) => {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      document.querySelectorAll(`.panel [data-run="${button.dataset.run}"], .panel.bars[data-run="${button.dataset.run}"]`)
        .forEach((element) => { element.style.display = shown ? "" : "none"; });
    });
  });

  // Paper cannot be unfolded.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
})();
