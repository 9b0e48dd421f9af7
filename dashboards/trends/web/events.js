// SPDX-License-Identifier: Apache-2.0
// Regressions, improvements and changes of the bench: in words, and as a table.

const EVENTS_SHOWN = 8;

/** Return an event in words: title, text, and its commits where the text does not name them. */
function eventWords(event) {
  const { title, text = '', commits = '' } = event.fields;
  const short = commits.split(' ').filter(Boolean).map((commit) => commit.slice(0, 12));
  const unsaid = short.some((commit) => !text.includes(commit)) ? ` Commits between: ${short.join(' ')}.` : '';
  return [h('b', {}, h('span', { 'aria-hidden': 'true' }, `${EVENT_SYMBOLS[event.kind] || '•'} `), title || event.kind), ' ', text, unsaid];
}

function eventSubject(event) {
  if (event.kind === 'bench-change') return `bench ${event.tags.bench}`;
  const { tags } = event;
  return [subjectOf(tags), tags.requirement, tags.bench, tags.profile, tags.branch].filter(Boolean).join(' · ');
}

/** Say of how many series the adviser cannot see a change yet; empty: it can of all. */
function adviserSilence(data, series) {
  const known = series.map((one) => one.earlierRuns).filter((runs) => runs !== null);
  const most = Math.max(0, ...known);
  if (most < data.changeNeeds) return `${most} of ${data.changeNeeds} earlier runs, no statement yet`;
  const silent = known.filter((runs) => runs < data.changeNeeds).length;
  return silent ? `no statement yet on ${silent} of ${known.length} series, with fewer than ${data.changeNeeds} earlier runs` : '';
}

class EventTable {
  constructor(app) {
    this.app = app;
    this.node = h('div', {});
    this.all = false;
  }

  refresh() {
    const { data, filter, view } = this.app;
    const inView = (event) => view.x[event.run] >= view.from && view.x[event.run] <= view.to;
    const events = filter.events.filter(inView).reverse();
    const shown = this.all ? events : events.slice(0, EVENTS_SHOWN);
    const silence = adviserSilence(data, filter.series);
    if (!events.length) {
      this.node.replaceChildren(h('p', { class: 'muted' }, silence ? `Nothing in view: ${silence}.` : 'No regression, improvement or change of the bench in view.'));
      return;
    }
    const rows = shown.map((event) => ({
      cells: [
        h('span', { class: 'nb' }, formatMinute(data.timeMs[event.run])),
        h('span', { class: `nb kind ${event.kind}` }, `${EVENT_SYMBOLS[event.kind] || '•'} ${event.kind.replace('-', ' ')}`),
        h('button', { class: 'link subject', click: () => this.app.showEvent(event) }, eventSubject(event)),
        [h('div', {}, event.kind === 'bench-change' ? '' : event.fields.title || ''), h('div', { class: 'small muted clamp', title: event.fields.text || '' }, event.fields.text || '')],
        h('button', { class: 'link mono', click: () => this.app.openRun(event.run) }, data.runs.list('run_id')[event.run]),
      ],
    }));
    const caption = `${plural(events.length, 'event')} in view, the latest first. They advise; no verdict follows from them.${silence && ` On changes of series: ${silence}.`}`;
    const more = events.length > shown.length ? h('button', { click: () => this.showAll() }, `Show all ${events.length}`) : '';
    this.node.replaceChildren(table(caption, ['Time (UTC)', 'Kind', 'Of', 'What', 'First run after'], rows), more);
  }

  showAll() {
    this.all = true;
    this.refresh();
  }
}
