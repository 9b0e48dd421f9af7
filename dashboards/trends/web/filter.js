// SPDX-License-Identifier: Apache-2.0
// What of the data is shown: filters by tags, and the runs and series that they leave.

const FILTER_TAGS = ['bench', 'target', 'stack', 'clock', 'profile', 'branch'];
const RUN_TAGS = ['bench', 'profile', 'branch'];

class Filter {
  constructor(data) {
    this._data = data;
    this.wanted = Object.fromEntries(FILTER_TAGS.map((tag) => [tag, '']));
    this.choices = Object.fromEntries(FILTER_TAGS.map((tag) => [tag, choicesOf(data, tag)]));
    this.apply();
  }

  /** Set one filter, '' for all; a value that nothing has is ignored. */
  set(tag, value) {
    if (!FILTER_TAGS.includes(tag) || (value && !this.choices[tag].includes(value))) return;
    this.wanted[tag] = value;
    this.apply();
  }

  apply() {
    const data = this._data;
    this.series = data.series.filter((one) =>
      FILTER_TAGS.every((tag) => !this.wanted[tag] || one.tags[tag] === this.wanted[tag]),
    );
    const bySeries = FILTER_TAGS.some((tag) => this.wanted[tag] && !RUN_TAGS.includes(tag));
    const shown = new Uint8Array(data.count);
    if (bySeries) for (const one of this.series) for (const run of one.runs) shown[run] = 1;
    const lists = RUN_TAGS.map((tag) => [this.wanted[tag], data.runs.list(tag)]);
    for (let run = 0; run < data.count; run++) {
      if (!bySeries) shown[run] = 1;
      if (lists.some(([wanted, list]) => wanted && list[run] !== wanted)) shown[run] = 0;
    }
    this.runs = Int32Array.from(shown.keys()).filter((run) => shown[run]);
    this.events = data.events.map((event) => this._placed(event, shown)).filter(Boolean);
  }

  /** Return an event where it is to be shown; a bench that changed in a run left out has changed in the next one. */
  _placed(event, shown) {
    const changed = event.kind === 'bench-change';
    if (!changed && FILTER_TAGS.some((tag) => this.wanted[tag] && event.tags[tag] !== this.wanted[tag])) return null;
    if (shown[event.run]) return event;
    const benches = this._data.runs.list('bench');
    const mine = changed ? this.runs.filter((run) => benches[run] === event.tags.bench) : [];
    const next = mine.find((run) => run > event.run);
    return next === undefined || next === mine[0] ? null : { ...event, run: next };
  }
}

function choicesOf(data, tag) {
  const found = new Set(data.series.map((one) => one.tags[tag]));
  if (RUN_TAGS.includes(tag)) for (const value of data.runs.list(tag)) found.add(value);
  return [...found].filter(Boolean).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

/** Return series by what they measure, in the order of their names. */
function groupsOf(series) {
  const found = new Map();
  for (const one of series) {
    if (!found.has(one.groupKey)) found.set(one.groupKey, []);
    found.get(one.groupKey).push(one);
  }
  const groups = [...found].map(([key, members]) => ({ key, members, tags: members[0].tags, name: '' }));
  for (const group of groups) {
    const alike = groups.filter((other) => subjectOfGroup(other.tags)[0] === subjectOfGroup(group.tags)[0]);
    const varying = [...GROUP_TAGS, ...AXES].filter((tag) => alike.some((other) => other.tags[tag] !== group.tags[tag]));
    group.name = groupName(group.tags, varying);
  }
  return groups.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** Return what a value is of, in full: what it is told by alone, in a list of values of several targets. */
function subjectOf(tags) {
  const axes = AXES.map((axis) => (axis === 'stream' && tags.stream ? `stream ${tags.stream}` : tags[axis]));
  const figure = spoken([tags.quantity, tags.statistic].filter(Boolean).join(' '));
  return [...axes, figure, spoken(tags.condition || ''), tags.target, tags.stack].filter(Boolean).join(' · ');
}

/** Return what a group is about, and the tag that says so. */
function subjectOfGroup(tags) {
  if (tags.stream) return [`stream ${tags.stream}`, 'stream'];
  const own = [...AXES].reverse().concat('requirement').find((tag) => tags[tag]);
  return own ? [tags[own], own] : ['', ''];
}

/** Return a short name: the subject, and whatever else tells it from others of the same subject. */
function groupName(tags, varying) {
  const [subject, own] = subjectOfGroup(tags);
  const rest = ['clock', 'stack', 'target', 'quantity', 'statistic', 'condition'].filter(
    (tag) => tag !== own && varying.includes(tag) && tags[tag],
  );
  return [subject, ...rest.map((tag) => spoken(tags[tag]))].join(' · ');
}

function spoken(text) {
  return text.replace(/_/g, ' ').replace(/\/idle\/none(?=\/|$)/, '');
}
