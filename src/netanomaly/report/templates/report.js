"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  let printing = false;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Figures take their colours from the page, whichever it shows.
  function theme() {
    const axis = { gridcolor: css("--line"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: false };
    return {
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: css("--font"), size: 12, color: css("--text") },
        xaxis: { ...axis, showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "dot", spikecolor: css("--soft") },
        yaxis: axis,
        hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--text"), size: 12 } },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--text") },
      },
    };
  }

  function draw(plot) {
    if (plot.dataset.drawn) return;
    plot.dataset.drawn = "yes";
    const figure = figures[plot.dataset.figure];
    const isTimeline = "times" in figure;
    for (const trace of figure.data) {
      if (trace.type === "scatter" && !("x" in trace)) trace.x = figure.times;
    }
    const layout = { ...figure.layout, template: theme(), autosize: true };
    // A finger scrolls the page; it zooms with the buttons.
    layout.dragmode = isTimeline && !touch.matches ? "zoom" : false;
    Plotly.newPlot(plot, figure.data, layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: isTimeline && (touch.matches || "hover"),
      modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
    });
  }

  const plots = [...document.querySelectorAll(".plot")];
  const isVisible = (plot) => plot.offsetParent !== null;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          observer.unobserve(entry.target);
          draw(entry.target);
        }
      }
    },
    { rootMargin: "600px" },
  );
  plots.forEach((plot) => observer.observe(plot));

  // Paper has a width of its own, one page is as high as a timeline can be, and ink is dark.
  const PAPER = { timeline: [680, 920], other: [460, 300] };
  function repaint() {
    for (const plot of plots.filter((plot) => plot.dataset.drawn && isVisible(plot))) {
      const { height } = figures[plot.dataset.figure].layout;
      const [most, highest] = plot.dataset.figure.startsWith("timeline") ? PAPER.timeline : PAPER.other;
      const size = printing ? { width: most, height: Math.min(height, highest) } : { width: null, height, autosize: true };
      plot.style.height = `${size.height}px`;
      Plotly.relayout(plot, { template: theme(), ...size });
    }
  }
  dark.addEventListener("change", () => repaint());
  function beforePrint() {
    if (printing) return;
    printing = true;
    plots.filter(isVisible).forEach(draw);
    document.documentElement.classList.add("printing");
    repaint();
  }
  function afterPrint() {
    if (!printing) return;
    printing = false;
    document.documentElement.classList.remove("printing");
    repaint();
  }
  addEventListener("beforeprint", beforePrint);
  addEventListener("afterprint", afterPrint);

  // The table of incidents: sorted by a click on a header, filtered together with the cards.
  const table = document.getElementById("incident-table");
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent;
  };
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    header.firstElementChild.addEventListener("click", () => {
      const turn = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
      const rows = [...body.rows].filter((row) => "series" in row.dataset);
      rows.sort((a, b) => {
        const [left, right] = [value(a, column), value(b, column)];
        const order = typeof left === "number" ? left - right : left.localeCompare(right, "en", { numeric: true });
        return turn * order;
      });
      body.append(...rows);
    });
  });

  const filters = [...document.querySelectorAll("[data-filter]")];
  const filtered = [...document.querySelectorAll("tr[data-series], .card[data-series]")];
  function filter() {
    let shown = 0;
    for (const element of filtered) {
      element.hidden = filters.some((one) => one.value && element.dataset[one.dataset.filter] !== one.value);
      shown += !element.hidden && element.tagName === "TR";
    }
    document.getElementById("shown").textContent = `${shown} shown`;
  }
  filters.forEach((one) => one.addEventListener("change", filter));
  filter();

  // From a card to its place in the timeline, with as much time on both sides.
  const hasDates = document.documentElement.dataset.times === "dates";
  for (const button of document.querySelectorAll("[data-timeline]")) {
    button.addEventListener("click", () => {
      const details = document.getElementById(button.dataset.timeline);
      details.open = true;
      const plot = details.querySelector(".plot");
      draw(plot);
      const scale = hasDates ? 1e6 : 1e9;
      const [start, last] = [Number(button.dataset.start) / scale, Number(button.dataset.last) / scale];
      const around = Math.max(last - start, 60 * (hasDates ? 1000 : 1));
      Plotly.relayout(plot, { "xaxis.range": [start - around, last + around] });
      details.scrollIntoView();
    });
  }

  // A link to a card that a filter hides shows it again.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.hidden) {
      filters.forEach((one) => (one.value = ""));
      filter();
      target.scrollIntoView();
    }
  });
})();
