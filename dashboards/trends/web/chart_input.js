// SPDX-License-Identifier: Apache-2.0
// Pointer, wheel and keys on a chart. A drag zooms, a click opens the run, the wheel zooms with Ctrl or where the
// chart has the focus: else it scrolls the page.

const DRAG_PIXELS = 5;

function listenTo(chart) {
  const { canvas } = chart;
  canvas.addEventListener('pointermove', (event) => onMove(chart, event));
  canvas.addEventListener('pointerleave', () => chart.app.hover(null, -1));
  canvas.addEventListener('pointerdown', (event) => onDown(chart, event));
  canvas.addEventListener('pointerup', (event) => onUp(chart, event));
  canvas.addEventListener('pointercancel', () => endDrag(chart));
  canvas.addEventListener('wheel', (event) => onWheel(chart, event), { passive: false });
  canvas.addEventListener('keydown', (event) => onKey(chart, event));
  canvas.addEventListener('blur', () => chart.app.hover(null, -1));
}

/** Return the pointer's place in the chart's own pixels. */
function placeOf(chart, event) {
  const box = chart.canvas.getBoundingClientRect();
  const factor = (chart.width || box.width) / box.width;
  return [(event.clientX - box.left) * factor, (event.clientY - box.top) * factor];
}

function xAt(chart, pixel) {
  const { plot, view } = chart;
  const share = Math.min(1, Math.max(0, (pixel - plot.left) / plot.width));
  return view.from + share * (view.to - view.from);
}

function onMove(chart, event) {
  if (!chart.plot) return;
  const [x, y] = placeOf(chart, event);
  if (chart.drag) {
    chart.drag.to = x;
    if (Math.abs(x - chart.drag.from) >= DRAG_PIXELS) {
      const [left, right] = [Math.min(x, chart.drag.from), Math.max(x, chart.drag.from)];
      const low = Math.max(chart.plot.left, left);
      chart.brush.hidden = false;
      chart.brush.style.left = `${low}px`;
      chart.brush.style.width = `${Math.max(0, Math.min(chart.plot.left + chart.plot.width, right) - low)}px`;
      chart.brush.style.top = `${chart.plot.top}px`;
      chart.brush.style.height = `${chart.plot.height}px`;
      chart.app.hover(null, -1);
      return;
    }
  }
  const mark = chart.eventPlaces.find((place) => Math.abs(place.x - x) < 6 && y < chart.plot.top + 6);
  chart.app.hover(chart, mark ? mark.event.run : chart.runAt(x, y), event);
}

function onDown(chart, event) {
  if (event.button !== 0 || !chart.plot) return;
  const [x] = placeOf(chart, event);
  chart.drag = { from: x, to: x };
  chart.canvas.setPointerCapture(event.pointerId);
}

function onUp(chart, event) {
  if (!chart.drag) return;
  const { from, to } = chart.drag;
  const [x, y] = placeOf(chart, event);
  endDrag(chart);
  if (Math.abs(to - from) >= DRAG_PIXELS) {
    const ends = [xAt(chart, from), xAt(chart, to)].sort((a, b) => a - b);
    chart.view.zoom(ends[0], ends[1]);
    return;
  }
  const mark = chart.eventPlaces.find((place) => Math.abs(place.x - x) < 6 && y < chart.plot.top + 6);
  const run = mark ? mark.event.run : chart.runAt(x, y);
  if (run >= 0) chart.app.openRun(run);
}

function endDrag(chart) {
  chart.drag = null;
  chart.brush.hidden = true;
}

function onWheel(chart, event) {
  if (!(event.ctrlKey || event.metaKey || document.activeElement === chart.canvas) || !chart.plot) return;
  event.preventDefault();
  const [x] = placeOf(chart, event);
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    chart.view.pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
  } else {
    chart.view.zoomAround(xAt(chart, x), Math.exp(Math.sign(event.deltaY) * Math.min(0.3, Math.abs(event.deltaY) / 300)));
  }
}

function onKey(chart, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
  const { view, app } = chart;
  if (step && event.shiftKey) view.pan(Math.sign(step) * 0.2);
  else if (step) moveCursor(chart, step);
  else if (event.key === 'Home' || event.key === 'End') moveCursor(chart, event.key === 'Home' ? -Infinity : Infinity);
  else if (event.key === '+' || event.key === '=') view.zoomAround(cursorX(chart), 0.6);
  else if (event.key === '-') view.zoomAround(cursorX(chart), 1 / 0.6);
  else if (event.key === '0') view.reset();
  else if (event.key === 'Backspace') view.back();
  else if (event.key === 'Enter' && app.hovered >= 0) app.openRun(app.hovered);
  else return;
  event.preventDefault();
}

function cursorX(chart) {
  const { view, app } = chart;
  const x = app.hovered >= 0 ? view.x[app.hovered] : NaN;
  return x >= view.from && x <= view.to ? x : (view.from + view.to) / 2;
}

/** Move the cursor by so many of the chart's runs in view, and say what stands there. */
function moveCursor(chart, step) {
  const runs = chart.runsInView();
  if (!runs.length) return;
  const at = runs.indexOf(chart.app.hovered);
  const from = at < 0 ? (step < 0 ? runs.length : -1) : at;
  const next = Math.min(runs.length - 1, Math.max(0, from + step));
  chart.app.hover(chart, runs[next]);
}
